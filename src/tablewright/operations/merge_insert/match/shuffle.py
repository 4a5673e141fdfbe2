"""Keys of both sides, brought together by Spark: for sources whose keys no worker should hold.

Every row travels as its key, its side, and its place: the position of a source row, the address of a table row. Keys
travel as numbers or bytes, so that equal is what is equal to a lookup (:mod:`..keys.key_codes`), whatever Spark thinks
of the type. Rows with a null in the key match nothing, and are not sent.

Sorted, a source row comes right before the table rows that it meets, and two source rows with one key are neighbours.
So a partition is matched as it streams by, and duplicates are found on the way.

Tests: ``tests/spark/test_merge_shuffle.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from tablewright.data.task_context import TaskContext
from tablewright.format.row_address import RowAddress
from tablewright.operations.merge_insert.keys.key_columns import KeyColumns
from tablewright.operations.merge_insert.keys.key_table import Positions
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
_ROWS_PER_BATCH = 1 << 16
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
    return pa.schema([*keys, pa.field("side", pa.int8()), pa.field("place", pa.int64())])


def produce_keys(task: SourceKeysTask | TableKeysTask, world: World) -> Iterator[pa.RecordBatch]:
    """The keys of a task's rows."""
    if isinstance(task, SourceKeysTask):
        yield from _source_keys(task, world)
    else:
        yield from _table_keys(task, world)


def _source_keys(task: SourceKeysTask, world: World) -> Iterator[pa.RecordBatch]:
    source = opened(task.source, world)
    start, stop = task.rows
    for begin in range(start, stop, _ROWS_PER_BATCH):
        places = np.arange(begin, min(stop, begin + _ROWS_PER_BATCH))
        yield _batch(task.key.of(source.take(places, task.key.columns)), SOURCE, places)


def _table_keys(task: TableKeysTask, world: World) -> Iterator[pa.RecordBatch]:
    scan = task.scan
    context = TaskContext(world, scan.base_paths)
    for each in fragment_scans(context, scan.reads, scan.fragments, scan.first_rows):
        for _, start, stop in each.pieces():
            for rows in each.read(start, stop):
                addresses = RowAddress.join(each.fragment.id, offsets_of(rows))
                yield _batch(task.key.of(rows.batch), TABLE, addresses.view(np.int64))


def _batch(columns: Sequence[pa.Array], side: int, places: Positions) -> pa.RecordBatch:
    """Rows that travel: those whose keys have no null."""
    nulls = [column.is_null().to_numpy(zero_copy_only=False) for column in columns if column.null_count]
    if nulls:
        kept = np.flatnonzero(~np.logical_or.reduce(nulls))
        columns, places = [column.take(pa.array(kept)) for column in columns], places[kept]
    arrays = [*map(_cells, columns), pa.array(np.full(len(places), side, np.int8)), pa.array(places)]
    return pa.RecordBatch.from_arrays(arrays, [*(f"k{index}" for index in range(len(columns))), "side", "place"])


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
    """Matches the sorted rows of a partition: call it with the batches. ``dedupe`` says which of several counts.

    >>> rows = {"k0": [1, 1, 1, 2, 3], "side": [0, 0, 1, 1, 0], "place": [8, 9, 70, 71, 5]}
    >>> found = JoinKeys(("k0",), "last")(iter([pa.record_batch(rows)]))
    >>> found.pairs[0].offsets.tolist(), found.pairs[0].positions.tolist(), found.dropped.tolist()
    ([70], [9], [8])
    """

    names: tuple[str, ...]
    dedupe: str | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> KeyPlaces:
        rows, found = _SortedRows(self.names, self.dedupe), []
        for batch in batches:
            found.append(rows.next(batch))
            if rows.duplicate is not None:
                break
        addresses = np.concatenate([addresses for addresses, _, _ in found]).view(np.uint64)
        positions = np.concatenate([positions for _, positions, _ in found])
        return KeyPlaces(
            pairs=dict(by_fragment(addresses, positions)),
            dropped=np.concatenate([dropped for _, _, dropped in found]),
            duplicate=rows.duplicate,
        )


class _SortedRows:
    """Goes through sorted batches, and knows of the rows before: the last key, and the source row that has it."""

    def __init__(self, names: Sequence[str], dedupe: str | None) -> None:
        self._names, self._dedupe = names, dedupe
        self._keys: list[pa.Array] | None = None
        self._position, self._place, self._was_source = -1, -1, False
        self.duplicate: tuple[int, int] | None = None

    def next(self, batch: pa.RecordBatch) -> tuple[Positions, Positions, Positions]:
        """Addresses and positions of the table rows that meet a source row, and the source rows that don't count."""
        keys = [batch.column(name) for name in self._names]
        places = batch.column("place").to_numpy()
        is_source = batch.column("side").to_numpy() == SOURCE
        is_first = self._is_first(keys)
        numbers = np.arange(len(places))
        is_again = is_source & ~is_first & np.concatenate(([self._was_source], is_source[:-1]))
        before = np.concatenate(([self._place], places[:-1]))
        dropped = self._dropped(places, before, is_again)
        counts = is_source & ~is_again if self._dedupe == "first" else is_source
        source = np.maximum.accumulate(np.where(counts, numbers, -1))
        begin = np.maximum.accumulate(np.where(is_first, numbers, -1))  # -1: the key of the batch before
        positions = np.where(begin < 0, self._position, -1)
        known = (source >= 0) & (source >= begin)
        positions[known] = places[source[known]]
        self._keys = [column.slice(len(places) - 1) for column in keys]
        self._position, self._place, self._was_source = int(positions[-1]), int(places[-1]), bool(is_source[-1])
        hits = ~is_source & (positions >= 0)
        return places[hits], positions[hits], dropped

    def _is_first(self, keys: Sequence[pa.Array]) -> np.ndarray:
        """Which rows have another key than the row before."""
        is_first = np.zeros(len(keys[0]), np.bool_)
        is_first[0] = self._keys is None or any(
            not old.equals(new.slice(0, 1)) for old, new in zip(self._keys, keys, strict=True)
        )
        for column in keys:
            others = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1))
            is_first[1:] |= others.to_numpy(zero_copy_only=False)
        return is_first

    def _dropped(self, places: Positions, before: Positions, is_again: np.ndarray) -> Positions:
        again = np.flatnonzero(is_again)
        if len(again) and self._dedupe is None:
            self.duplicate = int(before[again[0]]), int(places[again[0]])
        return before[again] if self._dedupe == "last" else places[again]
