"""How rows of fragments are read, whoever asks: pieces by threads, filters in two steps, matches, known rows.

- :mod:`.context`: stores, deletion vectors and row ids of fragments, on a worker that has no snapshot.
- :mod:`.projection`: the columns that come back, and what has to be read for them.
- :mod:`.fragment`: one fragment under way.
- :mod:`.run`: all fragments of a read, in order, ahead of the consumer.
- :mod:`.scan_task`: a read as a message to a worker.
- :mod:`.match`: the offsets of the rows that a predicate is true for.
"""
