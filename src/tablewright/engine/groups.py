"""A value for every row that depends on the other rows of its group: sorted batches stream by, groups open and close.

Batches have the columns of :data:`SORTED` first, by which they are sorted, and then any others. A group is what has one
*partition* and one *group*. Its *messages* come before its rows (``side`` 0 and 1): what the group has to know before
its first row, as bytes, in the order of their position. From them *open* makes the work of the group, which then gets
the rows, batch by batch. A group without rows is never opened.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = [
    "MESSAGE",
    "PLACE",
    "ROW",
    "SORTED",
    "Finished",
    "GroupWork",
    "Message",
    "OpenGroup",
    "PlaceRows",
    "add_values",
    "finish_values",
]

MESSAGE, ROW = 0, 1
SORTED = ("partition", "group", "side", "position")


class Message(NamedTuple):
    """Something that a group has to know before its first row."""

    partition: int
    group: bytes
    content: bytes


class Finished(NamedTuple):
    """What the work of a group returned after its last row."""

    partition: int
    group: bytes
    result: Any


class GroupWork(Protocol):
    """What computes the values of one group."""

    def add(self, positions: pa.Array) -> pa.Array:
        """The values of the next rows, which come by ascending position."""

    def finish(self) -> Any:
        """The result of the group, after its last row."""


OpenGroup = Callable[[int, bytes, list[bytes]], GroupWork]
"""Makes the work of a group from its partition, its name and its messages."""

PLACE = pa.struct([pa.field("partition", pa.int32()), pa.field("group", pa.binary()), pa.field("position", pa.int32())])
PlaceRows = Callable[[Sequence[pa.Array]], pa.StructArray]
"""Says for rows, from some of their columns, where each belongs: a :data:`PLACE`."""


def add_values(
    open_group: OpenGroup, batches: Iterator[pa.RecordBatch], name: str, *, first: int
) -> Iterator[pa.RecordBatch]:
    """The rows, with the columns from ``first`` on and their values under ``name``."""
    groups = _Groups(open_group)
    for batch in batches:
        values = groups.through(batch)
        if values:
            is_row = pc.equal(batch.column("side"), ROW)
            rows = batch.select(list(range(first, batch.num_columns))).filter(is_row)
            yield rows.append_column(name, pa.concat_arrays(values))


def finish_values(open_group: OpenGroup, batches: Iterator[pa.RecordBatch]) -> list[Finished]:
    """The results of all groups that have rows."""
    groups = _Groups(open_group)
    for batch in batches:
        groups.through(batch)
    groups.close()
    return groups.finished


class _Groups:
    """The group that is open, and those that are finished."""

    def __init__(self, open_group: OpenGroup) -> None:
        self._open_group = open_group
        self._key: tuple[int, bytes] | None = None
        self._messages: list[bytes] = []
        self._work: GroupWork | None = None
        self.finished: list[Finished] = []

    def through(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The values of the batch's rows, piece by piece."""
        partitions, groups, sides, positions = (batch.column(name) for name in SORTED)
        values = []
        for begin, end in _runs((partitions, groups, sides)):
            key = partitions[begin].as_py(), groups[begin].as_py()
            if key != self._key:
                self.close()
                self._key = key
            if sides[begin].as_py() == MESSAGE:
                self._messages += batch.column("message").slice(begin, end - begin).to_pylist()
                continue
            if self._work is None:
                self._work = self._open_group(*key, self._messages)
                self._messages = []
            values.append(self._work.add(positions.slice(begin, end - begin)))
        return values

    def close(self) -> None:
        """No more rows of the group that is open."""
        if self._work is not None and self._key is not None:
            self.finished.append(Finished(*self._key, self._work.finish()))
        self._key, self._messages, self._work = None, [], None


def _runs(columns: tuple[pa.Array, ...]) -> Iterator[tuple[int, int]]:
    """Ranges of neighbours with the same values in all columns: first row, and the one after the last."""
    count = len(columns[0])
    if not count:
        return
    differs = np.zeros(count - 1, np.bool_)
    for column in columns:
        others = pc.not_equal(column.slice(1), column.slice(0, count - 1))
        differs |= others.to_numpy(zero_copy_only=False)
    edges = [0, *(np.flatnonzero(differs) + 1).tolist(), count]
    yield from itertools.pairwise(edges)
