"""The bounds of the pages of a BTREE (``page_lookup.lance``), kept in the cache of the process.

The lookup is read and checked once: its columns, the number of pages, that their bounds ascend, and that the pages hold
what it counts. Numbers are read without the codec where that is possible (:mod:`tablewright.data.number_files`).

Format: ``docs/format/indices.md#btree-files``.

Tests: ``tests/unit/indices/btree/test_search.py``, ``tests/unit/indices/btree/test_lookup.py``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tablewright.cache import CacheKind
from tablewright.data.encoder import DataFileReader
from tablewright.data.number_files import open_numbers
from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.indices.btree.data_rows import count_entries, only_batch
from tablewright.indices.btree.merge import position
from tablewright.indices.btree.order import Longs, Order, order_of
from tablewright.indices.btree.pages import DATA_FILE, LOOKUP_FILE, ROWS_PER_PAGE
from tablewright.storage.address import join_uri
from tablewright.storage.base import Store

__all__ = ["Pages", "read_pages"]

_DIGITS_MAX = 18
_COLUMNS = ("min", "max", "null_count", "page_idx")
_FEW_KEYS = 64


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


_pages = CacheKind[Pages]("BTREE lookups")


def read_pages(store: Store, directory: str, place: Hashable | None = None) -> Pages:
    """The bounds of the pages of an index: from the cache, or read and checked."""
    if place is None:
        return _read_lookup(store, directory)

    def load() -> tuple[Pages, int]:
        found = _read_lookup(store, directory)
        return found, found.nbytes

    return _pages.get(place, load)


def _read_lookup(store: Store, directory: str) -> Pages:
    path = f"{directory}/{LOOKUP_FILE}"
    where = join_uri(store.location.uri, path)
    (lows, highs, null_counts, numbers), metadata = _numbers(store, path, where) or _any_values(store, path)
    num_rows = count_entries(store, directory)
    order = order_of(lows.type)
    size = metadata.get("batch_size", str(ROWS_PER_PAGE))
    rows_per_page = int(size) if size.isascii() and size.isdigit() and len(size) <= _DIGITS_MAX else 0
    nulls = int(np.sum(null_counts.to_numpy(), dtype=np.int64))
    problems = list(_problems(lows, highs, order, nulls, rows_per_page, num_rows))
    if not np.array_equal(numbers.to_numpy(), np.arange(len(lows))):
        problems.append("its pages are not numbered one after the other")
    if problems or order is None:
        raise CorruptTable(where, tuple(problems))
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
        where=where,
        nbytes=2 * int(lows.nbytes + highs.nbytes),
    )
    if len(pages):
        _check_order(pages)
    return pages


def _numbers(store: Store, path: str, where: str) -> tuple[list[pa.Array], Mapping[str, str]] | None:
    """The columns of the lookup and its metadata, read without the codec; ``None`` if they are not numbers alone."""
    with open_numbers(store, path) as file:
        columns = None if file is None else file.read(file.places(_COLUMNS), 0, file.num_rows)
        if file is None or columns is None:
            return None
        _check_parts(file.metadata, where)
        return columns, file.metadata


def _any_values(store: Store, path: str) -> tuple[list[pa.Array], Mapping[str, str]]:
    """The columns of the lookup and its metadata, read by the codec."""
    reader = DataFileReader(store, path)
    schema, num_rows = reader.schema, reader.num_rows
    metadata = {key.decode(): value.decode("utf-8", "replace") for key, value in (schema.metadata or {}).items()}
    _check_parts(metadata, reader.where)
    missing = [name for name in _COLUMNS if name not in schema.names]
    if missing:
        raise CorruptTable(reader.where, (f"it has no columns {', '.join(missing)}",))
    batches = only_batch(reader.read(0, num_rows, num_rows)) if num_rows else ()
    table = pa.Table.from_batches(list(batches), schema=schema)
    return [_storage(table[name].combine_chunks()) for name in _COLUMNS], metadata


def _check_parts(metadata: Mapping[str, str], where: str) -> None:
    if metadata.get("range_partitioned") == "true":
        raise UnsupportedFeature(f"{where} belongs to an index in several parts, which we can't read.")


def _check_order(pages: Pages) -> None:
    try:
        pages.order.places(pages.lows[:1], pages.lows, pages.highs)
    except ValueError as error:
        raise CorruptTable(pages.where, (f"{error}",)) from error


def _problems(
    lows: pa.Array, highs: pa.Array, order: Order | None, nulls: int, rows_per_page: int, num_rows: int
) -> Iterator[str]:
    if order is None or lows.type != highs.type:
        yield f"its bounds have the types {lows.type} and {highs.type}"
    if not rows_per_page:
        yield "its batch_size is no positive number"
    elif -(-num_rows // rows_per_page) != len(lows):
        yield f"it has {len(lows)} pages of {rows_per_page} rows where {DATA_FILE} has {num_rows} rows"
    if highs.slice(highs.null_count).null_count:
        yield "a page without values comes after one with values"
    full, partial = highs.null_count * rows_per_page, (highs.null_count + 1) * rows_per_page
    if not min(full, num_rows) <= nulls <= min(partial, num_rows):
        yield f"it counts {nulls} nulls in {highs.null_count} pages without values"


def _storage(array: pa.Array) -> pa.Array:
    return array.storage if isinstance(array, pa.ExtensionArray) else array
