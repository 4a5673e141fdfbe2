"""Portable 32-bit Roaring bitmaps: checked bytes to a frozen set of numbers and back.

pyroaring does not validate its input: a container that claims fewer values than it holds makes it write out of
bounds. So every length, count and order is checked here first. The layout, all little-endian:

1. Cookie ``0x303A`` and u32 container count; or u16 ``0x303B``, u16 count - 1 and a bit per container that is a run.
2. Per container u16 key, u16 cardinality - 1. Keys ascend.
3. u32 offset per container (left out with cookie ``0x303B`` and fewer than 4 containers).
4. The containers: runs (u16 count, then pairs of start and length - 1), else up to 4096 values as u16, else 8192 bytes
   of bits.

Format: ``docs/format/table.md#roaring-bitmaps``.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, FrozenBitMap

__all__ = ["decode_bitmap", "encode_bitmap", "measure_bitmap"]

_COOKIE_PLAIN, _COOKIE_RUNS = 0x303A, 0x303B
_CONTAINERS_MAX = 1 << 16
_ARRAY_VALUES_MAX = 4096
_BITSET_BYTES = 8192
_OFFSETS_FROM = 4


def encode_bitmap(values: FrozenBitMap | BitMap) -> bytes:
    """The portable bytes of a bitmap; runs stay runs, nothing is rearranged."""
    return bytes(values.serialize())


def decode_bitmap(data: bytes, values_max: int | None = None) -> FrozenBitMap:
    """The bitmap in ``data``. Raises ``ValueError`` with the reason if the bytes are anything else.

    ``values_max`` refuses a bitmap that counts more values, after reading its header alone: as runs, all 2**32 of
    them take less than a megabyte.

    >>> sorted(decode_bitmap(bytes.fromhex("3b3000000100000400010000000400")))
    [0, 1, 2, 3, 4]
    """
    size = measure_bitmap(data, values_max)
    if size != len(data):
        raise ValueError(f"the roaring bitmap has {len(data)} bytes where {size} were expected")
    return FrozenBitMap.deserialize(data)


def measure_bitmap(data: bytes | memoryview, values_max: int | None = None) -> int:
    """How many bytes the bitmap takes with which ``data`` begins, all of it checked; else ``ValueError``.

    >>> measure_bitmap(bytes.fromhex("3b3000000100000400010000000400") + b"what follows")
    15
    """
    try:
        return _check(data, values_max)
    except struct.error as error:
        raise ValueError("the roaring bitmap ends too early") from error


def _check(data: bytes | memoryview, values_max: int | None) -> int:
    count, is_run, at = _header(data)
    pairs = _numbers(data, at, 2 * count)
    at += 4 * count
    keys, sizes = pairs[0::2], pairs[1::2].astype(np.int64) + 1
    if values_max is not None and (values := int(sizes.sum())) > values_max:
        raise ValueError(f"the roaring bitmap counts {values} values where there can be at most {values_max}")
    if np.any(keys[1:] <= keys[:-1]):
        raise ValueError("the containers of the roaring bitmap are not in order")
    if is_run is None or count >= _OFFSETS_FROM:
        offsets = at
        at += 4 * count
    else:
        offsets = None
    begins = []
    for number in range(count):
        begins.append(at)
        at = _container(data, at, int(sizes[number]), is_run is not None and bool(is_run[number]))
    if offsets is not None:
        stored = np.frombuffer(data, dtype="<u4", count=count, offset=offsets)
        if not np.array_equal(stored, np.array(begins, dtype=np.int64)):
            raise ValueError("the offsets of the roaring bitmap do not point to its containers")
    return at


def _header(data: bytes | memoryview) -> tuple[int, npt.NDArray[np.uint8] | None, int]:
    """Number of containers, which of them are runs (``None`` without runs), and where the keys begin."""
    (cookie,) = struct.unpack_from("<I", data, 0)
    if cookie == _COOKIE_PLAIN:
        (count,) = struct.unpack_from("<I", data, 4)
        if count > _CONTAINERS_MAX:
            raise ValueError(f"the roaring bitmap claims {count} containers")
        return int(count), None, 8
    if cookie & 0xFFFF != _COOKIE_RUNS:
        raise ValueError(f"no roaring bitmap begins with {data[:4].hex()}")
    count = (cookie >> 16) + 1
    width = (count + 7) // 8
    if len(data) < 4 + width:
        raise ValueError("the roaring bitmap ends too early")
    flags = np.unpackbits(np.frombuffer(data, np.uint8, count=width, offset=4), bitorder="little")
    return count, flags, 4 + width


def _container(data: bytes | memoryview, at: int, size: int, is_run: bool) -> int:
    """Check one container of ``size`` values that begins at ``at``; return where it ends."""
    if is_run:
        (runs,) = struct.unpack_from("<H", data, at)
        pairs = _numbers(data, at + 2, 2 * runs).astype(np.int64)
        first, last = pairs[0::2], pairs[0::2] + pairs[1::2]
        if np.any(first[1:] <= last[:-1] + 1) or (runs and last[-1] > 0xFFFF):
            raise ValueError("the runs of a roaring container overlap or touch")
        if int((last - first + 1).sum()) != size:
            raise ValueError("the runs of a roaring container do not add up to its cardinality")
        return at + 2 + 4 * int(runs)
    if size <= _ARRAY_VALUES_MAX:
        values = _numbers(data, at, size)
        if np.any(values[1:] <= values[:-1]):
            raise ValueError("the values of a roaring container are not in order")
        return at + 2 * size
    if len(data) < at + _BITSET_BYTES:
        raise ValueError("the roaring bitmap ends too early")
    if int(np.unpackbits(np.frombuffer(data, np.uint8, count=_BITSET_BYTES, offset=at)).sum()) != size:
        raise ValueError("the bits of a roaring container do not add up to its cardinality")
    return at + _BITSET_BYTES


def _numbers(data: bytes | memoryview, at: int, count: int) -> npt.NDArray[np.uint16]:
    if len(data) < at + 2 * count:
        raise ValueError("the roaring bitmap ends too early")
    return np.frombuffer(data, dtype="<u2", count=count, offset=at)
