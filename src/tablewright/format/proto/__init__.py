"""Generated protobuf messages. Only ``tablewright.format`` looks in here; ``tools/proto.py`` makes them anew."""
