"""Keys in the type of an index: cast if every key stays what it is, refused otherwise."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tablewright.errors import InvalidRequest
from tablewright.indices.btree.order import order_of

__all__ = ["fitted"]


def fitted(keys: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """``keys`` in the type ``kind``; InvalidRequest if some would not be the same afterwards.

    >>> fitted(pa.array([1, None], pa.int8()), pa.int64()).type
    DataType(int64)
    """
    return _fitted(keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys, kind)


def _fitted(keys: pa.Array, kind: pa.DataType) -> pa.Array:
    if isinstance(keys, pa.ExtensionArray):
        keys = keys.storage
    if isinstance(keys, pa.DictionaryArray):
        keys = keys.dictionary_decode()
    if keys.type == kind:
        return keys
    if pa.types.is_null(keys.type):
        return pa.nulls(len(keys), kind)
    if not _family(kind) or _family(keys.type) != _family(kind):
        raise InvalidRequest(f"Keys of type {keys.type} can't be looked up in an index of {kind} values.")
    try:
        cast = keys.cast(kind)
        lossless = _is_checked_by_arrow(keys.type, kind) or _same(cast.cast(keys.type), keys)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidRequest(f"Keys of type {keys.type} do not fit an index of {kind} values: {error}") from error
    if not lossless:
        raise InvalidRequest(f"Keys of type {keys.type} would change as {kind}, the type of the index.")
    return cast


def _is_checked_by_arrow(one: pa.DataType, other: pa.DataType) -> bool:
    """Between integers and decimals a cast fails where it would lose something, and may have no way back."""
    return all(pa.types.is_integer(kind) or pa.types.is_decimal(kind) for kind in (one, other))


def _same(one: pa.Array, other: pa.Array) -> bool:
    if not pa.types.is_floating(one.type):
        return bool(one.equals(other))
    order = order_of(one.type)  # NaN is the same as itself here
    return order is not None and np.array_equal(order.values(one.drop_null()), order.values(other.drop_null()))


def _family(kind: pa.DataType) -> str:
    """Types of one family may be cast to each other; empty for types that no BTREE holds."""
    types = pa.types
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "instant"
    families = {
        "boolean": (types.is_boolean,),
        "number": (types.is_integer, types.is_floating, types.is_decimal),
        "text": (types.is_string, types.is_large_string, types.is_string_view),
        "bytes": (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary),
        "date": (types.is_date,),
        "time": (types.is_time,),
        "duration": (types.is_duration,),
    }
    return next((name for name, checks in families.items() if any(check(kind) for check in checks)), "")
