"""xxHash64 of many values at once, against a plain one that takes them one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tablewright.indices.bloomfilter.hashes import hashes_of, supported

M = (1 << 64) - 1
P1, P2, P3, P4, P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def rotated(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & M


def rounded(state: int, lane: int) -> int:
    return rotated((state + lane * P2) & M, 31) * P1 & M


def one_by_one(data: bytes) -> int:
    at = 0
    if len(data) >= 32:
        lanes = [(P1 + P2) & M, P2, 0, -P1 & M]
        while at + 32 <= len(data):
            for number in range(4):
                word = int.from_bytes(data[at + 8 * number : at + 8 * number + 8], "little")
                lanes[number] = rounded(lanes[number], word)
            at += 32
        state = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & M
        for lane in lanes:
            state = ((state ^ rounded(0, lane)) * P1 + P4) & M
    else:
        state = P5
    state = (state + len(data)) & M
    while at + 8 <= len(data):
        state = (rotated(state ^ rounded(0, int.from_bytes(data[at : at + 8], "little")), 27) * P1 + P4) & M
        at += 8
    if at + 4 <= len(data):
        state = (rotated(state ^ (int.from_bytes(data[at : at + 4], "little") * P1 & M), 23) * P2 + P3) & M
        at += 4
    for byte in data[at:]:
        state = rotated(state ^ (byte * P5 & M), 11) * P1 & M
    state = (state ^ (state >> 33)) * P2 & M
    state = (state ^ (state >> 29)) * P3 & M
    return state ^ (state >> 32)


def test_the_plain_one_knows_published_values() -> None:
    assert one_by_one(b"") == 0xEF46DB3751D8E999
    assert one_by_one(b"a") == 0xD24EC4F1A98C6E5B
    assert one_by_one(b"abc") == 0x44BC2CF5AD770999


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_bytes_of_all_lengths(kind: pa.DataType) -> None:
    generator = np.random.default_rng(1)
    values = [generator.bytes(int(length)) for length in generator.permutation(np.arange(150))]
    array = pa.concat_arrays([pa.array([b"before"], kind), pa.array(values, kind)])[1:]
    assert hashes_of(array).tolist() == [one_by_one(value) for value in values]


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.date32(), pa.float32(), pa.int64(), pa.float64(), pa.timestamp("us")], ids=str
)
def test_numbers_are_their_little_endian_bytes(kind: pa.DataType) -> None:
    array = pa.array(range(10)).cast(pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)[3:]
    buffer = array.buffers()[1]
    assert buffer is not None
    width = kind.bit_width // 8
    data = buffer.to_pybytes()
    wanted = [one_by_one(data[place * width : (place + 1) * width]) for place in range(3, 10)]
    assert hashes_of(array).tolist() == wanted


def test_nothing_has_no_hashes() -> None:
    assert len(hashes_of(pa.array([], pa.string()))) == 0


@pytest.mark.parametrize(
    "kind", [pa.bool_(), pa.float16(), pa.duration("s"), pa.binary(3), pa.decimal128(9), pa.null()]
)
def test_other_types_are_not_supported(kind: pa.DataType) -> None:
    assert not supported(kind)
