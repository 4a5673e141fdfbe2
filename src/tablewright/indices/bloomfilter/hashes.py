"""xxHash64 with seed 0 of many values at once: of their little-endian bytes, or of the bytes of text.

All values advance together. Each step takes the next bytes of those that have as many left: stripes of 32 bytes, then
words of 8, one of 4, and single bytes. So the number of numpy calls grows with the longest value, not with their count.

Specification: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md

Tests: ``tests/unit/indices/bloomfilter/test_hashes.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Hashes", "hashes_of", "supported", "xxhash64"]

Hashes = npt.NDArray[np.uint64]
_Longs = npt.NDArray[np.int64]

_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)
_STRIPE, _WORD, _HALF = 32, 8, 4


def supported(kind: pa.DataType) -> bool:
    """Whether a column of a type can have Bloom filters: numbers, dates and times of at most 64 bits, text and bytes.

    >>> supported(pa.int8()), supported(pa.bool_()), supported(pa.decimal128(9))
    (True, False, False)
    """
    types = pa.types
    if types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        return True
    if types.is_integer(kind) or types.is_float32(kind) or types.is_float64(kind):
        return True
    return bool(types.is_date(kind) or types.is_time(kind) or types.is_timestamp(kind))


def hashes_of(values: pa.Array) -> Hashes:
    """The hashes of values of a supported type, none of which is null.

    >>> [hex(value) for value in hashes_of(pa.array(["", "a"])).tolist()]
    ['0xef46db3751d8e999', '0xd24ec4f1a98c6e5b']
    """
    if not len(values):
        return np.zeros(0, np.uint64)
    kind = values.type
    if pa.types.is_primitive(kind):
        width = kind.bit_width // 8
        data, first = values.buffers()[1], values.offset * width
        assert data is not None, "fixed-width values have a buffer"
        stored = np.frombuffer(memoryview(data), np.uint8)[first : first + len(values) * width]
        return _of_numbers(stored.view(np.dtype(f"<u{width}")))
    cast = values.cast(pa.large_binary())
    _, ends, data = cast.buffers()
    assert ends is not None, "binary values have a buffer of their offsets"
    places = np.frombuffer(memoryview(ends), np.int64)[cast.offset : cast.offset + len(cast) + 1]
    return xxhash64(np.frombuffer(memoryview(data or b""), np.uint8), places[:-1], np.diff(places))


def _of_numbers(values: npt.NDArray[Any]) -> Hashes:
    """The hashes of whole numbers of at most 8 bytes: a single step, or one for each byte."""
    state = np.full(len(values), _P5, np.uint64) + np.uint64(values.dtype.itemsize)
    if values.dtype.itemsize == _WORD:
        state = _rotated(state ^ _round(np.zeros(1, np.uint64), values), 27) * _P1 + _P4
    elif values.dtype.itemsize == _HALF:
        state = _rotated(state ^ (values.astype(np.uint64) * _P1), 23) * _P2 + _P3
    else:
        for byte in range(values.dtype.itemsize):
            digit = (values.astype(np.uint64) >> np.uint64(8 * byte)) & np.uint64(0xFF)
            state = _rotated(state ^ (digit * _P5), 11) * _P1
    return _finished(state)


def xxhash64(data: npt.NDArray[np.uint8], starts: _Longs, lengths: _Longs) -> Hashes:
    """The hashes of ``data[start : start + length]``."""
    padded = np.concatenate([data, np.zeros(_WORD, np.uint8)])
    at, left = starts.astype(np.int64), lengths.astype(np.int64)
    hashes = np.full(len(at), _P5, np.uint64)
    long = np.flatnonzero(left >= _STRIPE)
    if len(long):
        hashes[long] = _stripes(padded, at[long], left[long])
        taken = left[long] // _STRIPE * _STRIPE
        at[long] += taken
        left[long] -= taken
    hashes += lengths.astype(np.uint64)
    words, halves = _view(padded, np.uint64), _view(padded, np.uint32)
    while len(some := np.flatnonzero(left >= _WORD)):
        mixed = hashes[some] ^ _round(np.zeros(len(some), np.uint64), words[at[some]])
        hashes[some] = _rotated(mixed, 27) * _P1 + _P4
        at[some] += _WORD
        left[some] -= _WORD
    some = np.flatnonzero(left >= _HALF)
    hashes[some] = _rotated(hashes[some] ^ (halves[at[some]].astype(np.uint64) * _P1), 23) * _P2 + _P3
    at[some] += _HALF
    left[some] -= _HALF
    while len(some := np.flatnonzero(left > 0)):
        hashes[some] = _rotated(hashes[some] ^ (padded[at[some]].astype(np.uint64) * _P5), 11) * _P1
        at[some] += 1
        left[some] -= 1
    return _finished(hashes)


def _stripes(padded: npt.NDArray[np.uint8], starts: _Longs, lengths: _Longs) -> Hashes:
    """The state after all whole stripes of values that have at least one."""
    order = np.argsort(-lengths, kind="stable")  # longest first: those with a stripe left are always the first ones
    at, stripes = starts[order], lengths[order] // _STRIPE
    words = _view(padded, np.uint64)
    zero = np.uint64(0)
    lanes = [np.full(len(at), start, np.uint64) for start in (_ADDED, _P2, zero, _NEGATED)]
    for stripe in range(int(stripes[0])):
        count = int(np.searchsorted(-stripes, -stripe, side="left"))
        for number, lane in enumerate(lanes):
            lane[:count] = _round(lane[:count], words[at[:count] + stripe * _STRIPE + number * _WORD])
    state = sum(
        (_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)), np.zeros(1, np.uint64)
    )
    for lane in lanes:
        state = (state ^ _round(np.zeros(len(lane), np.uint64), lane)) * _P1 + _P4
    found = np.empty(len(at), np.uint64)
    found[order] = state
    return found


_ADDED, _NEGATED = (np.array([int(_P1) + int(_P2), -int(_P1)], object) % (1 << 64)).astype(np.uint64)


def _round(state: Hashes, lane: Hashes) -> Hashes:
    return _rotated(state + lane * _P2, 31) * _P1


def _rotated(values: Hashes, bits: int) -> Hashes:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _finished(hashes: Hashes) -> Hashes:
    hashes = (hashes ^ (hashes >> np.uint64(33))) * _P2
    hashes = (hashes ^ (hashes >> np.uint64(29))) * _P3
    return hashes ^ (hashes >> np.uint64(32))


def _view(padded: npt.NDArray[np.uint8], kind: Any) -> npt.NDArray[Any]:
    """The little-endian number that begins at each byte."""
    width = np.dtype(kind).itemsize
    return np.ndarray((len(padded) - width + 1,), np.dtype(kind).newbyteorder("<"), padded, strides=(1,))
