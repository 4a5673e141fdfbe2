"""One deletion vector as a checked bin, which Paimon, Delta Lake and Iceberg share.

::

    4 bytes  size of the payload, big-endian
    payload  4 bytes magic, which tells the width, then the bitmap
    4 bytes  CRC-32 of the payload, big-endian

A **32-bit** bitmap is one portable Roaring bitmap. A **64-bit** one is a u64 count and then, per upper half of the
positions, that half as u32 and a Roaring bitmap of the lower halves, all little-endian, upper halves ascending.

What is written equals Java's bytes: every container in its smallest form, and an empty bitmap for each upper half that
has no positions below the highest. What is read may have gaps instead, and containers that are not run-optimised. The
checksum is always compared: no other reader of Paimon's files does that.

Format: ``docs/format/deletion-vectors.md#the-bin``.
"""

from __future__ import annotations

import array
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NoReturn

import numpy as np
from pyroaring import BitMap, FrozenBitMap, FrozenBitMap64

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.roaring import encode_bitmap, measure_bitmap
from tablewright.format.row_set import RowSet

__all__ = [
    "FRAME_BYTES",
    "Bin",
    "Width",
    "decode_bin",
    "decode_bin_at",
    "decode_payload",
    "encode_bin",
    "encode_payload",
]

Width = Literal[32, 64]

FRAME_BYTES = 8  # the size before and the checksum after the payload

_MAGIC: dict[Width, bytes] = {32: bytes.fromhex("5e43f2d0"), 64: bytes.fromhex("d1d33964")}
_MAGIC_BYTES = 4
_KEY_BYTES = 4
_EMPTY_BITMAP = bytes.fromhex("3a30000000000000")
_FILLER = np.dtype([("key", "<u4"), ("bitmap", "<u8")])  # as many bytes as an empty bitmap
_BIN_BYTES_MAX = 2**31 - 1
_LAST_POSITION: dict[Width, int] = {32: 2**31 - 1, 64: (2**31 - 2) << 32 | 0x80000000}  # as in Java
_LAST_KEY = 2**31 - 2


@dataclass(frozen=True, slots=True)
class Bin:
    """A decoded bin: its vector, the width of its bitmap, and the bytes of its payload."""

    vector: RowSet
    width: Width
    payload_size: int

    @property
    def size(self) -> int:
        """The bytes that the whole bin takes."""
        return self.payload_size + FRAME_BYTES


# ------------------------------------------------------------------------------------------------------------- encoding
def encode_bin(vector: RowSet, width: Width = 32) -> bytes:
    """The bin of a vector, size and checksum included; :class:`InvalidRequest` where the width can't hold it.

    >>> encode_bin(RowSet.of([0, 2, 5, 9])).hex()
    '0000001c5e43f2d03a30000001000000000003001000000000000200050009003060e19c'
    """
    payload = encode_payload(vector, width)
    return struct.pack(">I", len(payload)) + payload + struct.pack(">I", zlib.crc32(payload))


def encode_payload(vector: RowSet, width: Width) -> bytes:
    """Magic and bitmap alone, as they stand inside a bin or inline in a Delta log.

    >>> encode_payload(RowSet.of(range(1, 9)), 64).hex()
    'd1d339640100000000000000000000003b3000000100000700010001000700'
    """
    if width not in _MAGIC:
        raise InvalidRequest(f"A bitmap is 32 or 64 bits wide, not {width!r}.")
    last = vector.last
    if last is not None and last > _LAST_POSITION[width]:
        raise InvalidRequest(
            f"A {width}-bit deletion vector ends at position {_LAST_POSITION[width]}; this one reaches {last}."
            + (" Write it with 64 bits." if width == 32 else "")
        )
    if width == 32:
        return _MAGIC[32] + _smallest(vector.bitmap.to_array())
    if last is not None and ((last >> 32) + 1) * _FILLER.itemsize > _BIN_BYTES_MAX:
        raise InvalidRequest(f"A bin takes at most 2 GiB; position {last} needs more than that in empty bitmaps.")
    payload = b"".join([_MAGIC[64], struct.pack("<Q", 0 if last is None else (last >> 32) + 1), *_parts(vector)])
    if len(payload) + FRAME_BYTES > _BIN_BYTES_MAX:
        raise InvalidRequest(f"A bin takes at most 2 GiB; this one would have {len(payload) + FRAME_BYTES} bytes.")
    return payload


def _smallest(positions: array.array[int]) -> bytes:
    # From plain arrays: a run that is no longer than its array stays what it was, and equal sets would differ in bytes.
    bitmap = BitMap(positions, optimize=False)
    bitmap.run_optimize()
    return encode_bitmap(bitmap)


def _parts(vector: RowSet) -> Iterator[bytes]:
    """Key and bitmap of each upper half, with empty ones in the gaps."""
    positions = vector.to_numpy().view(np.uint64)
    keys, firsts = np.unique(positions >> np.uint64(32), return_index=True)
    bounds = np.append(firsts, len(positions))
    next_key = 0
    for number, key in enumerate(keys.tolist()):
        gap = np.empty(key - next_key, _FILLER)
        gap["key"], gap["bitmap"] = np.arange(next_key, key), int.from_bytes(_EMPTY_BITMAP, "little")
        yield gap.tobytes()
        yield struct.pack("<I", key)
        lower = (positions[bounds[number] : bounds[number + 1]] & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        yield _smallest(array.array("I", lower.tobytes()))
        next_key = key + 1


# ------------------------------------------------------------------------------------------------------------- decoding
def decode_bin(data: bytes | memoryview, *, path: str, bin: int | str, width: Width | None = None) -> RowSet:
    """The vector in the bytes of exactly one bin; :class:`CorruptTable` naming file and bin for anything else.

    The magic tells the width; a given ``width`` refuses the other one.

    >>> decode_bin(encode_bin(RowSet.of([7]), 64), path="index-1", bin=0).to_numpy().tolist()
    [7]
    """
    found = decode_bin_at(data, 0, path=path, bin=bin, width=width)
    if found.size != len(data):
        _corrupt(path, bin, f"it takes {found.size} bytes where {len(data)} were expected")
    return found.vector


def decode_bin_at(
    data: bytes | memoryview, offset: int, *, path: str, bin: int | str, width: Width | None = None
) -> Bin:
    """The bin that begins at ``offset``; other bytes may follow it.

    >>> decode_bin_at(b"abc" + encode_bin(RowSet.of([7]), 32) + b"d", 3, path="index-1", bin=0).width
    32
    """
    view = memoryview(data)[offset:] if offset >= 0 else memoryview(b"")
    if len(view) < FRAME_BYTES:
        _corrupt(path, bin, f"there are {len(data)} bytes in all, too few for a bin that begins at byte {offset}")
    (size,) = struct.unpack_from(">I", view)
    if size + FRAME_BYTES > min(len(view), _BIN_BYTES_MAX):
        _corrupt(path, bin, f"its size field claims {size} bytes where {len(view) - FRAME_BYTES} are left")
    payload, (stored,) = view[4 : 4 + size], struct.unpack_from(">I", view, 4 + size)
    computed = zlib.crc32(payload)
    if stored != computed:
        _corrupt(path, bin, f"its checksum (CRC-32) is stored as {stored:08x}, but its bytes give {computed:08x}")
    vector, found = _decode_payload(payload, path, bin, width)
    return Bin(vector, found, size)


def decode_payload(data: bytes | memoryview, *, path: str, bin: int | str, width: Width | None = None) -> RowSet:
    """The vector in magic and bitmap alone, where nothing but their own structure can be checked.

    >>> decode_payload(encode_payload(RowSet.of([7]), 64), path="log", bin="inline").to_numpy().tolist()
    [7]
    """
    return _decode_payload(memoryview(data), path, bin, width)[0]


def _decode_payload(payload: memoryview, path: str, bin: int | str, wanted: Width | None) -> tuple[RowSet, Width]:
    magic = bytes(payload[:_MAGIC_BYTES])
    width = next((width for width, known in _MAGIC.items() if known == magic), None)
    if width is None:
        _corrupt(path, bin, f"no deletion vector begins with the magic bytes {magic.hex() or '(none)'}")
    if wanted is not None and wanted != width:
        _corrupt(path, bin, f"it holds a {width}-bit bitmap where only {wanted} bits are allowed")
    try:
        vector = (_decode_32 if width == 32 else _decode_64)(payload[_MAGIC_BYTES:])
    except ValueError as error:
        _corrupt(path, bin, str(error))
    if vector.last is not None and vector.last > _LAST_POSITION[width]:
        _corrupt(path, bin, f"position {vector.last} lies beyond {_LAST_POSITION[width]}, the last of {width} bits")
    return vector, width


def _decode_32(data: memoryview) -> RowSet:
    return RowSet.from_bytes(bytes(data))


def _decode_64(data: memoryview) -> RowSet:
    if len(data) < 8:
        raise ValueError("the count of its bitmaps is cut off")
    (count,) = struct.unpack_from("<Q", data)
    if count * _FILLER.itemsize > len(data) - 8:
        raise ValueError(f"it claims {count} bitmaps in {len(data)} bytes")
    at, last_key = 8, -1
    below, beyond = FrozenBitMap(), list[memoryview]()
    for _ in range(count):
        if len(data) < at + _KEY_BYTES:
            raise ValueError("its bitmaps end too early")
        (key,) = struct.unpack_from("<I", data, at)
        if not last_key < key <= _LAST_KEY:
            raise ValueError(f"bitmap {key} follows bitmap {last_key}: they have to ascend, up to {_LAST_KEY}")
        begin, last_key = at + _KEY_BYTES, key
        if data[begin : begin + len(_EMPTY_BITMAP)] == _EMPTY_BITMAP:
            at = begin + len(_EMPTY_BITMAP)
            continue
        end = begin + measure_bitmap(data[begin:])
        if key:
            beyond.append(data[at:end])
        else:
            below = FrozenBitMap.deserialize(bytes(data[begin:end]))
        at = end
    if at != len(data):
        raise ValueError(f"{len(data) - at} bytes follow its last bitmap")
    if not beyond:
        return RowSet(below)
    return RowSet(below, FrozenBitMap64.deserialize(b"".join([struct.pack("<Q", len(beyond)), *beyond])))


def _corrupt(path: str, bin: int | str, problem: str) -> NoReturn:
    raise CorruptTable(path, (f"bin {bin}: {problem}",))
