"""What a BTREE answers: values in a list or between bounds, text that begins with a prefix, nulls.

Values that satisfy such a condition are neighbours in the index. So a query becomes ranges of rows:

1. the bounds of pages, which are in memory, tell in which pages a range begins and ends;
2. these two are read (or found in the cache), and a binary search gives the exact rows;
3. of everything between them only the ids are read.

A list of many keys is looked up by :class:`~tablewright.indices.btree.lookup.BTreeIndex`, which reads a few rows for
each key instead of a page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tablewright.format.index import IndexMetadata
from tablewright.indices.btree.bounds import Pages
from tablewright.indices.btree.keys import fitted
from tablewright.indices.btree.lookup import BTreeIndex
from tablewright.indices.btree.merge import key_at, position
from tablewright.indices.btree.opened import OpenPages, Page
from tablewright.indices.btree.order import order_of
from tablewright.indices.files import IndexPlaces
from tablewright.indices.query import Between, Hits, Ids, IsIn, IsNull, Query, StartsWith

__all__ = ["answers", "estimate", "find", "search", "supported"]

_NONE = np.zeros(0, np.uint64)
_FEW_KEYS = 16
_FEW_PAGES = 16


def supported(kind: pa.DataType) -> bool:
    """Whether a column of this type can have a BTREE, as pylance sees it.

    >>> supported(pa.float16()), supported(pa.list_(pa.int8())), supported(pa.dictionary(pa.int8(), pa.string()))
    (True, False, False)
    """
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return order_of(kind) is not None


def answers(query: Query, kind: pa.DataType) -> bool:
    """Whether a BTREE on a column of this type answers a query."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if order_of(kind) is None:
        return False
    if isinstance(query, StartsWith):
        return pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return isinstance(query, IsIn | Between | IsNull)


def search(context: IndexPlaces, index: IndexMetadata, query: Query, *, with_nulls: bool = False) -> Hits:
    """The ids of all entries that satisfy a query, and with ``with_nulls`` those without a value."""
    store, directory = context.index_place(index)
    opened = OpenPages(store, directory)
    nulls = opened.pages.nulls
    if isinstance(query, IsNull):
        return Hits(ids=opened.ids(0, nulls), nulls=_NONE if with_nulls else None)
    if isinstance(query, IsIn) and len(query.values) > _FEW_KEYS:
        ids = BTreeIndex.at(store, directory, stores="addresses").lookup(_distinct(opened.pages, query.values)).ids
    else:
        ids = _ids(opened, _ranges(opened.pages, query))
    return Hits(ids=ids, nulls=opened.ids(0, nulls) if with_nulls else None)


def find(context: IndexPlaces, index: IndexMetadata, query: Query, *, rows_max: int | None = None) -> Ids | None:
    """The ids of some values, or of a range; ``None`` if there are more than ``rows_max``, or many pages to read."""
    opened = OpenPages(*context.index_place(index))
    if isinstance(query, IsIn) and len(query.values) > _FEW_KEYS:
        return None
    parts: list[Ids] = []
    left = _FEW_PAGES
    for asked in _ranges(opened.pages, query):
        first, last = asked.pages(opened.pages)
        left -= max(0, last - first + 1)
        if left < 0:
            return None
        parts += [asked.within(opened.page(number)) for number in range(first, last + 1)]
        if rows_max is not None and sum(map(len, parts)) > rows_max:
            return None
    return parts[0] if len(parts) == 1 else np.concatenate([_NONE, *parts])


def estimate(context: IndexPlaces, index: IndexMetadata, query: Query) -> float | None:
    """About how many entries satisfy a query, from the bounds of pages; a page that begins with nulls is read."""
    opened = OpenPages(*context.index_place(index))
    if isinstance(query, IsNull):
        return float(opened.pages.nulls)
    return float(sum(_rows_about(opened, asked) for asked in _ranges(opened.pages, query)))


# -------------------------------------------------------------------------------------------------------------- ranges
@dataclass(frozen=True, slots=True)
class _Range:
    """Keys between bounds, ``None`` for no bound; ``after_low``: the lower one is excluded."""

    low: Any = None
    high: Any = None
    after_low: bool = False
    before_high: bool = False

    def begin(self, keys: Any) -> int:
        """How many of the ascending keys come before the range."""
        return 0 if self.low is None else position(keys, self.low, "right" if self.after_low else "left")

    def end(self, keys: Any) -> int:
        """How many of them come before its end."""
        return len(keys) if self.high is None else position(keys, self.high, "left" if self.before_high else "right")

    def pages(self, pages: Pages) -> tuple[int, int]:
        """The first and the last page that may have such keys; the last is below the first if none has."""
        return self.begin(pages.highs), self.end(pages.lows) - 1

    def within(self, page: Page) -> Ids:
        """The ids of such keys in a page."""
        begin = self.begin(page.keys)
        return page.ids[begin : max(begin, self.end(page.keys))]


def _ranges(pages: Pages, query: Query) -> Iterable[_Range]:
    if isinstance(query, IsIn):
        values = fitted(query.values, pages.type)
        keys = pages.order.values(values.drop_null() if values.null_count else values)
        keys = pages.order.distinct(keys)[0] if len(keys) > 1 else keys
        return [_Range(key, key) for key in (key_at(keys, at) for at in range(len(keys)))]
    if isinstance(query, Between):
        low, high = _key(pages, query.low), _key(pages, query.high)
        return [_Range(low, high, not query.low_inclusive, not query.high_inclusive)]
    if isinstance(query, StartsWith) and answers(query, pages.type):
        prefix = query.prefix.encode()
        return [_Range(prefix, _after(prefix), before_high=True)]
    raise TypeError(f"A BTREE of {pages.type} values does not answer {type(query).__name__}.")


def _distinct(pages: Pages, values: pa.Array) -> pa.Array:
    """Each value once, as the index sees them: -0.0 is not 0.0."""
    values = fitted(values, pages.type).drop_null()
    which = pages.order.distinct(pages.order.values(values))[1]
    return values.take(pa.array(np.unique(which, return_index=True)[1]))


def _key(pages: Pages, scalar: pa.Scalar | None) -> Any:
    if scalar is None:
        return None
    return key_at(pages.order.values(fitted(pa.array([scalar], scalar.type), pages.type)), 0)


def _after(prefix: bytes) -> bytes | None:
    """The smallest value after all that begin with a prefix."""
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else None


def _ids(opened: OpenPages, ranges: Iterable[_Range]) -> Ids:
    parts = [part for asked in ranges for part in _ids_of(opened, asked)]
    return parts[0] if len(parts) == 1 else np.concatenate([_NONE, *parts])


def _ids_of(opened: OpenPages, asked: _Range) -> Iterator[Ids]:
    """The ids of one range: some of its first page, all between, some of its last page."""
    pages = opened.pages
    first, last = asked.pages(pages)
    if first > last:
        return
    yield asked.within(opened.page(first))
    if first == last:
        return
    if last - first > 1:
        between = np.array([first + 1, last - 1])
        yield opened.ids(int(pages.first_row(between)[0]), int(pages.end_row(between)[1]))
    yield asked.within(opened.page(last))


# ------------------------------------------------------------------------------------------------------------ estimate
def _rows_about(opened: OpenPages, asked: _Range) -> float:
    pages = opened.pages
    first, last = asked.pages(pages)
    if first > last:
        return 0.0
    if first == last:
        return max(1.0, _rows_in(opened, first, asked))
    ends = np.array([first, last])
    between = int(pages.first_row(ends)[1] - pages.end_row(ends)[0])
    above, below = replace(asked, high=None, before_high=False), replace(asked, low=None, after_low=False)
    return between + _rows_in(opened, first, above) + _rows_in(opened, last, below)


def _rows_in(opened: OpenPages, number: int, asked: _Range) -> float:
    """About how many entries of a page are in a range. The lower bound of one that begins with nulls is not known."""
    pages = opened.pages
    if not number and pages.nulls > pages.skipped * pages.rows_per_page:
        keys = opened.page(number).keys
        return float(max(0, asked.end(keys) - asked.begin(keys)))
    at = np.array([number])
    rows = float(pages.end_row(at)[0] - pages.first_row(at)[0])
    return rows * _share(pages, number, asked.low, asked.high)


def _share(pages: Pages, number: int, low: Any, high: Any) -> float:
    """The share of a page's values between keys, if numbers are evenly distributed; of text it is not known."""
    smallest, largest = key_at(pages.lows, number), key_at(pages.highs, number)
    if smallest == largest:
        return 1.0
    if isinstance(smallest, bytes):
        return 0.0 if low is not None and low == high else 0.5
    start = smallest if low is None else max(smallest, low)
    stop = largest if high is None else min(largest, high)
    return max(0.0, float(stop - start + 1) / float(largest - smallest + 1))
