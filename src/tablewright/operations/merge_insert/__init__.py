"""Merge insert: rows of a source update, delete or join the rows of a table that have the same key.

1. *fit*: the source's columns in the table's types (:mod:`.fit`), kept so that it can be read again (:mod:`.source`).
2. *keys*: one row per key; a key that comes twice is an error before anything is written (:mod:`.keys`).
3. *match*: which rows of which fragments meet which rows of the source (:mod:`.plan`, :mod:`.match`).
4. *write*: rows that move, columns in place, new rows, deletion files (:mod:`.rows`, :mod:`.columns`, :mod:`.write`).
5. *finish* (pure): one Update transaction, and the rows that it touches (:mod:`.finish`).
6. *recheck*: whether rows that came meanwhile have one of our keys (:mod:`.recheck`).

Format: ``docs/format/transactions.md#merge-insert``.
"""
