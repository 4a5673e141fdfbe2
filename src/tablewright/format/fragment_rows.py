"""Rows of several fragments as bitmaps of offsets: the row-address map of index files, kept by fragment.

Layout, little-endian: u32 count; for each fragment, ascending, u32 id, u32 length and that many bytes: the portable
Roaring bitmap of offsets. Length 0 means every row of the fragment. Nothing is expanded to addresses until asked for.

Format: ``docs/format/indices.md#zones``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from tablewright.format.roaring import decode_bitmap, encode_bitmap

__all__ = ["FragmentRows", "addresses_of", "decode_fragment_rows", "encode_fragment_rows"]

FragmentRows = dict[int, BitMap]
"""Offsets of rows by fragment id."""

_COUNT, _HEAD = struct.Struct("<I"), struct.Struct("<II")


def encode_fragment_rows(rows: Mapping[int, BitMap]) -> bytes:
    """The bytes of a map; fragments without rows are left out.

    >>> encode_fragment_rows({3: BitMap([5]), 0: BitMap()}).hex()
    '0100000003000000120000003a3000000100000000000000100000000500'
    """
    filled = {id: offsets for id, offsets in sorted(rows.items()) if offsets}
    parts = [_COUNT.pack(len(filled))]
    for fragment_id, offsets in filled.items():
        data = encode_bitmap(BitMap(offsets.to_array(), optimize=False))  # without runs, as others write it
        parts += [_HEAD.pack(fragment_id, len(data)), data]
    return b"".join(parts)


def decode_fragment_rows(data: bytes) -> dict[int, BitMap | None]:
    """The map in ``data``; ``None`` stands for every row of a fragment.

    Raises ``ValueError`` with the reason if the bytes are anything else.

    >>> decode_fragment_rows(encode_fragment_rows({3: BitMap([5])}))
    {3: BitMap([5])}
    """
    try:
        return _decoded(data)
    except struct.error:
        raise ValueError("the row-address map ends too early") from None


def _decoded(data: bytes) -> dict[int, BitMap | None]:
    (count,) = _COUNT.unpack_from(data)
    found: dict[int, BitMap | None] = {}
    at, last = _COUNT.size, -1
    for _ in range(count):  # ends with the bytes, whatever the count claims
        fragment_id, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if fragment_id <= last:
            raise ValueError("the fragments of the row-address map are not in order")
        if len(data) < at + size:
            raise ValueError("the row-address map ends too early")
        found[fragment_id] = BitMap(decode_bitmap(data[at : at + size])) if size else None
        at, last = at + size, fragment_id
    if at != len(data):
        raise ValueError(f"the row-address map has {len(data)} bytes where {at} were expected")
    return found


def addresses_of(rows: Mapping[int, BitMap]) -> npt.NDArray[np.uint64]:
    """The addresses of all rows, ascending.

    >>> addresses_of({1: BitMap([2]), 0: BitMap([7])}).tolist()
    [7, 4294967298]
    """
    parts = [
        np.frombuffer(offsets.to_array(), np.uint32).astype(np.uint64) | np.uint64(id << 32)
        for id, offsets in sorted(rows.items())
        if offsets
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)
