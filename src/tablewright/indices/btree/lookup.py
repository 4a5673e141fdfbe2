"""The reader of BTREE indices: which rows hold these keys?

An index is a sorted column cut into pages of 4,096 rows (``page_data.lance``: ``values``, ``ids``; nulls first) and a
small table with the bounds of each page (``page_lookup.lance``), which is read when the index is opened. A lookup

1. makes the keys distinct and sorts them, by the index's own order (``order.py``);
2. finds the pages that may hold each: equal values may span several, and pages of nulls hold none;
3. reads these pages as filters do (``opened.py``), which keeps them, if there are at most 16, or 4 where each is a
   request to the codec; else finds the rows in these pages (``windows.py``), from ``values`` alone, and takes the
   ``ids`` of those that match;
4. returns the ids for every probe of a key.

Memory is a few groups of pages, and the hits. ``rows.py`` turns ids into rows and drops those that are deleted.

Format: ``docs/format/indices.md#btree-files``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.cache import CacheKind
from tablewright.data.encoder import DataFileReader
from tablewright.data.idle import Idle, process_readers
from tablewright.data.prefetch import prefetch
from tablewright.errors import CorruptTable
from tablewright.format.index import IndexMetadata
from tablewright.indices.btree.data_rows import plain
from tablewright.indices.btree.keys import fitted
from tablewright.indices.btree.opened import OpenPages
from tablewright.indices.btree.order import Longs, equal_values, spread
from tablewright.indices.btree.packed_search import search_touching
from tablewright.indices.btree.pages import DATA_FILE
from tablewright.indices.btree.windows import (
    ROWS_PER_BATCH,
    ColumnReader,
    KeyGroup,
    cut,
    is_scattered,
    search,
)
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.address import join_uri
from tablewright.storage.base import Store

__all__ = ["BTreeIndex", "BTreeMatches", "StoredIds", "stored_ids"]

T = TypeVar("T")
R = TypeVar("R")
StoredIds = Literal["row ids", "addresses"]

_PAGES_CHECKED = 32
_FEW_PAGES, _FEW_PAGES_BY_CODEC = 16, 4

_checked = CacheKind[bool]("BTREE checks")


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

    def __init__(self, stores: StoredIds, opened: OpenPages, values: _Column, ids: _Column) -> None:
        """Use :meth:`open`."""
        self.stores = stores
        self._opened, self._pages, self._values, self._ids = opened, opened.pages, values, ids
        self._packed = opened.packed()

    @classmethod
    def open(cls, snapshot: Snapshot, index: IndexMetadata) -> BTreeIndex:
        """Read the lookup of an index and see that the pages are there; :class:`CorruptTable` if either is damaged."""
        return cls.at(*snapshot.index_place(index), stores=stored_ids(snapshot, index))

    @classmethod
    def at(cls, store: Store, directory: str, *, stores: StoredIds) -> BTreeIndex:
        """Open the files of an index in this directory."""
        values, ids = (_Column(store, f"{directory}/{DATA_FILE}", name) for name in ("values", "ids"))
        return cls(stores, OpenPages(store, directory), values, ids)

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
        Files that passed are not looked at again, as long as the cache remembers them.
        """
        if self._opened.place is None or not _checked.find(self._opened.place):
            self._check_pages()
            if self._opened.place is not None:
                _checked.keep(self._opened.place, True, 1)

    def _check_pages(self) -> None:
        pages = self._pages
        count = len(pages.highs)
        chosen = np.unique(np.linspace(0, count - 1, min(count, _PAGES_CHECKED)).astype(np.int64))
        for numbers, rows, bounds in (
            (chosen, pages.end_row(chosen) - 1, pages.highs),
            (chosen[1:], pages.first_row(chosen[1:]), pages.lows),
        ):
            if not len(numbers):
                continue
            found = list(self._values_at(rows))
            same = np.concatenate(
                [
                    equal_values(part, part_bounds)
                    for part, part_bounds in _side_by_side(found, pages.order.pick(bounds, numbers))
                ]
            )
            if not same.all():
                page = int(numbers[np.flatnonzero(~same)[0]]) + pages.skipped
                raise CorruptTable(pages.where, (f"page {page} has other values than its bounds say",))

    def _values_at(self, rows: Longs) -> Iterator[Any]:
        """The values at ascending rows, in the index's order."""
        pages, packed = self._pages, self._packed[0]
        if packed is not None and rows[0] >= packed.first_row:
            words = packed.take(rows)
            stored = pa.Array.from_buffers(pages.type, len(words), [None, pa.py_buffer(words)])
            yield pages.order.values(stored)
            return
        with self._values.reader() as reader:
            for batch in reader.take(rows, ROWS_PER_BATCH):
                yield pages.order.values(plain(batch.column("values"), "values", pages.type, reader.where))

    def lookup(self, keys: pa.Array) -> BTreeMatches:
        """All rows that hold one of these keys. Null is equal to nothing; a key may come more than once.

        Keys of another type are cast; :class:`InvalidRequest` if a key would not survive that.
        """
        keys = fitted(keys, self._pages.type)
        positions = np.flatnonzero(keys.is_valid().to_numpy(zero_copy_only=False))
        distinct, inverse = self._pages.order.distinct(self._pages.order.values(keys.drop_null()))
        first, last = self._pages.places(distinct)
        few = self._few_pages(first, last)
        if few is None:
            found = list(self._each(self._find, self._groups(distinct, first, last)))
        else:
            found = list(self._each(lambda number: self._find_in(number, distinct), few))
        if not found:
            return BTreeMatches(np.zeros(0, np.int64), np.zeros(0, np.uint64))
        hits = np.concatenate([keys for keys, _ in found])
        ids = np.concatenate([ids for _, ids in found])
        begins = np.searchsorted(hits, inverse, "left")
        counts = np.searchsorted(hits, inverse, "right") - begins
        return BTreeMatches(np.repeat(positions, counts), ids[spread(begins, counts)])

    def _each(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """By threads, unless the codec is not needed: then they would wait for each other."""
        return prefetch(function, items) if self._packed[0] is None else map(function, items)

    def _few_pages(self, first: Longs, last: Longs) -> list[int] | None:
        """All pages that may hold a key; ``None`` if they are many."""
        few = _FEW_PAGES_BY_CODEC if self._packed[0] is None else _FEW_PAGES
        somewhere = first <= last
        counts = last[somewhere] - first[somewhere] + 1
        if int(counts.max(initial=0)) > few:
            return None
        found = np.unique(spread(first[somewhere], counts))
        return found.tolist() if len(found) <= few else None

    def _find_in(self, page: int, keys: Any) -> tuple[Longs, npt.NDArray[np.uint64]]:
        """The hits in one page: numbers of keys, ascending, and ids."""
        read = self._opened.page(page)
        rows, numbers = self._pages.order.matches(keys, read.keys)
        return numbers, read.ids[rows]

    def _groups(self, keys: Any, first: Longs, last: Longs) -> Iterator[KeyGroup]:
        pages = self._pages
        somewhere = np.flatnonzero(first <= last)
        for part in cut(first[somewhere], last[somewhere], is_packed=self._packed[0] is not None):
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
        try:
            rows, keys = self._search(group)
        except ValueError as error:
            raise CorruptTable(self._values.where, (f"{error}",)) from error
        return keys, self._ids_at(rows)

    def _search(self, group: KeyGroup) -> tuple[Longs, Longs]:
        """The rows that hold a key of the group, ascending, and the number of the key for each."""
        pages, packed = self._pages, self._packed[0]
        if packed is not None and group.lows[0] >= packed.first_row and is_scattered(group, pages.rows_per_page):
            return search_touching(pages.order, packed, pages.type, group, self._packed[1])
        with self._values.reader() as reader:

            def values(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
                return (
                    pages.order.values(plain(batch.column("values"), "values", pages.type, reader.where))
                    for batch in batches
                )

            column = ColumnReader(
                read=lambda start, count: values(reader.read(start, count, ROWS_PER_BATCH)),
                take=lambda rows: values(reader.take(rows, ROWS_PER_BATCH)),
            )
            return search(pages.order, column, group, pages.rows_per_page)

    def _ids_at(self, rows: Longs) -> npt.NDArray[np.uint64]:
        packed = self._packed[1]
        if not len(rows):
            return np.zeros(0, np.uint64)
        if packed is not None and rows[0] >= packed.first_row:
            return packed.take(rows).astype(np.uint64, copy=False)
        with self._ids.reader() as reader:
            parts = [
                plain(batch.column("ids"), "ids", pa.uint64(), reader.where)
                for batch in reader.take(rows, ROWS_PER_BATCH)
            ]
        return np.concatenate([part.to_numpy() for part in parts])


def _side_by_side(parts: list[Any], whole: Any) -> Iterator[tuple[Any, Any]]:
    """Each part with the values at its position in ``whole``."""
    begin = 0
    for part in parts:
        yield part, whole[begin : begin + len(part)]
        begin += len(part)


# -------------------------------------------------------------------------------------------------------------- files
class _Column:
    """One column of a file, for several threads: every reader serves one at a time, and is kept for the next."""

    def __init__(self, store: Store, path: str, name: str) -> None:
        self._store, self._path, self._name = store, path, name
        self._idle: deque[Idle] = deque()

    def __del__(self) -> None:
        """The last lookup has ended: open files serve the next one."""
        for idle in getattr(self, "_idle", ()):
            process_readers.keep(idle)

    @property
    def where(self) -> str:
        """The address of the file."""
        return join_uri(self._store.location.uri, self._path)

    @contextmanager
    def reader(self) -> Iterator[DataFileReader]:
        """A reader of this column alone."""
        try:
            idle = self._idle.pop()
        except IndexError:
            idle = self._open()
        yield idle.reader
        self._idle.append(idle)

    def _open(self) -> Idle:
        try:
            return process_readers.open(self._store, self._path, [self._name], describe=False)
        except KeyError:
            where = DataFileReader(self._store, self._path).where
            raise CorruptTable(where, (f"it has no column {self._name!r}",)) from None
