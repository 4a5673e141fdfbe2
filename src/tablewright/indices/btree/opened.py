"""An open BTREE: the bounds of its pages, and pages that were read, both kept in the cache of the process.

The lookup is read and checked once: its columns, the number of pages, that their bounds ascend, and that the pages hold
what it counts. A page is checked when it is read: its values ascend, lie within its bounds, and its nulls come first.

Keys of the cache hold what identifies the bytes of both files (:mod:`tablewright.storage.identity`).

Format: ``docs/format/indices.md#btree-files``.

Tests: ``tests/unit/indices/btree/test_search.py``, ``tests/unit/indices/btree/test_lookup.py``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablewright.cache import CacheKind
from tablewright.data.encoder import DataFileReader
from tablewright.data.idle import Idle, process_readers
from tablewright.data.packed_reads import PackedColumn, open_packed
from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.expressions.scope import empty_batch
from tablewright.format.file_descriptor import described
from tablewright.indices.btree.merge import key_at, position
from tablewright.indices.btree.order import Longs, Order, order_of
from tablewright.indices.btree.pages import DATA_FILE, LOOKUP_FILE, ROWS_PER_PAGE
from tablewright.indices.query import Ids
from tablewright.storage.base import Store
from tablewright.storage.identity import is_local, is_settled, local_identity, place_of

__all__ = ["OpenPages", "Page", "Pages", "read_pages"]

_DIGITS_MAX = 18
_LOOKUP_COLUMNS = ("min", "max", "null_count", "page_idx")
_FEW_KEYS = 64
_ROWS_PER_BATCH = 1 << 17
_BOTH = ("values", "ids")


@dataclass(frozen=True, slots=True, eq=False)
class Pages:
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
    nbytes: int

    def __len__(self) -> int:
        return len(self.lows)

    def places(self, keys: Any) -> tuple[Longs, Longs]:
        """First and last page that may hold each key; last is below first where none does."""
        if isinstance(keys, np.ndarray) or len(keys) > _FEW_KEYS:
            return self.order.places(keys, self.lows, self.highs)
        wanted = keys.to_pylist()
        first = np.array([position(self.highs, key, "left") for key in wanted], np.int64)
        return first, np.array([position(self.lows, key, "right") for key in wanted], np.int64) - 1

    def first_row(self, pages: Longs) -> Longs:
        """The first row with a value in each of these pages."""
        return np.maximum((pages + self.skipped) * self.rows_per_page, self.nulls)

    def end_row(self, pages: Longs) -> Longs:
        """The row after the last of each of these pages."""
        return np.minimum((pages + self.skipped + 1) * self.rows_per_page, self.num_rows)


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """The entries of a page that have a value: ascending keys of the index's order, and ids."""

    keys: Any
    ids: Ids

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return int(self.keys.nbytes + self.ids.nbytes)


_pages = CacheKind[Pages]("BTREE lookups")
_page = CacheKind[Page]("BTREE pages")


class OpenPages:
    """The files of one BTREE. Threads may share it.

    ``place`` says where the bytes are, as a key of the cache; ``None`` if they can't be cached.
    """

    def __init__(self, store: Store, directory: str) -> None:
        self._store, self._directory = store, directory
        self.place = _place(store, directory)
        self.pages = read_pages(store, directory, self.place)
        self._last: tuple[int, Page] | None = None

    def packed(self) -> tuple[PackedColumn | None, PackedColumn | None]:
        """The columns ``values`` and ``ids``, each where it can be read without the codec."""
        columns = {"values": self.pages.type, "ids": pa.uint64()}
        values, ids = open_packed(self._store, f"{self._directory}/{DATA_FILE}", columns)
        return values, ids

    def page(self, number: int) -> Page:
        """One of the pages that hold more than nulls, by its number among these."""
        last = self._last
        if last is None or last[0] != number:
            self._last = last = (number, self._found(number))
        return last[1]

    def _found(self, number: int) -> Page:
        if self.place is None:
            return self._read(number)
        found = _page.find((self.place, number))
        if found is None:
            found = self._read(number)
            _page.keep((self.place, number), found, found.nbytes)
        return found

    def _read(self, number: int) -> Page:
        pages, at = self.pages, np.array([number])
        start, stop = int(pages.first_row(at)[0]), int(pages.end_row(at)[0])
        (batch,), where = self._rows(_BOTH, start, stop, stop - start)
        values, ids = plain(batch, "values", pages.type, where), plain(batch, "ids", pa.uint64(), where)
        keys = pages.order.values(values)
        if len(keys) != stop - start or not _fits(keys, pages, number):
            raise CorruptTable(where, (f"page {number + pages.skipped} has other values than its bounds say",))
        return Page(keys, ids.to_numpy())

    def ids(self, start: int, stop: int) -> Ids:
        """The ids of the rows from ``start`` up to ``stop``."""
        if start >= stop:
            return np.zeros(0, np.uint64)
        batches, where = self._rows(("ids",), start, stop, _ROWS_PER_BATCH)
        return np.concatenate([plain(batch, "ids", pa.uint64(), where).to_numpy() for batch in batches])

    def _rows(
        self, columns: Sequence[str], start: int, stop: int, rows_per_batch: int
    ) -> tuple[list[pa.RecordBatch], str]:
        idle = _open_data(self._store, self._directory, columns)
        found = idle.reader.read(start, stop - start, rows_per_batch)
        batches = list(_first(found) if stop - start <= rows_per_batch else found)
        process_readers.keep(idle)
        return batches, idle.reader.where


def _open_data(store: Store, directory: str, columns: Sequence[str]) -> Idle:
    path = f"{directory}/{DATA_FILE}"
    try:
        return process_readers.open(store, path, columns, describe=False)
    except KeyError:
        reader = DataFileReader(store, path)
        missing = [f"it has no column {name!r}" for name in columns if name not in reader.schema.names]
        raise CorruptTable(reader.where, tuple(missing)) from None


def _place(store: Store, directory: str) -> Hashable | None:
    """What identifies the bytes of an index; ``None`` if they can't be cached."""
    locations = [store.codec_location(f"{directory}/{name}") for name in (LOOKUP_FILE, DATA_FILE)]
    found: list[Hashable] = []
    for location in locations:
        if location is None:
            return None
        if not is_local(location):
            found.append(place_of(location))
            continue
        identity = local_identity(location.uri)
        if identity is None or not is_settled(identity):
            return None
        found.append((location.uri, identity))
    return tuple(found)


def _fits(keys: Any, pages: Pages, number: int) -> bool:
    """Whether the values of a page ascend between its bounds. The first bound of a page with nulls is not known."""
    ascend = bool(np.all(keys[1:] >= keys[:-1])) if isinstance(keys, np.ndarray) else _ascend(keys)
    low, high = key_at(pages.lows, number), key_at(pages.highs, number)
    return ascend and key_at(keys, 0) >= low and key_at(keys, len(keys) - 1) <= high


def _ascend(keys: pa.Array) -> bool:
    return pc.less(keys.slice(1), keys.slice(0, len(keys) - 1)).true_count == 0


def plain(batch: pa.RecordBatch, name: str, kind: pa.DataType, where: str) -> pa.Array:
    """A column of a batch, which must have values of this type and no nulls."""
    array = _storage(batch.column(name))
    if array.type != kind:
        raise CorruptTable(where, (f"column {name!r} has the type {array.type} instead of {kind}",))
    if array.null_count:
        raise CorruptTable(where, (f"column {name!r} has nulls where the lookup counts none",))
    return array


# -------------------------------------------------------------------------------------------------------------- lookup
def read_pages(store: Store, directory: str, place: Hashable | None = None) -> Pages:
    """The bounds of the pages of an index: from the cache, or read and checked."""
    if place is None:
        return _read_lookup(store, directory)

    def load() -> tuple[Pages, int]:
        found = _read_lookup(store, directory)
        return found, found.nbytes

    return _pages.get(place, load)


def _read_lookup(store: Store, directory: str) -> Pages:
    reader = DataFileReader(store, f"{directory}/{LOOKUP_FILE}")
    names, metadata = described(reader.descriptor, reader.where)
    if metadata.get("range_partitioned", b"false") == b"true":
        raise UnsupportedFeature(f"{reader.where} belongs to an index in several parts, which we can't read.")
    missing = [name for name in _LOOKUP_COLUMNS if name not in names]
    if missing:
        raise CorruptTable(reader.where, (f"it has no columns {', '.join(missing)}",))
    asked = _all_rows(reader)  # the codec reads them while the other file is opened
    data = _open_data(store, directory, _BOTH)
    num_rows = data.reader.num_rows
    process_readers.keep(data)
    batch = next(asked, None)
    if batch is None:
        batch = empty_batch(reader.schema)
    lows, highs = _storage(batch.column("min")), _storage(batch.column("max"))
    order = order_of(lows.type)
    size = metadata.get("batch_size", b"%d" % ROWS_PER_PAGE)
    rows_per_page = int(size) if size.isdigit() and len(size) <= _DIGITS_MAX else 0
    nulls = int(np.sum(batch.column("null_count").to_numpy(zero_copy_only=False), dtype=np.int64))
    problems = list(_problems(batch, lows, highs, order, rows_per_page, num_rows, nulls))
    if problems or order is None:
        raise CorruptTable(reader.where, tuple(problems))
    skipped = int(highs.null_count)
    pages = Pages(
        type=lows.type,
        order=order,
        lows=order.bounds(lows.slice(skipped)),
        highs=order.bounds(highs.slice(skipped)),
        skipped=skipped,
        nulls=nulls,
        rows_per_page=rows_per_page,
        num_rows=num_rows,
        where=reader.where,
        nbytes=2 * int(lows.nbytes + highs.nbytes),
    )
    if len(pages):
        _check_order(pages)
    return pages


def _check_order(pages: Pages) -> None:
    try:
        pages.order.places(pages.lows[:1], pages.lows, pages.highs)
    except ValueError as error:
        raise CorruptTable(pages.where, (f"{error}",)) from error


def _problems(
    table: pa.RecordBatch,
    lows: pa.Array,
    highs: pa.Array,
    order: Order | None,
    rows_per_page: int,
    num_rows: int,
    nulls: int,
) -> Iterator[str]:
    if order is None or lows.type != highs.type:
        yield f"its bounds have the types {lows.type} and {highs.type}"
    if not rows_per_page:
        yield "its batch_size is no positive number"
    elif -(-num_rows // rows_per_page) != table.num_rows:
        yield f"it has {table.num_rows} pages of {rows_per_page} rows where {DATA_FILE} has {num_rows} rows"
    if not np.array_equal(table.column("page_idx").to_numpy(zero_copy_only=False), np.arange(table.num_rows)):
        yield "its pages are not numbered one after the other"
    if highs.slice(highs.null_count).null_count:
        yield "a page without values comes after one with values"
    full, partly = highs.null_count * rows_per_page, (highs.null_count + 1) * rows_per_page
    if not min(full, num_rows) <= nulls <= min(partly, num_rows):
        yield f"it counts {nulls} nulls in {highs.null_count} pages without values"


def _all_rows(reader: DataFileReader) -> Iterator[pa.RecordBatch]:
    rows = reader.num_rows
    return _first(reader.read(0, rows, rows)) if rows else iter(())


def _first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The only batch of a read: asking the codec for the end costs as much as a batch."""
    return islice(batches, 1)


def _storage(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    return array.storage if isinstance(array, pa.ExtensionArray) else array
