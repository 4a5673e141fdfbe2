"""The order of keys: ascending, floats by the total order of their bits, text and bytes byte by byte.

Keys are compared as numbers (a numpy array) or as bytes (an Arrow array of ``large_binary``), never one by one in
Python except where a few are searched among many. Nulls are left to the caller.

Tests: ``tests/property/test_key_set_indices.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablewright.indices.btree.order import order_of
from tablewright.indices.btree.sort import sort_order

__all__ = ["Comparable", "Longs", "comparable", "count_below", "is_ascending", "places_of", "ranked", "sort_order"]

Longs = npt.NDArray[np.int64]
Comparable = Any
"""Keys without nulls, ready to be compared: numbers as a numpy array, bytes as an Arrow array."""

_FEW = 1000
_SAMPLE_KEYS = 4096


def comparable(keys: pa.Array) -> Comparable:
    """Keys without nulls, so that they can be compared."""
    order = order_of(keys.type)
    if order is None:
        raise TypeError(f"values of type {keys.type} have no order")
    return order.values(keys)


def is_ascending(keys: Comparable) -> bool:
    """Whether every key is greater than the one before.

    >>> is_ascending(comparable(pa.array([1, 2]))), is_ascending(comparable(pa.array(["b", "b"])))
    (True, False)
    """
    if len(keys) < 2:
        return True
    if isinstance(keys, np.ndarray):
        return bool(np.all(keys[1:] > keys[:-1]))
    later = pc.call_function("greater", [keys[1:], keys[:-1]])
    return bool(np.all(later.to_numpy(zero_copy_only=False)))


def ranked(keys: Comparable) -> tuple[Longs, Longs]:
    """For each key its rank among the different ones; and for each of these, ascending, a position where it is.

    >>> ranks, positions = ranked(comparable(pa.array(["b", "a", "b"])))
    >>> ranks.tolist(), positions.tolist()
    ([1, 0, 1], [1, 0])
    """
    if isinstance(keys, np.ndarray) and _are_many(keys):
        return _ranked_by_sorting(keys)
    encoded = (pa.array(keys) if isinstance(keys, np.ndarray) else keys).dictionary_encode()
    distinct = encoded.dictionary.to_numpy() if isinstance(keys, np.ndarray) else encoded.dictionary
    codes = encoded.indices.to_numpy()
    order = sort_order(distinct)
    rank = np.empty(len(order), codes.dtype)
    rank[order] = np.arange(len(order), dtype=codes.dtype)
    first = np.empty(len(order), np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return rank[codes], first[order]


def _are_many(keys: npt.NDArray[Any]) -> bool:
    """Whether most of some numbers, evenly chosen, differ: then sorting costs less than looking each of them up."""
    some = keys[:: max(1, len(keys) // _SAMPLE_KEYS)]
    return 2 * len(np.unique(some)) > len(some) > 1


def _ranked_by_sorting(keys: npt.NDArray[Any]) -> tuple[Longs, Longs]:
    order = sort_order(keys)
    ascending = keys[order]
    is_new = np.concatenate(([True], ascending[1:] != ascending[:-1]))
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.cumsum(is_new) - 1
    return ranks, order[is_new]


def count_below(keys: Comparable, key: Any, *, inclusive: bool) -> int:
    """How many ascending keys are less than ``key``, or equal if ``inclusive``."""
    if isinstance(keys, np.ndarray):
        return int(np.searchsorted(keys, keys.dtype.type(key), "right" if inclusive else "left"))
    low, high = 0, len(keys)
    while low < high:
        middle = (low + high) // 2
        value = keys[middle].as_py()
        if value < key or (inclusive and value == key):
            low = middle + 1
        else:
            high = middle
    return low


def places_of(keys: Comparable, wanted: Comparable) -> Longs:
    """The positions, ascending, of those of the ascending keys that are among ``wanted``."""
    if isinstance(keys, np.ndarray):
        wanted = np.unique(wanted)
        at: Longs = np.asarray(np.searchsorted(keys, wanted), np.int64)
        inside = at < len(keys)
        equal: npt.NDArray[np.bool_] = np.equal(keys[at[inside]], wanted[inside])
        return at[inside][equal]
    if len(wanted) > _FEW:
        return np.flatnonzero(pc.is_in(keys, value_set=wanted).to_numpy(zero_copy_only=False))
    found = set()
    for value in wanted.to_pylist():
        place = count_below(keys, value, inclusive=False)
        if place < len(keys) and keys[place].as_py() == value:
            found.add(place)
    return np.array(sorted(found), np.int64)
