"""An open BTREE: the bounds of its pages (:mod:`.bounds`), and pages that were read, kept in the cache of the process.

A page is checked when it is read: its values ascend, lie within its bounds, and its nulls come first.

Keys of the cache hold what identifies the bytes of both files (:mod:`tablewright.storage.identity`).

Format: ``docs/format/indices.md#btree-files``.

Tests: ``tests/unit/indices/btree/test_search.py``, ``tests/unit/indices/btree/test_lookup.py``.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablewright.cache import CacheKind
from tablewright.data.packed_reads import PackedColumn, open_packed
from tablewright.errors import CorruptTable
from tablewright.indices.btree.bounds import Pages, read_pages
from tablewright.indices.btree.data_rows import plain, read_entries, read_page
from tablewright.indices.btree.merge import key_at
from tablewright.indices.btree.pages import DATA_FILE, LOOKUP_FILE
from tablewright.indices.query import Ids
from tablewright.storage.address import join_uri
from tablewright.storage.base import Store
from tablewright.storage.identity import is_local, is_settled, local_identity, place_of

__all__ = ["OpenPages", "Page"]

_ROWS_PER_BATCH = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """The entries of a page that have a value: ascending keys of the index's order, and ids."""

    keys: Any
    ids: Ids

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return int(self.keys.nbytes + self.ids.nbytes)


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
        values, ids = read_page(self._store, self._directory, pages.type, start, stop)
        keys = pages.order.values(values)
        if len(keys) != stop - start or not _fits(keys, pages, number):
            problem = f"page {number + pages.skipped} has other values than its bounds say"
            raise CorruptTable(self._where, (problem,))
        return Page(keys, ids.to_numpy())

    def ids(self, start: int, stop: int) -> Ids:
        """The ids of the rows from ``start`` up to ``stop``."""
        if start >= stop:
            return np.zeros(0, np.uint64)
        batches = read_entries(self._store, self._directory, ("ids",), start, stop, _ROWS_PER_BATCH)
        return np.concatenate(
            [plain(batch.column("ids"), "ids", pa.uint64(), self._where).to_numpy() for batch in batches]
        )

    @property
    def _where(self) -> str:
        return join_uri(self._store.location.uri, f"{self._directory}/{DATA_FILE}")


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
