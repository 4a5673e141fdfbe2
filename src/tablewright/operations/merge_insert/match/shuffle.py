"""Keys of both sides, brought together by Spark: for sources whose keys no worker should hold.

Every row travels as its key and its place: the position of a source row, the address of a table row. Keys travel as
numbers or bytes, so that equal is what is equal to a lookup (:mod:`..keys.key_codes`). Rows with a null in the key
match nothing, and are not sent.

A partition brings its source rows first. They are held, one per key (:class:`KeyTable`), which finds duplicates; a hash
spreads keys evenly, so they fit. The rows of the table stream by and are looked up, however many have one key.

Tests: ``tests/unit/operations/merge_insert/match/test_shuffle.py``, ``tests/spark/test_merge_shuffle.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from tablewright.data.task_context import TaskContext
from tablewright.format.row_address import RowAddress
from tablewright.operations.merge_insert.keys.key_columns import KeyColumns
from tablewright.operations.merge_insert.keys.key_table import KeyTable, Positions, distinct_rows
from tablewright.operations.merge_insert.limits import DEFAULT_MERGE_LIMITS, MatchLimits
from tablewright.operations.merge_insert.match.pairing import offsets_of
from tablewright.operations.merge_insert.match.pairs import Pairs, by_fragment
from tablewright.operations.merge_insert.source.shared import KeyRange, SharedSource, opened
from tablewright.reading.run import fragment_scans
from tablewright.reading.scan_task import ScanTask
from tablewright.world import World

__all__ = [
    "JoinKeys",
    "KeyPlaces",
    "SourceKeysTask",
    "TableKeysTask",
    "key_names",
    "key_schema",
    "partitions_for",
    "produce_keys",
    "source_tasks",
]

SOURCE, TABLE = 0, 1
Ranked: TypeAlias = tuple[int, pa.RecordBatch]
"""A side, and rows of it."""

_ROWS_PER_BATCH = 1 << 18
_SETTLED_ROWS_MIN = 1 << 20
_CALL_ROWS_MAX = 1 << 20
_VIEWS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


# ------------------------------------------------------------------------------------------------------------ producing
@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKeysTask:
    """Some rows of the source, as a message."""

    source: SharedSource
    key: KeyColumns
    rows: KeyRange


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKeysTask:
    """Some fragments, as a message."""

    scan: ScanTask
    key: KeyColumns


def source_tasks(
    source: SharedSource, key: KeyColumns, limits: MatchLimits = DEFAULT_MERGE_LIMITS.match
) -> list[SourceKeysTask]:
    """Tasks for all rows of a source."""
    step = limits.shuffle_task_rows
    ranges = [(begin, min(source.num_rows, begin + step)) for begin in range(0, source.num_rows, step)]
    return [SourceKeysTask(source=source, key=key, rows=rows) for rows in ranges]


def partitions_for(rows: int, limits: MatchLimits = DEFAULT_MERGE_LIMITS.match) -> int:
    """How many partitions this many rows should have."""
    return max(1, -(-rows // limits.shuffle_partition_rows))


def key_names(key: KeyColumns) -> list[str]:
    """What the columns of a key are called on the way."""
    return [f"k{index}" for index in range(len(key.paths))]


def key_schema(key: KeyColumns, table: pa.Schema) -> pa.Schema:
    """The columns that travel."""
    nothing = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in table], schema=table)
    cells = [_cells(array) for array in key.of(nothing)]
    keys = [pa.field(name, array.type) for name, array in zip(key_names(key), cells, strict=True)]
    return pa.schema([*keys, pa.field("place", pa.int64())])


def produce_keys(task: SourceKeysTask | TableKeysTask, world: World) -> Iterator[Ranked]:
    """The keys of a task's rows."""
    if isinstance(task, SourceKeysTask):
        return ((SOURCE, batch) for batch in _source_keys(task, world))
    return ((TABLE, batch) for batch in _table_keys(task, world))


def _source_keys(task: SourceKeysTask, world: World) -> Iterator[pa.RecordBatch]:
    source = opened(task.source, world)
    start, stop = task.rows
    for begin in range(start, stop, _ROWS_PER_BATCH):
        places = np.arange(begin, min(stop, begin + _ROWS_PER_BATCH))
        yield _batch(task.key.of(source.take(places, task.key.columns)), places)


def _table_keys(task: TableKeysTask, world: World) -> Iterator[pa.RecordBatch]:
    scan = task.scan
    context = TaskContext(world, scan.base_paths)
    for each in fragment_scans(context, scan.reads, scan.fragments, scan.first_rows):
        for _, start, stop in each.pieces():
            for rows in each.read(start, stop):
                addresses = RowAddress.join(each.fragment.id, offsets_of(rows))
                yield _batch(task.key.of(rows.batch), addresses.view(np.int64))


def _batch(columns: Sequence[pa.Array], places: Positions) -> pa.RecordBatch:
    """Rows that travel: those whose keys have no null."""
    nulls = [column.is_null().to_numpy(zero_copy_only=False) for column in columns if column.null_count]
    if nulls:
        kept = np.flatnonzero(~np.logical_or.reduce(nulls))
        columns, places = [column.take(pa.array(kept)) for column in columns], places[kept]
    arrays = [*map(_cells, columns), pa.array(places)]
    return pa.RecordBatch.from_arrays(arrays, [*(f"k{index}" for index in range(len(columns))), "place"])


def _cells(array: pa.Array) -> pa.Array:
    """Values as 64-bit numbers by their bits, or as bytes; there are no nulls among them."""
    kind = array.type
    if at.is_boolean(kind):
        return array.cast(pa.int64())
    if at.is_integer(kind) or at.is_floating(kind) or at.is_temporal(kind):
        return array.view(_VIEWS[kind.bit_width]).cast(pa.int64())
    if at.is_decimal(kind):
        array = array.view(pa.binary(kind.byte_width))
    return array.cast(pa.binary())


# ------------------------------------------------------------------------------------------------------------ consuming
@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class KeyPlaces:
    """What was found in a partition: pairs by fragment id.

    ``dropped`` are source rows that others with the same key stand for; ``duplicate`` are two that nothing decides
    between.
    """

    pairs: Mapping[int, Pairs]
    dropped: Positions
    duplicate: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class JoinKeys:
    """Matches the rows of a partition, the source's first: call it with them. ``dedupe`` says which of several counts.

    >>> source, table = {"k0": [1, 1, 3], "place": [8, 9, 5]}, {"k0": [1, 2], "place": [70, 71]}
    >>> rows = [(SOURCE, pa.record_batch(source)), (TABLE, pa.record_batch(table))]
    >>> found = JoinKeys(("k0",), "last")(iter(rows))
    >>> found.pairs[0].offsets.tolist(), found.pairs[0].positions.tolist(), found.dropped.tolist()
    ([70], [9], [8])
    """

    names: tuple[str, ...]
    dedupe: str | None

    def __call__(self, parts: Iterable[Ranked]) -> KeyPlaces:
        source, bundle, table = _SourceKeys(self.names, self.dedupe), list[pa.RecordBatch](), _Matches()
        for rank, rows in parts:
            if rank == SOURCE:
                source.add(rows)
            elif source.duplicate is not None or not len(source):
                break  # the merge is refused, or nothing here can match
            else:
                bundle.append(rows)
                if sum(each.num_rows for each in bundle) >= source.rows_per_call:
                    table.add(source, bundle)
                    bundle = []
        table.add(source, bundle)
        return KeyPlaces(pairs=table.by_fragment, dropped=source.dropped, duplicate=source.duplicate)


class _SourceKeys:
    """The source's rows of a partition, one per key. Those that others stand for are let go as they become many."""

    def __init__(self, names: Sequence[str], dedupe: str | None) -> None:
        self._names, self._dedupe = names, dedupe
        self._rows: list[pa.RecordBatch] = []
        self._waiting, self._rows_max = 0, _SETTLED_ROWS_MIN
        self._dropped: list[Positions] = [np.zeros(0, np.int64)]
        self._keys: KeyTable | None = None
        self._places: Positions = np.zeros(0, np.int64)
        self._duplicate: tuple[int, int] | None = None

    def __len__(self) -> int:
        return self._waiting

    @property
    def duplicate(self) -> tuple[int, int] | None:
        """The first two rows that have one key, where nothing decides between them."""
        self._settled()
        return self._duplicate

    @property
    def dropped(self) -> Positions:
        """The rows that others stand for."""
        self._settled()
        return np.concatenate(self._dropped)

    @property
    def rows_per_call(self) -> int:
        """How many rows of the table should be asked for at a time."""
        return min(_CALL_ROWS_MAX, self._settled().rows_per_call)

    def add(self, rows: pa.RecordBatch) -> None:
        """More rows."""
        self._rows.append(rows)
        self._keys, self._waiting = None, self._waiting + rows.num_rows
        if self._waiting >= self._rows_max:
            self._settled()

    def find(self, rows: pa.Table) -> Positions:
        """The position of the source row that each row meets, -1 where there is none."""
        found = self._settled().find([rows.column(name) for name in self._names])
        return np.where(found < 0, -1, self._places[found])

    def _settled(self) -> KeyTable:
        """One row per key, by ascending position. Of a key that comes again the first row stays, unless told."""
        if self._keys is not None:
            return self._keys
        if not self._rows:
            return KeyTable([pa.array([], pa.int64())])
        rows = pa.Table.from_batches(self._rows)
        rows = rows.take(pa.array(np.argsort(rows.column("place").to_numpy(), kind="stable"))).combine_chunks()
        keys, places = KeyTable(self._columns(rows)), rows.column("place").to_numpy()
        if keys.duplicate is not None:
            left = distinct_rows(self._columns(rows), self._dedupe or "first")
            if self._dedupe is None:
                pair = int(places[keys.duplicate[0]]), int(places[keys.duplicate[1]])
                self._duplicate = pair if self._duplicate is None else min(self._duplicate, pair)
            else:
                self._dropped.append(np.delete(places, left))
            rows = rows.take(pa.array(left)).combine_chunks()
            keys, places = KeyTable(self._columns(rows)), places[left]
        self._rows, self._keys, self._places = rows.to_batches(), keys, places
        self._waiting, self._rows_max = rows.num_rows, max(_SETTLED_ROWS_MIN, 2 * rows.num_rows)
        return keys

    def _columns(self, rows: pa.Table) -> list[pa.ChunkedArray]:
        return [rows.column(name) for name in self._names]


class _Matches:
    """Addresses of table rows, and the positions of the source rows that they meet."""

    def __init__(self) -> None:
        self._addresses: list[Positions] = [np.zeros(0, np.int64)]
        self._positions: list[Positions] = [np.zeros(0, np.int64)]

    @property
    def by_fragment(self) -> dict[int, Pairs]:
        """All of them as pairs by fragment id."""
        addresses = np.concatenate(self._addresses).view(np.uint64)
        return dict(by_fragment(addresses, np.concatenate(self._positions)))

    def add(self, source: _SourceKeys, batches: Sequence[pa.RecordBatch]) -> None:
        """The matches of some rows of the table."""
        if not batches:
            return
        rows = pa.Table.from_batches(batches)
        positions = source.find(rows)
        hits = positions >= 0
        self._addresses.append(rows.column("place").to_numpy()[hits])
        self._positions.append(positions[hits])
