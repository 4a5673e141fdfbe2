"""New columns from a stream of values: one row per live row of the table, in its order.

The stream can be read once. So what it gave stays with the fragments that it was given for; rows that came meanwhile
read as null. Rows that were moved or replaced meanwhile have lost their values (:func:`why_moved`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from tablewright.data.dictionaries import as_one
from tablewright.format.transaction import Overwrite, Restore, Rewrite, Transaction, UnknownOperation, Update
from tablewright.operations.columns.schema import InvalidColumns
from tablewright.reading.projection import Path
from tablewright.snapshot.files import read_manifest, read_transaction
from tablewright.snapshot.locate import find_version
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.touched import changed_fragments

__all__ = ["RowStream", "StreamColumns", "why_moved"]


class RowStream:
    """Batches of any size, handed out in any number of rows."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = (batch for batch in batches if batch.num_rows)
        self._rest: pa.RecordBatch | None = None

    def take(self, count: int) -> pa.RecordBatch:
        """The next ``count`` rows, at least one."""
        parts: list[pa.RecordBatch] = []
        while count:
            batch = self._next()
            if batch is None:
                raise InvalidColumns(
                    "Invalid user input: Stream ended before producing values for all rows in dataset."
                )
            parts.append(batch.slice(0, count))
            count -= parts[-1].num_rows
            if parts[-1].num_rows < batch.num_rows:
                self._rest = batch.slice(parts[-1].num_rows)
        return as_one(parts)

    def end(self) -> None:
        """There must be nothing left."""
        if self._next() is not None:
            raise InvalidColumns("Invalid user input: Stream produced more values than expected for dataset.")

    def _next(self) -> pa.RecordBatch | None:
        batch, self._rest = self._rest, None
        return next(self._batches, None) if batch is None else batch


@dataclass(frozen=True, slots=True)
class StreamColumns:
    """As a computation: rows come in order, and each takes the next value."""

    stream: RowStream
    schema: pa.Schema

    @property
    def paths(self) -> tuple[Path, ...]:
        return ()

    def compute(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return self.stream.take(batch.num_rows)


def why_moved(base: Snapshot, newest: Snapshot, fragments: Iterable[int]) -> str | None:
    """Why rows of these fragments may be elsewhere now; ``None`` if they are where they were, or deleted."""
    ours = frozenset(fragments)
    for version in range(base.version + 1, newest.version + 1):
        theirs = _transaction(newest, version)
        if theirs is None or isinstance(theirs.operation, UnknownOperation):
            return f"version {version} does not say what it changed"
        operation = theirs.operation
        if isinstance(operation, Overwrite | Restore):
            return f"version {version} ({type(operation).__name__}) replaced the rows that the stream has values for"
        moves = isinstance(operation, Rewrite) or (isinstance(operation, Update) and bool(operation.new_fragments))
        if moves and not ours.isdisjoint(changed_fragments(operation)):
            return f"version {version} ({type(operation).__name__}) moved rows, whose values are lost with them"
    return None


def _transaction(newest: Snapshot, version: int) -> Transaction | None:
    store = newest.world.store
    entry = find_version(store, version)
    return None if entry is None else read_transaction(store, read_manifest(store, entry))
