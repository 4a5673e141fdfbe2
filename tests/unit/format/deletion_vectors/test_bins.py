"""Bins: what is refused and why, every flipped bit, and bytes that depend on nothing but the set."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from pyroaring import BitMap, FrozenBitMap
from tests.golden.vectors import PAIMON, golden_bytes

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.deletion_vectors.bins import (
    Width,
    decode_bin,
    decode_bin_at,
    decode_payload,
    encode_bin,
    encode_payload,
)
from tablewright.format.deletion_vectors.paimon import VectorRange, decode_vector, walk_vector_file
from tablewright.format.row_set import RowSet

EMPTY = "3a30000000000000"
FIVE = "3a3000000100000000000000100000000500"  # {5}
MAGIC_32, MAGIC_64 = "5e43f2d0", "d1d33964"


def framed(payload: str | bytes, size: int | None = None) -> bytes:
    """A bin around any payload, with the checksum that fits."""
    data = bytes.fromhex(payload) if isinstance(payload, str) else payload
    return struct.pack(">I", len(data) if size is None else size) + data + struct.pack(">I", zlib.crc32(data))


def wide(count: int, *parts: tuple[int, str], more: str = "") -> str:
    stored = "".join(struct.pack("<I", key).hex() + bitmap for key, bitmap in parts)
    return MAGIC_64 + struct.pack("<Q", count).hex() + stored + more


@pytest.mark.parametrize("file", PAIMON)
def test_every_flipped_bit_is_noticed(file: str) -> None:
    """By metadata and on a walk alike, in size, magic, bitmap and checksum; only a checksum tells it in a bitmap."""
    data = golden_bytes("paimon", file)
    for entry in PAIMON[file]["bins"]:
        place = VectorRange("d", entry["offset"], entry["meta_length"], entry["cardinality"])
        for bit in range(entry["offset"] * 8, (entry["offset"] + entry["bin_total"]) * 8):
            damaged = bytearray(data)
            damaged[bit // 8] ^= 1 << bit % 8
            with pytest.raises(CorruptTable, match="index-1"):
                decode_vector(memoryview(damaged)[place.offset :], place, "index-1")
            with pytest.raises(CorruptTable, match="index-1"):
                walk_vector_file(damaged, "index-1")


def test_a_wrong_checksum_names_file_bin_and_both_sums() -> None:
    stored = encode_bin(RowSet.of([0, 2, 5, 9]), 32)
    with pytest.raises(CorruptTable) as caught:
        decode_bin(stored[:-4] + bytes(4), path="t/index/index-1", bin=3)
    assert caught.value.path == "t/index/index-1"
    assert caught.value.problems == ("bin 3: its checksum (CRC-32) is stored as 00000000, but its bytes give 3060e19c",)


GOOD = {
    "32 bits": (MAGIC_32 + FIVE, [5]),
    "nothing in 32 bits": (MAGIC_32 + EMPTY, []),
    "64 bits": (wide(1, (0, FIVE)), [5]),
    "no bitmap": (wide(0), []),
    "fillers only": (wide(2, (0, EMPTY), (1, EMPTY)), []),
    "a gap": (wide(2, (1, FIVE), (4, FIVE)), [2**32 + 5, 2**34 + 5]),
    "a filler behind": (wide(2, (0, FIVE), (1, EMPTY)), [5]),
    "the last key": (wide(1, (2**31 - 2, FIVE)), [((2**31 - 2) << 32) + 5]),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_is_read(name: str) -> None:
    payload, positions = GOOD[name]
    vector = RowSet.of(positions)
    assert decode_bin(framed(payload), path="p", bin=0) == vector
    assert decode_payload(bytes.fromhex(payload), path="p", bin=0) == vector
    assert vector.beyond is None or vector.beyond.min() >= 2**32


BAD: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "too few"),
    "seven bytes": (bytes(7), "too few"),
    "no payload": (framed(b""), "no deletion vector begins with the magic bytes \\(none\\)"),
    "half a magic": (framed("5e43"), "magic bytes 5e43"),
    "another magic": (framed("d0d33964" + EMPTY), "magic bytes d0d33964"),
    "32-bit magic turned around": (framed("d0f2435e" + EMPTY), "magic"),
    "64-bit magic turned around": (framed("6439d3d1" + "00" * 8), "magic"),
    "cut": (framed(MAGIC_32 + FIVE)[:-1], "claims 22 bytes where 21 are left"),
    "bytes behind": (framed(MAGIC_32 + FIVE) + b"\0", "takes 30 bytes where 31"),
    "size too large": (framed(MAGIC_32 + FIVE, 23), "claims 23"),
    "size of 2 GiB": (framed(MAGIC_32 + FIVE, 2**31), "claims 2147483648"),
    "negative size": (framed(MAGIC_32 + FIVE, 2**32 - 1), "claims"),
    "size too small": (framed(MAGIC_32 + FIVE, 21), "checksum"),
    "32: no bitmap": (framed(MAGIC_32), "too early"),
    "32: cut inside": (framed(MAGIC_32 + FIVE[:-2]), "too early"),
    "32: bytes behind the bitmap": (framed(MAGIC_32 + FIVE + "00"), "19 bytes where 18"),
    "32: a cookie with more bits": (framed(MAGIC_32 + "3a300100" + FIVE[8:]), "begins with 3a300100"),
    "32: position 2**31": (
        framed(bytes.fromhex(MAGIC_32) + BitMap([2**31]).serialize()),
        "position 2147483648 lies beyond 2147483647",
    ),
    "64: no count": (framed(MAGIC_64 + "00" * 7), "cut off"),
    "64: too many": (framed(wide(2, (0, FIVE))), "claims 2 bitmaps in 30 bytes"),
    "64: count of 2**63": (framed(wide(2**63, (0, FIVE))), "claims 9223372036854775808 bitmaps in 30 bytes"),
    "64: too few": (framed(wide(1, (0, FIVE), (1, FIVE))), "22 bytes follow"),
    "64: bytes behind": (framed(wide(1, (0, FIVE), more="00")), "1 bytes follow"),
    "64: keys descend": (framed(wide(2, (1, FIVE), (0, FIVE))), "ascend"),
    "64: a key twice": (framed(wide(2, (0, EMPTY), (0, FIVE))), "ascend"),
    "64: key out of range": (framed(wide(1, (2**31 - 1, FIVE))), "ascend, up to 2147483646"),
    "64: position out of range": (
        framed(wide(1, (2**31 - 2, bytes(BitMap([0x80000001]).serialize()).hex()))),
        "beyond 9223372030412324864",
    ),
    "64: cut bitmap": (framed(wide(1, (0, FIVE[:-2]), more="")), "too early"),
    "64: unsorted": (framed(wide(1, (0, "3a30000001000000000001001000000002000100"))), "not in order"),
    "64: runs that touch": (framed(wide(1, (0, "3b300000010000030002000000010002000100"))), "overlap or touch"),
    "64: runs that touch, beyond": (framed(wide(1, (1, "3b300000010000030002000000010002000100"))), "overlap or touch"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_bin_is_corrupt(name: str) -> None:
    data, reason = BAD[name]
    with pytest.raises(CorruptTable, match=rf"index-1: bin 7: .*({reason})"):
        decode_bin(data, path="index-1", bin=7)


def test_a_width_may_be_demanded() -> None:
    vector = RowSet.of([1])
    for width, other in ((32, 64), (64, 32)):
        assert decode_bin(encode_bin(vector, width), path="p", bin=0, width=width) == vector  # type: ignore[arg-type]
        with pytest.raises(CorruptTable, match=f"{other}-bit bitmap where only {width}"):
            decode_bin(encode_bin(vector, other), path="p", bin=0, width=width)  # type: ignore[arg-type]


def test_a_bin_between_others() -> None:
    vector = RowSet.of([1, 2**33])
    stored = encode_bin(vector, 64)
    found = decode_bin_at(b"???" + stored + b"??", 3, path="p", bin=0)
    assert (found.vector, found.width, found.size) == (vector, 64, len(stored))
    for offset in (-1, len(stored) + 6, 2**40):
        with pytest.raises(CorruptTable, match="too few"):
            decode_bin_at(b"???" + stored, offset, path="p", bin=0)


def test_positions_that_no_bin_holds_are_refused() -> None:
    last_wide = ((2**31 - 2) << 32) + 0x80000000
    assert len(encode_bin(RowSet.of([2**31 - 1]), 32)) == 30
    refused: list[tuple[int, Width, str]] = [
        (2**31, 32, "ends at position 2147483647; this one reaches 2147483648. Write it with 64 bits"),
        (2**40, 32, "Write it with 64 bits"),
        (last_wide + 1, 64, "ends at position"),
        (last_wide, 64, "2 GiB"),
        (180_000_000 << 32, 64, "2 GiB"),
    ]
    for position, width, reason in refused:
        with pytest.raises(InvalidRequest, match=reason):
            encode_bin(RowSet.of([position]), width)
    with pytest.raises(InvalidRequest, match="32 or 64"):
        encode_bin(RowSet(), 16)  # type: ignore[arg-type]


SHAPES: dict[str, Callable[[], np.ndarray]] = {
    "nothing": lambda: np.arange(0),
    "a run as long as its array": lambda: np.array([10, 11, 12]),
    "arrays": lambda: np.arange(0, 300_000, 90),
    "bits": lambda: np.arange(0, 300_000, 3),
    "runs": lambda: np.arange(100_000),
    "mixed": lambda: np.concatenate([np.arange(70_000), np.arange(2**17, 2**19, 5), [2**24, 2**24 + 1, 2**31 - 1]]),
}


@pytest.mark.parametrize("name", SHAPES)
def test_bytes_depend_on_the_set_alone(name: str) -> None:
    """However the bitmap came about: equal sets have equal bytes, the smallest ones."""
    positions = SHAPES[name]()
    plain = BitMap(positions.tolist(), optimize=False)
    as_runs = BitMap()
    for start, end in _runs(positions):
        as_runs |= BitMap(range(start, end + 1))
    as_runs.run_optimize()
    forms = [RowSet.of(positions), RowSet(FrozenBitMap(plain)), RowSet(FrozenBitMap(as_runs))]
    plain.run_optimize()
    for width in (32, 64):
        stored = {encode_payload(form, width) for form in forms}  # type: ignore[arg-type]
        assert len(stored) == 1
        assert decode_payload(stored.pop(), path="p", bin=0) == forms[0]
    assert encode_payload(forms[0], 32)[4:] == plain.serialize()
    head = struct.pack("<QI", 1, 0) if len(positions) else struct.pack("<Q", 0)
    assert encode_payload(forms[0], 64)[4:] == head + (plain.serialize() if len(positions) else b"")


def _runs(positions: np.ndarray) -> list[tuple[int, int]]:
    breaks = np.flatnonzero(np.diff(positions) != 1)
    if not len(positions):
        return []
    return list(
        zip(positions[np.append(0, breaks + 1)].tolist(), positions[np.append(breaks, -1)].tolist(), strict=True)
    )


def test_many_fillers() -> None:
    vector = RowSet.of([3, 10_000 << 32])
    stored = encode_bin(vector, 64)
    assert len(stored) == 9_999 * 12 + 22 + 22 + 8 + 4 + 8
    assert decode_bin(stored, path="p", bin=0) == vector
