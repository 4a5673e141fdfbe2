"""Which keys a condition on a column asks for.

Filters see floats a little differently than the order of their bits does: -0.0 equals 0.0, and NaN, of either sign, is
greater than every number. So bounds move to the outer or inner zero, and negative NaNs, which come first in the order
of bits, count as the last keys.

Tests: ``tests/property/test_key_set_indices.py``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tablewright.indices.btree.keys import fitted
from tablewright.indices.key_sets.lookup import KeyList
from tablewright.indices.key_sets.order import Longs, comparable, count_below, places_of
from tablewright.indices.query import Between, IsIn, StartsWith

__all__ = ["keys_between", "keys_in", "keys_with_prefix"]


def keys_in(keys: KeyList, query: IsIn) -> Longs:
    """The rows of the file whose key is one of the values."""
    wanted = fitted(query.values, keys.type).drop_null()
    if pa.types.is_floating(keys.type):
        wanted = _both_zeros(wanted)
    return keys.rows[places_of(keys.sorted, comparable(wanted))]


def _both_zeros(values: pa.Array) -> pa.Array:
    numbers = values.to_numpy(zero_copy_only=False)
    if not np.any(numbers == 0):
        return values
    return pa.concat_arrays([values, pa.array(np.array([0.0, -0.0], numbers.dtype), values.type)])


def keys_between(keys: KeyList, query: Between) -> Longs:
    """The rows of the file whose key is within the bounds."""
    if pa.types.is_floating(keys.type):
        return _floats_between(keys, query)
    low, high = _bound(keys, query.low), _bound(keys, query.high)
    start = 0 if low is None else count_below(keys.sorted, low, inclusive=not query.low_inclusive)
    stop = len(keys.sorted) if high is None else count_below(keys.sorted, high, inclusive=query.high_inclusive)
    return keys.rows[start:stop]


def _bound(keys: KeyList, value: pa.Scalar | None) -> object:
    if value is None:
        return None
    found = comparable(fitted(pa.array([value.as_py()], value.type), keys.type))[0]
    return found.as_py() if isinstance(found, pa.Scalar) else found


def _floats_between(keys: KeyList, query: Between) -> Longs:
    kind = keys.type
    special = pa.array([np.inf, -np.inf, 0.0, -0.0], pa.float32()).cast(kind)
    highest, lowest, zero, minus_zero = comparable(special).tolist()
    first = count_below(keys.sorted, lowest, inclusive=False)  # negative NaNs come before
    last = count_below(keys.sorted, highest, inclusive=True)  # positive ones from here on
    order = np.concatenate([np.arange(first, len(keys.sorted)), np.arange(first)])
    numbers = last - first

    def place(value: pa.Scalar, outer: bool, low: bool) -> int:
        """How many keys come before a bound; ``outer``: equal keys are after a low, before a high bound."""
        number = value.as_py()
        equal_before = outer != low
        if number is None or np.isnan(number):
            return len(order) if equal_before else numbers
        bits = comparable(pa.array([number], value.type).cast(kind))[0]
        if number == 0:
            bits = zero if equal_before else minus_zero
        return count_below(keys.sorted, bits, inclusive=equal_before) - first

    start = 0 if query.low is None else place(query.low, query.low_inclusive, True)
    stop = len(order) if query.high is None else place(query.high, query.high_inclusive, False)
    return keys.rows[order[start:stop]] if start < stop else keys.rows[:0]


def keys_with_prefix(keys: KeyList, query: StartsWith) -> Longs:
    """The rows of the file whose key begins with the prefix."""
    prefix = query.prefix.encode()
    start = count_below(keys.sorted, prefix, inclusive=False)
    after = _after_prefix(prefix)
    stop = len(keys.sorted) if after is None else count_below(keys.sorted, after, inclusive=False)
    return keys.rows[start:stop]


def _after_prefix(prefix: bytes) -> bytes | None:
    """The least bytes that are greater than all that begin with ``prefix``; ``None`` if there are none.

    >>> _after_prefix(b"ab"), _after_prefix(b"a" + bytes([255])), _after_prefix(bytes([255]))
    (b'ac', b'b', None)
    """
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else None
