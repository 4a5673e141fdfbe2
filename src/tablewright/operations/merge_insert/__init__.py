"""Merge insert: rows of a source update, delete or join the rows of a table that have the same key.

1. *plan* (pure): what its clauses and schemas tell (:mod:`.clauses`, :mod:`.plan`).
2. *source*: its columns in the table's types, kept so that it can be read again (:mod:`.source`). One row per key: a
   key that comes twice is an error before anything is written (:mod:`.keys`).
3. *match*: which rows of which fragments meet which rows of the source (:mod:`.match`).
4. *decide* (pure): what becomes of every row (:mod:`.decide`).
5. *write*: rows that move, columns in place, new rows, deletion files (:mod:`.write`). What an earlier attempt wrote is
   used again where it holds (:mod:`.reuse`).
6. *finish* (pure): one Update transaction, and the rows that it touches (:mod:`.finish`).
7. *recheck*: whether rows that came meanwhile have one of our keys (:mod:`.match.recheck`).

Format: ``docs/format/transactions.md#merge-insert``.
"""
