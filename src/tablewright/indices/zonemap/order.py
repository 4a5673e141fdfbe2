"""The order of values in a zone map, and the smallest and largest of consecutive values.

Numbers, times, text and bytes have the order of Arrow. Floats have the *total order* of their bits, as filters compare
them: negative NaN, -inf, …, -0.0, 0.0, …, inf, NaN. Other types (lists, structs) have none: their zones have no bounds.

Tests: ``tests/unit/indices/zonemap/test_order.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablewright.indices.zones.summary import Bounds

__all__ = ["floats_of", "has_order", "keys_of", "lowest_and_highest", "ranks"]

_BITS: dict[int, tuple[pa.DataType, Any, Any]] = {
    16: (pa.int16(), np.int16, np.float16),
    32: (pa.int32(), np.int32, np.float32),
    64: (pa.int64(), np.int64, np.float64),
}


def has_order(kind: pa.DataType) -> bool:
    """Whether values of a type can be compared; dictionaries as their values.

    >>> has_order(pa.string()), has_order(pa.list_(pa.int8()))
    (True, False)
    """
    types = pa.types
    if types.is_dictionary(kind):
        return has_order(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        return True
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_fixed_size_binary(kind):
        return True
    return (types.is_temporal(kind) and not types.is_interval(kind)) or types.is_decimal(kind)


def keys_of(floats: pa.Array) -> npt.NDArray[np.int64]:
    """Whole numbers in the total order of floats; of null any number.

    >>> keys_of(pa.array([-1.0, -0.0, 0.0, 1.0])).argsort().tolist()
    [0, 1, 2, 3]
    """
    whole, _, _ = _BITS[floats.type.bit_width]
    return _turned(pc.fill_null(floats.view(whole), 0).to_numpy()).astype(np.int64)


def floats_of(keys: npt.NDArray[np.int64], kind: pa.DataType) -> npt.NDArray[Any]:
    """The floats with these keys."""
    _, whole, number = _BITS[kind.bit_width]
    return _turned(keys.astype(whole)).view(number)


def _turned(bits: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """All bits below the sign inverted where it is set; the inverse of itself."""
    width = bits.dtype.itemsize * 8
    turned: npt.NDArray[Any] = bits ^ ((bits >> bits.dtype.type(width - 1)) & bits.dtype.type(np.iinfo(bits.dtype).max))
    return turned


def ranks(*arrays: pa.Array) -> list[npt.NDArray[np.int64]]:
    """Values of one type without nulls as whole numbers in their order, so that all arrays can be compared.

    >>> ranks(pa.array(["b"]), pa.array(["a", "c"]))
    [array([2]), array([1, 3])]
    """
    if pa.types.is_floating(arrays[0].type):
        return [keys_of(array) for array in arrays]
    together = pa.concat_arrays(arrays)
    found = pc.rank(together, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
    return np.split(found, np.cumsum([len(array) for array in arrays])[:-1])


def lowest_and_highest(values: pa.Array, bounds: Bounds) -> tuple[pa.Array, pa.Array]:
    """The smallest and largest value of each group, null for a group of nulls; floats in their total order."""
    kind = values.type
    if not has_order(kind):
        return pa.nulls(len(bounds), kind), pa.nulls(len(bounds), kind)
    if pa.types.is_floating(kind):
        return _extremes_of_floats(values, bounds)
    bare = values.view(pa.int64()) if pa.types.is_duration(kind) else values
    stops = [*bounds[1:].tolist(), len(values)]
    found = [pc.min_max(bare.slice(start, stop - start)) for start, stop in zip(bounds.tolist(), stops, strict=True)]
    low, high = (pa.array([each[name] for each in found], bare.type) for name in ("min", "max"))
    return (low.view(kind), high.view(kind)) if pa.types.is_duration(kind) else (low, high)


def _extremes_of_floats(values: pa.Array, bounds: Bounds) -> tuple[pa.Array, pa.Array]:
    keys, valid = keys_of(values), values.is_valid().to_numpy(zero_copy_only=False)
    limits = np.iinfo(np.int64)
    low = np.minimum.reduceat(np.where(valid, keys, limits.max), bounds)
    high = np.maximum.reduceat(np.where(valid, keys, limits.min), bounds)
    empty = ~np.logical_or.reduceat(valid, bounds)
    edges = (floats_of(np.where(empty, 0, each), values.type) for each in (low, high))
    lowest, highest = (pa.array(edge, values.type, mask=empty) for edge in edges)
    return lowest, highest
