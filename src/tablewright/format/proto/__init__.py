"""Generated protobuf messages. Only ``tablewright.format`` imports them; ``tools/proto.py`` generates them again."""
