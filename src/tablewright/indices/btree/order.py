"""The order of values in a BTREE: what is equal, what comes first, and how two values are compared without looping.

Lance sorts numbers by value, floats by the *total order* of their bits (-NaN, -inf, ..., -0.0, 0.0, ..., inf, NaN) and
everything else by bytes. Two values are equal if nothing in that order separates them: -0.0 is not 0.0, and NaN equals
the NaN with the same bits. pylance's merge sees it the same way (its filters don't).

Values have one of two representations, each with its own search:

- *numbers* (also dates, times, booleans): a numpy array of integers in that order;
- *bytes* (text, binary, decimals as big-endian numbers): an Arrow array of ``large_binary``. To compare many with many,
  the 8 bytes after a prefix that both sides share are compared as one number. Where those are equal the answer is
  "unknown", which a search treats as "may be here".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Comparison", "Longs", "Order", "equal_values", "order_of", "spread"]

Longs = npt.NDArray[np.int64]
Comparison = Callable[[Any, Longs], npt.NDArray[np.int8]]

_PREFIX_MAX = 256
_CODE_BYTES = 8


class Order(Protocol):
    """Values of one type. What :meth:`values` returns is handed back to the other methods, and is never null."""

    def values(self, array: pa.Array) -> Any:
        """An Arrow array without nulls, ready to be compared."""

    def bounds(self, array: pa.Array) -> Any:
        """Like :meth:`values`, with the smallest of all values for null."""

    def distinct(self, keys: Any) -> tuple[Any, Longs]:
        """The different keys, ascending, and for each key which of them it is."""

    def places(self, keys: Any, lows: Any, highs: Any) -> tuple[Longs, Longs]:
        """First and last (included) interval that may hold each key; last is below first where none does.

        Intervals ascend and may touch; ``ValueError`` if they don't.
        """

    def pick(self, values: Any, indices: npt.NDArray[Any]) -> Any:
        """The values at ``indices``."""

    def comparison(self, keys: Any, lows: Any, highs: Any) -> Comparison:
        """Compares key i, which lies between ``lows[i]`` and ``highs[i]``, with values that do too.

        The function takes values and a matrix of their indices, one row per key: -1 where the value comes before the
        key, 1 where it comes after, 0 where they are equal or it is not known.
        """

    def matches(self, keys: Any, values: Any) -> tuple[Longs, Longs]:
        """Which ascending values equal one of the distinct keys, and which key; ``ValueError`` if they don't ascend."""


# ------------------------------------------------------------------------------------------------------------- numbers
class _Numbers:
    """Values that are integers of at most 64 bits, or become such."""

    def values(self, array: pa.Array) -> npt.NDArray[Any]:
        kind = array.type
        if pa.types.is_boolean(kind):
            array = array.cast(pa.uint8())
            kind = array.type
        if kind == pa.uint64():
            return array.to_numpy()
        if pa.types.is_unsigned_integer(kind):
            return array.to_numpy().astype(np.int64)
        bits = array.view({16: pa.int16(), 32: pa.int32(), 64: pa.int64(), 8: pa.int8()}[kind.bit_width]).to_numpy()
        if pa.types.is_floating(kind):
            magnitude = bits.dtype.type(np.iinfo(bits.dtype).max)
            bits = bits ^ ((bits >> bits.dtype.type(kind.bit_width - 1)) & magnitude)
        return bits.astype(np.int64, copy=False)

    def bounds(self, array: pa.Array) -> npt.NDArray[Any]:
        if not array.null_count:
            return self.values(array)
        present = self.values(array.drop_null())
        filled = np.full(len(array), np.iinfo(present.dtype).min, present.dtype)
        filled[array.is_valid().to_numpy(zero_copy_only=False)] = present
        return filled

    def distinct(self, keys: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Longs]:
        return np.unique(keys, return_inverse=True)

    def places(self, keys: Any, lows: Any, highs: Any) -> tuple[Longs, Longs]:
        return _places(keys, lows, highs)

    def pick(self, values: npt.NDArray[Any], indices: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values[indices]  # type: ignore[no-any-return]

    def comparison(self, keys: npt.NDArray[Any], lows: Any, highs: Any) -> Comparison:
        def compare(values: npt.NDArray[Any], which: Longs) -> npt.NDArray[np.int8]:
            return _signs(values[which], keys[:, np.newaxis])

        return compare

    def matches(self, keys: npt.NDArray[Any], values: npt.NDArray[Any]) -> tuple[Longs, Longs]:
        if not len(values):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if np.any(values[1:] < values[:-1]):
            raise ValueError("its values are not in order")
        low, high = np.searchsorted(keys, values[0], "left"), np.searchsorted(keys, values[-1], "right")
        begins = np.searchsorted(values, keys[low:high], "left")
        counts = np.searchsorted(values, keys[low:high], "right") - begins
        return spread(begins, counts), np.repeat(np.arange(low, high), counts)


# --------------------------------------------------------------------------------------------------------------- bytes
class _Bytes:
    """Values that compare byte by byte."""

    def values(self, array: pa.Array) -> pa.Array:
        if pa.types.is_decimal(array.type):
            return _big_endian(array)
        return array.cast(pa.large_binary())

    def bounds(self, array: pa.Array) -> pa.Array:
        present = self.values(array.drop_null())
        places = pc.subtract(pc.cumulative_sum(array.is_valid().cast(pa.int64())), 1)
        return pc.fill_null(present.take(pc.if_else(array.is_valid(), places, None)), b"")

    def distinct(self, keys: pa.Array) -> tuple[pa.Array, Longs]:
        encoded = keys.dictionary_encode()
        order = pc.sort_indices(encoded.dictionary).to_numpy()
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return encoded.dictionary.take(pa.array(order)), rank[encoded.indices.to_numpy()]

    def places(self, keys: pa.Array, lows: pa.Array, highs: pa.Array) -> tuple[Longs, Longs]:
        together = pa.concat_arrays([keys, lows, highs])
        ranks = pc.rank(together, sort_keys="ascending", tiebreaker="dense").to_numpy().astype(np.int64)
        return _places(*np.split(ranks, [len(keys), len(keys) + len(lows)]))

    def pick(self, values: pa.Array, indices: npt.NDArray[Any]) -> pa.Array:
        return values.take(pa.array(indices))

    def comparison(self, keys: pa.Array, lows: pa.Array, highs: pa.Array) -> Comparison:
        shared = _shared_prefixes(lows, highs)
        ours = _codes(keys, np.arange(len(keys)), shared)[:, np.newaxis]

        def compare(values: pa.Array, which: Longs) -> npt.NDArray[np.int8]:
            skip = np.broadcast_to(shared[:, np.newaxis], which.shape)
            return _signs(_codes(values, which.ravel(), skip.ravel()).reshape(which.shape), ours)

        return compare

    def matches(self, keys: pa.Array, values: pa.Array) -> tuple[Longs, Longs]:
        if not len(values):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        low, high = pc.sum(pc.less(keys, values[0])).as_py(), pc.sum(pc.less_equal(keys, values[-1])).as_py()
        found = pc.index_in(values, value_set=keys[low:high])
        rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        return rows, found.drop_null().to_numpy().astype(np.int64) + low


def _big_endian(array: pa.Array) -> pa.Array:
    """Decimals as bytes that sort as they do: the highest byte first, its sign bit inverted."""
    if not len(array):
        return pa.array([], pa.large_binary())
    width = array.type.byte_width
    digits = array.buffers()[1]
    assert digits is not None, "decimals have a buffer of their digits"
    stored = np.frombuffer(memoryview(digits), np.uint8).reshape(-1, width)[array.offset : array.offset + len(array)]
    turned = stored[:, ::-1].copy()
    turned[:, 0] ^= 0x80
    offsets = np.arange(len(array) + 1, dtype=np.int64) * width
    return pa.Array.from_buffers(pa.large_binary(), len(array), [None, pa.py_buffer(offsets), pa.py_buffer(turned)])


def _characters(array: pa.Array, which: Longs, skip: Longs, width: int) -> npt.NDArray[np.uint8]:
    """``width`` bytes after the first ``skip`` of the values at ``which``, padded with zeros."""
    _, offsets_buffer, data_buffer = array.buffers()
    assert offsets_buffer is not None, "binary values have a buffer of their offsets"
    offsets = np.frombuffer(memoryview(offsets_buffer), np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(memoryview(data_buffer or b""), np.uint8)
    starts, ends = offsets[:-1][which] + skip, offsets[1:][which]
    at = starts[:, np.newaxis] + np.arange(width)
    inside = at < ends[:, np.newaxis]
    found = np.zeros(at.shape, np.uint8)
    found[inside] = data[at[inside]]
    return found


def _codes(array: pa.Array, which: Longs, skip: Longs) -> npt.NDArray[np.uint64]:
    return _characters(array, which, skip, _CODE_BYTES).view(">u8").ravel().astype(np.uint64)


def _shared_prefixes(lows: pa.Array, highs: pa.Array) -> Longs:
    """How many bytes all values from low to high begin with in common, looked for in the first 256.

    Shorter values are padded with zeros, as in the codes, so they never compare greater.
    """
    everything, nothing = np.arange(len(lows)), np.zeros(len(lows), np.int64)
    width = min(_PREFIX_MAX, max(1, pc.max(pc.binary_length(highs)).as_py() or 0))
    differs = _characters(lows, everything, nothing, width) != _characters(highs, everything, nothing, width)
    return np.where(differs.any(axis=1), differs.argmax(axis=1), width)


# -------------------------------------------------------------------------------------------------------------- shared
def spread(begins: Longs, counts: Longs) -> Longs:
    """The numbers of all runs, one run after the other.

    >>> spread(np.array([5, 20]), np.array([3, 2])).tolist()
    [5, 6, 7, 20, 21]
    """
    before = np.cumsum(counts) - counts
    return np.repeat(begins - before, counts) + np.arange(int(counts.sum()))


def _signs(values: npt.NDArray[Any], keys: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    return (values > keys).astype(np.int8) - (values < keys).astype(np.int8)


def _places(keys: npt.NDArray[Any], lows: npt.NDArray[Any], highs: npt.NDArray[Any]) -> tuple[Longs, Longs]:
    if np.any(lows > highs) or np.any(lows[1:] < highs[:-1]):
        raise ValueError("its pages are not in order")
    return np.searchsorted(highs, keys, "left"), np.searchsorted(lows, keys, "right") - 1


def equal_values(one: Any, other: Any) -> npt.NDArray[np.bool_]:
    """Where two columns of values, as an order made them, are equal."""
    same = one == other if isinstance(one, np.ndarray) else pc.equal(one, other).to_numpy(zero_copy_only=False)
    return np.asarray(same, np.bool_)


def order_of(kind: pa.DataType) -> Order | None:
    """The order of a type; ``None`` if a BTREE can't hold it."""
    types = pa.types
    if types.is_decimal(kind) or types.is_fixed_size_binary(kind):
        return _Bytes()
    if kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        return _Bytes()
    is_number = types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_temporal(kind)
    return _Numbers() if is_number and not types.is_interval(kind) else None
