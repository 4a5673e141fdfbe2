"""The reader of BTREE indices: which rows hold these keys?

An index is a sorted column cut into pages of 4,096 rows (``page_data.lance``: ``values``, ``ids``; nulls first) and a
small table with the bounds of each page (``page_lookup.lance``), which is read when the index is opened. A lookup

1. makes the keys distinct and sorts them, by the index's own order (``btree_order.py``);
2. finds the pages that may hold each: equal values may span several, and pages of nulls hold none;
3. finds the rows in these pages (``btree_search.py``), from ``values`` alone;
4. takes the ``ids`` of the rows that match, and returns them for every probe of that key.

Memory is a few groups of pages, and the hits. ``btree_rows.py`` turns ids into rows and drops those that are deleted.

Format: ``docs/format/indices.md#btree-files``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.data.encoder import DataFileReader
from tablewright.data.prefetch import prefetch
from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.index import IndexMetadata
from tablewright.indices.btree_keys import fitted
from tablewright.indices.btree_order import Longs, Order, equal_values, order_of, spread
from tablewright.indices.btree_search import ROWS_PER_BATCH, ColumnReader, KeyGroup, cut, search
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.base import Store

__all__ = ["BTreeIndex", "BTreeMatches", "StoredIds", "stored_ids"]

StoredIds = Literal["row ids", "addresses"]

DATA_FILE, LOOKUP_FILE = "page_data.lance", "page_lookup.lance"
_ROWS_PER_PAGE = 4096
_DIGITS_MAX = 18
_PAGES_CHECKED = 32
_LOOKUP_COLUMNS = ("min", "max", "null_count", "page_idx")


def stored_ids(snapshot: Snapshot, index: IndexMetadata) -> StoredIds:
    """What the ids in a BTREE are: row ids only in an index of version 0 on a table with stable row ids."""
    return "row ids" if snapshot.manifest.stable_row_ids and not index.index_version else "addresses"


@dataclass(frozen=True, slots=True, eq=False)
class BTreeMatches:
    """One entry per hit, in the order of the keys: the key's position in their array, and the id that the index has."""

    positions: Longs
    ids: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.ids)


class BTreeIndex:
    """One open BTREE index (or one segment of it). Threads may share it; it serves as long as its files exist."""

    def __init__(self, stores: StoredIds, pages: _Pages, values: _Column, ids: _Column) -> None:
        """Use :meth:`open`."""
        self.stores = stores
        self._pages, self._values, self._ids = pages, values, ids

    @classmethod
    def open(cls, snapshot: Snapshot, index: IndexMetadata) -> BTreeIndex:
        """Read the lookup of an index and see that the pages are there; :class:`CorruptTable` if either is damaged."""
        store, directory = snapshot.index_place(index)
        values = _Column(store, f"{directory}/{DATA_FILE}", "values")
        with values.reader() as reader:
            pages = _read_lookup(store, f"{directory}/{LOOKUP_FILE}", reader.num_rows)
        return cls(stored_ids(snapshot, index), pages, values, _Column(store, f"{directory}/{DATA_FILE}", "ids"))

    @property
    def num_entries(self) -> int:
        """How many rows the index has, nulls included."""
        return self._pages.num_rows

    @property
    def type(self) -> pa.DataType:
        """The type of the indexed values."""
        return self._pages.type

    def check_pages(self) -> None:
        """Compare the bounds of some pages with the values there; :class:`CorruptTable` if they differ.

        Up to 32 pages, evenly chosen, are looked at: their last values, and the first where no null can come before.
        """
        pages = self._pages
        count = len(pages.highs)
        chosen = np.unique(np.linspace(0, count - 1, min(count, _PAGES_CHECKED)).astype(np.int64))
        for numbers, rows, bounds in (
            (chosen, pages.end_row(chosen) - 1, pages.highs),
            (chosen[1:], pages.first_row(chosen[1:]), pages.lows),
        ):
            if not len(numbers):
                continue
            with self._values.reader() as reader:
                batches = list(reader.take(rows, ROWS_PER_BATCH))
                found = [pages.order.values(_plain(batch, pages.type, reader.where)) for batch in batches]
            same = np.concatenate(
                [
                    equal_values(part, part_bounds)
                    for part, part_bounds in _side_by_side(found, pages.order.pick(bounds, numbers))
                ]
            )
            if not same.all():
                page = int(numbers[np.flatnonzero(~same)[0]]) + pages.skipped
                raise CorruptTable(pages.where, (f"page {page} has other values than its bounds say",))

    def lookup(self, keys: pa.Array) -> BTreeMatches:
        """All rows that hold one of these keys. Null is equal to nothing; a key may come more than once.

        Keys of another type are cast; :class:`InvalidRequest` if a key would not survive that.
        """
        keys = fitted(keys, self._pages.type)
        positions = np.flatnonzero(keys.is_valid().to_numpy(zero_copy_only=False))
        distinct, inverse = self._pages.order.distinct(self._pages.order.values(keys.drop_null()))
        found = list(prefetch(self._find, self._groups(distinct)))
        if not found:
            return BTreeMatches(np.zeros(0, np.int64), np.zeros(0, np.uint64))
        hits = np.concatenate([keys for keys, _ in found])
        ids = np.concatenate([ids for _, ids in found])
        begins = np.searchsorted(hits, inverse, "left")
        counts = np.searchsorted(hits, inverse, "right") - begins
        return BTreeMatches(np.repeat(positions, counts), ids[spread(begins, counts)])

    def _groups(self, keys: Any) -> Iterator[KeyGroup]:
        pages = self._pages
        first, last = pages.places(keys)
        somewhere = np.flatnonzero(first <= last)
        for part in cut(first[somewhere], last[somewhere]):
            numbers = somewhere[part]
            yield KeyGroup(
                numbers=numbers,
                keys=pages.order.pick(keys, numbers),
                lows=pages.first_row(first[numbers]),
                highs=pages.end_row(last[numbers]),
                smallest=pages.order.pick(pages.lows, first[numbers]),
                largest=pages.order.pick(pages.highs, last[numbers]),
            )

    def _find(self, group: KeyGroup) -> tuple[Longs, npt.NDArray[np.uint64]]:
        """The hits of a group: numbers of keys, ascending, and ids."""
        pages = self._pages
        with self._values.reader() as reader:

            def values(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
                return (pages.order.values(_plain(batch, pages.type, reader.where)) for batch in batches)

            column = ColumnReader(
                read=lambda start, count: values(reader.read(start, count, ROWS_PER_BATCH)),
                take=lambda rows: values(reader.take(rows, ROWS_PER_BATCH)),
            )
            try:
                rows, keys = search(pages.order, column, group, pages.rows_per_page)
            except ValueError as error:
                raise CorruptTable(reader.where, (f"{error}",)) from error
        if not len(rows):
            return keys, np.zeros(0, np.uint64)
        with self._ids.reader() as reader:
            parts = [_plain(batch, pa.uint64(), reader.where) for batch in reader.take(rows, ROWS_PER_BATCH)]
        return keys, np.concatenate([part.to_numpy() for part in parts])


def _side_by_side(parts: list[Any], whole: Any) -> Iterator[tuple[Any, Any]]:
    """Each part with the values at its position in ``whole``."""
    begin = 0
    for part in parts:
        yield part, whole[begin : begin + len(part)]
        begin += len(part)


# ------------------------------------------------------------------------------------------------------------- lookup
@dataclass(frozen=True, slots=True, eq=False)
class _Pages:
    """The pages that hold more than nulls: bounds in the index's order, and which rows they are.

    ``skipped`` pages of nulls come before them; all in all there are ``nulls`` rows without a value.
    """

    type: pa.DataType
    order: Order
    lows: Any
    highs: Any
    skipped: int
    nulls: int
    rows_per_page: int
    num_rows: int
    where: str

    def places(self, keys: Any) -> tuple[Longs, Longs]:
        """First and last page that may hold each key."""
        try:
            return self.order.places(keys, self.lows, self.highs)
        except ValueError as error:
            raise CorruptTable(self.where, (f"{error}",)) from error

    def first_row(self, pages: Longs) -> Longs:
        """The first row with a value in each of these pages."""
        return np.maximum((pages + self.skipped) * self.rows_per_page, self.nulls)

    def end_row(self, pages: Longs) -> Longs:
        """The row after the last of each of these pages."""
        return np.minimum((pages + self.skipped + 1) * self.rows_per_page, self.num_rows)


def _read_lookup(store: Store, path: str, num_rows: int) -> _Pages:
    """The lookup of an index whose pages have ``num_rows`` rows in all."""
    reader = DataFileReader(store, path)
    schema, metadata = reader.schema, reader.schema.metadata or {}
    if metadata.get(b"range_partitioned", b"false") == b"true":
        raise UnsupportedFeature(f"{reader.where} belongs to an index in several parts, which we can't read.")
    missing = [name for name in _LOOKUP_COLUMNS if name not in schema.names]
    if missing:
        raise CorruptTable(reader.where, (f"it has no columns {', '.join(missing)}",))
    table = _read_all(reader, schema)
    lows, highs = _storage(table["min"]), _storage(table["max"])
    order = order_of(lows.type)
    size = metadata.get(b"batch_size", b"%d" % _ROWS_PER_PAGE)
    rows_per_page = int(size) if size.isdigit() and len(size) <= _DIGITS_MAX else 0
    problems = list(_problems(table, lows, highs, order, rows_per_page, num_rows))
    if problems or order is None:
        raise CorruptTable(reader.where, tuple(problems))
    skipped = int(highs.null_count)
    return _Pages(
        type=lows.type,
        order=order,
        lows=order.bounds(lows.slice(skipped)),
        highs=order.bounds(highs.slice(skipped)),
        skipped=skipped,
        nulls=int(np.sum(table["null_count"].to_numpy(), dtype=np.int64)),
        rows_per_page=rows_per_page,
        num_rows=num_rows,
        where=reader.where,
    )


def _problems(
    table: pa.Table, lows: pa.Array, highs: pa.Array, order: Order | None, rows_per_page: int, num_rows: int
) -> Iterator[str]:
    if order is None or lows.type != highs.type:
        yield f"its bounds have the types {lows.type} and {highs.type}"
    if not rows_per_page:
        yield "its batch_size is no positive number"
    elif -(-num_rows // rows_per_page) != table.num_rows:
        yield f"it has {table.num_rows} pages of {rows_per_page} rows where {DATA_FILE} has {num_rows} rows"
    if not np.array_equal(table["page_idx"].to_numpy(), np.arange(table.num_rows)):
        yield "its pages are not numbered one after the other"
    if highs.slice(highs.null_count).null_count:
        yield "a page without values comes after one with values"
    nulls = int(np.sum(table["null_count"].to_numpy(), dtype=np.int64))
    full, partial = highs.null_count * rows_per_page, (highs.null_count + 1) * rows_per_page
    if not min(full, num_rows) <= nulls <= min(partial, num_rows):
        yield f"it counts {nulls} nulls in {highs.null_count} pages without values"


def _read_all(reader: DataFileReader, schema: pa.Schema) -> pa.Table:
    rows = reader.num_rows
    batches = reader.read(0, rows, max(rows, 1)) if rows else ()
    return pa.Table.from_batches(list(batches), schema=schema)


# -------------------------------------------------------------------------------------------------------------- files
class _Column:
    """One column of a file, for several threads: every reader serves one at a time, and is kept for the next."""

    def __init__(self, store: Store, path: str, name: str) -> None:
        self._store, self._path, self._name = store, path, name
        self._idle: deque[DataFileReader] = deque()

    @contextmanager
    def reader(self) -> Iterator[DataFileReader]:
        """A reader of this column alone."""
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = self._open()
        yield reader
        self._idle.append(reader)

    def _open(self) -> DataFileReader:
        try:
            return DataFileReader(self._store, self._path, [self._name])
        except KeyError:
            where = DataFileReader(self._store, self._path).where
            raise CorruptTable(where, (f"it has no column {self._name!r}",)) from None


def _plain(batch: pa.RecordBatch, kind: pa.DataType, where: str) -> pa.Array:
    """The one column of a batch, which must have values of this type and no nulls."""
    array = _storage(batch.column(0))
    if array.type != kind:
        raise CorruptTable(where, (f"column {batch.schema.names[0]!r} has the type {array.type} instead of {kind}",))
    if array.null_count:
        raise CorruptTable(where, (f"column {batch.schema.names[0]!r} has nulls where the lookup counts none",))
    return array


def _storage(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.storage if isinstance(array, pa.ExtensionArray) else array
