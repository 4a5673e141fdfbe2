"""Row ids: golden bytes, arithmetic against plain arrays, hostile bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.proto import rows_pb2
from tablewright.format.row_ids import RowIdSequence, decode_row_ids, encode_row_ids
from tablewright.format.row_set import RowSet
from tablewright.format.segments import (
    Array,
    NumberArray,
    Range,
    RangeWithHoles,
)

TOP = 2**64 - 1

GOLDEN = {  # bytes of pylance 14.0.2
    (5,): "0a060a0408051006",
    (0, 1, 2, 3): "0a040a021004",
    tuple(range(10, 20)): "0a060a04080a1014",
    (100, 101, 103, 104): "0a091a07086410691a011b",
    (0, 2, 6, 7, 8, 9): "0a081a06100a1a02c503",
    tuple(v for v in range(1000) if v != 500): "0a10120e10e8071a090a0708f40312020000",
    tuple(v for v in range(1000) if v not in (500, 600, 700)): "0a14121210e8071a0d0a0b08f403120600006400c800",
    (1, 1000): "0a0c220a0a08080112040000e703",
    (1, 100000): "0a10220e120c08011208000000009f860100",
    (1, 5000000000): "0a1622141a121210010000000000000000f2052a01000000",
    (3, 1, 2): "0a0e2a0c0a0a08011206020000000100",
    (7, 70000, 3): "0a142a1212100803120c040000006d11010000000000",
    (2**40, 1): "0a162a141a12121000000000000100000100000000000000",
}


@pytest.mark.parametrize(("ids", "stored"), GOLDEN.items(), ids=lambda value: str(value)[:20])
def test_golden_bytes_both_ways(ids: tuple[int, ...], stored: str) -> None:
    assert encode_row_ids(RowIdSequence.from_values(ids)).hex() == stored
    decoded = decode_row_ids(bytes.fromhex(stored), "p")
    assert decoded.to_numpy().tolist() == list(ids)
    assert encode_row_ids(decoded).hex() == stored
    assert decoded == RowIdSequence.from_values(ids)


def test_golden_bytes_of_two_segments_and_of_none() -> None:
    joined = RowIdSequence.from_values([1, 5]).concat(RowIdSequence.from_values([12]))
    assert encode_row_ids(joined).hex() == "0a091a07080110061a01110a060a04080c100d"
    assert decode_row_ids(encode_row_ids(joined), "p").to_numpy().tolist() == [1, 5, 12]
    assert encode_row_ids(RowIdSequence()) == b""
    assert decode_row_ids(b"", "p") == RowIdSequence.from_values([]) == RowIdSequence.from_range(3, 3)
    assert len(RowIdSequence()) == 0 and not RowIdSequence() and RowIdSequence().bounds is None


def numbers(*values: int) -> NumberArray:
    return NumberArray.of(np.array(values, np.uint64))


def test_ids_that_come_together_again_are_ranges_again() -> None:
    odd = RowIdSequence.from_range(0, 100_000).without(RowSet.of(range(5, 90_000, 7)))
    back = RowIdSequence.join([odd.slice(0, 17), odd.slice(17, 60_000), odd.slice(60_000, len(odd))])
    assert back == odd
    tiny = [RowIdSequence.from_range(at, at + 10) for at in range(0, 1000, 10)]
    assert RowIdSequence.join(tiny).segments == (Range(0, 1000),)
    assert RowIdSequence.join([*tiny[:50], *tiny[51:]]).segments == (
        RangeWithHoles(0, 1000, numbers(*range(500, 510))),
    )
    assert RowIdSequence.join([RowIdSequence(), tiny[3], RowIdSequence()]) == tiny[3]
    assert RowIdSequence.join([]) == RowIdSequence()
    top = [RowIdSequence.from_values([TOP - 1, TOP]), RowIdSequence.from_values([0, 1])]
    assert RowIdSequence.join(top).to_numpy().tolist() == [TOP - 1, TOP, 0, 1]


def test_shuffled_ids_leave_ranges_beside_them_alone() -> None:
    """A plain array of everything would take 4 bytes for each of a million ids."""
    shuffled = np.random.default_rng(4).permutation(1000).astype(np.uint64)
    near, far = RowIdSequence.from_values(shuffled), RowIdSequence.from_values(shuffled + np.uint64(2**40))
    whole = RowIdSequence.from_range(10_000, 1_010_000)
    joined = RowIdSequence.join([near, whole.slice(0, 70), whole.slice(70, 1_000_000), far])
    assert joined.segments == (near.segments[0], Range(10_000, 1_010_000), far.segments[0])
    live = joined.without(np.array([5, 500_000, len(joined) - 1]))
    assert [type(segment) for segment in live.segments] == [Array, RangeWithHoles, Array]
    assert len(encode_row_ids(live)) < len(encode_row_ids(joined)) + 20
    pieces = [RowIdSequence.from_values(each) for each in np.split(shuffled, 100)]
    assert len(RowIdSequence.join(pieces).segments) == 1


def test_cut_join_and_pick() -> None:
    ids = RowIdSequence((Range(0, 5), Range(5, 6), Array(numbers(20, 10)), RangeWithHoles(30, 36, numbers(32))))
    values = ids.to_numpy()
    assert values.tolist() == [0, 1, 2, 3, 4, 5, 20, 10, 30, 31, 33, 34, 35]
    for start in range(-1, 15):
        for stop in range(-1, 15):
            expected = values[max(start, 0) : max(stop, 0)]
            assert ids.slice(start, stop).to_numpy().tolist() == expected.tolist()
    assert ids.slice(0, 6).segments == (Range(0, 6),)
    assert ids.slice(0, 13).segments[-1] == ids.segments[-1]
    assert RowIdSequence.from_range(0, 3).concat(RowIdSequence.from_range(3, 9)).segments == (Range(0, 9),)

    live = np.ones(len(ids), np.bool_)
    assert ids.select(live).segments == (Range(0, 6), *ids.segments[2:])
    live[[0, 6, 9]] = False
    assert ids.select(live).to_numpy().tolist() == values[live].tolist()
    assert ids.select(np.array([12, 0, 7])).to_numpy().tolist() == [35, 0, 10]
    assert ids.select(np.array([], np.int64)) == RowIdSequence()
    assert ids.select(np.zeros(len(ids), np.bool_)) == RowIdSequence()
    for bad in (np.array([13]), np.array([-1]), np.ones(3, np.bool_)):
        with pytest.raises(InvalidRequest):
            ids.select(bad)
    with pytest.raises(InvalidRequest, match="comes twice"):
        ids.select(np.array([1, 1]))


def test_questions() -> None:
    few = RowIdSequence((Range(100, 200), Array(numbers(7, 3))))
    many = RowIdSequence(tuple(Range(10 * start, 10 * start + 3) for start in range(20, 0, -1)))
    for ids in (few, many):
        values = ids.to_numpy()
        assert ids.position_of(values).tolist() == list(range(len(values)))
        assert ids.position_of([0, 99, 5000]).tolist() == [-1, -1, -1]
        asked = values[[4, 0]]
        assert ids.contains([5000, int(asked[0])]).tolist() == [False, True]
        assert ids.bounds == (int(values.min()), int(values.max()))


@pytest.mark.parametrize("bad", [[1, 1], [2, 1, 2], [-1], [1.5], ["a"]])
def test_bad_values_are_refused(bad: list[Any]) -> None:
    with pytest.raises(InvalidRequest):
        RowIdSequence.from_values(bad)


def segment_bytes(**shape: Any) -> bytes:
    return rows_pb2.RowIdSequence(segments=[rows_pb2.Segment(**shape)]).SerializeToString()


def array_of(width: int, values: list[int], base: int = 0) -> rows_pb2.NumberArray:
    data = np.array(values, f"<u{width // 8}").tobytes()
    if width == 64:
        return rows_pb2.NumberArray(u64=rows_pb2.NumberArray.Wide64(values=data))
    if width == 32:
        return rows_pb2.NumberArray(u32=rows_pb2.NumberArray.Narrow32(base=base, offsets=data))
    return rows_pb2.NumberArray(u16=rows_pb2.NumberArray.Narrow16(base=base, offsets=data))


ranges = rows_pb2.Segment
HOSTILE = {
    "no message": b"\xff\xff",
    "truncated": bytes.fromhex("0a060a04080a10"),
    "no shape": b"\x0a\x00",
    "end before start": segment_bytes(range=ranges.Range(start=9, end=3)),
    "too many rows": segment_bytes(range=ranges.Range(start=0, end=2**33)),
    "absurdly many rows": segment_bytes(range=ranges.Range(start=0, end=TOP)),
    "absurdly many in two": segment_bytes(range=ranges.Range(start=0, end=TOP)) * 2,
    "odd length": segment_bytes(
        array=rows_pb2.NumberArray(u16=rows_pb2.NumberArray.Narrow16(base=1, offsets=b"\0\0\1"))
    ),
    "no width": segment_bytes(sorted_array=rows_pb2.NumberArray()),
    "overflow": segment_bytes(array=array_of(16, [0, 5], base=TOP - 2)),
    "unsorted": segment_bytes(sorted_array=array_of(64, [5, 4])),
    "sorted twice": segment_bytes(sorted_array=array_of(16, [5, 5])),
    "array twice": segment_bytes(array=array_of(32, [5, 1, 5])),
    "unsorted holes": segment_bytes(range_with_holes=ranges.RangeWithHoles(start=0, end=9, holes=array_of(16, [5, 4]))),
    "hole outside": segment_bytes(range_with_holes=ranges.RangeWithHoles(start=0, end=9, holes=array_of(16, [5, 9]))),
    "hole below": segment_bytes(range_with_holes=ranges.RangeWithHoles(start=3, end=9, holes=array_of(16, [2]))),
    "no holes": segment_bytes(range_with_holes=ranges.RangeWithHoles(start=0, end=9)),
    "short bitmap": segment_bytes(range_with_bitmap=ranges.RangeWithBitmap(start=0, end=9, bitmap=b"\1")),
    "long bitmap": segment_bytes(range_with_bitmap=ranges.RangeWithBitmap(start=0, end=8, bitmap=b"\1\0")),
    "bits behind": segment_bytes(range_with_bitmap=ranges.RangeWithBitmap(start=0, end=9, bitmap=b"\1\2")),
    "absurd bitmap": segment_bytes(range_with_bitmap=ranges.RangeWithBitmap(start=0, end=TOP, bitmap=b"\1")),
    "ranges overlap": segment_bytes(range=ranges.Range(start=0, end=9))
    + segment_bytes(range=ranges.Range(start=8, end=9)),
    "array in range": segment_bytes(range=ranges.Range(start=0, end=9)) + segment_bytes(array=array_of(16, [20, 8])),
    "holes overlap": segment_bytes(range_with_holes=ranges.RangeWithHoles(start=0, end=9, holes=array_of(16, [2])))
    + segment_bytes(range_with_holes=ranges.RangeWithHoles(start=0, end=3, holes=array_of(16, [0, 1]))) * 2,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_corrupt_and_cost_nothing(name: str) -> None:
    with pytest.raises(CorruptTable, match=r"_versions/7\.manifest"):
        decode_row_ids(HOSTILE[name], "_versions/7.manifest")


def test_the_count_of_rows_is_checked() -> None:
    stored = encode_row_ids(RowIdSequence.from_range(0, 10))
    assert len(decode_row_ids(stored, "p", 10)) == 10
    with pytest.raises(CorruptTable, match="10 row ids for 11 rows"):
        decode_row_ids(stored, "p", 11)
    holes = segment_bytes(range_with_holes=ranges.RangeWithHoles(start=0, end=9, holes=array_of(16, [0, 1, 4, 5]))) + (
        segment_bytes(range_with_holes=ranges.RangeWithHoles(start=0, end=9, holes=array_of(16, [2, 3, 6, 7, 8])))
    )
    assert decode_row_ids(holes, "p").to_numpy().tolist() == [2, 3, 6, 7, 8, 0, 1, 4, 5]


@pytest.mark.parametrize("rows", [[], [0], [3, 4, 5], [9, 2, 7], list(range(10))], ids=str)
def test_picked_ids_are_the_selected_ones(rows: list[int]) -> None:
    ids = RowIdSequence.from_values([*range(100, 105), 7, 3, 2**40, 1, 0])
    offsets = np.array(rows, np.int64)
    assert ids.picked(offsets).to_numpy().tolist() == ids.select(offsets).to_numpy().tolist()
    with pytest.raises(InvalidRequest, match="outside"):
        ids.picked(np.array([10]))


def test_long_sequences_that_were_decoded_are_kept_by_their_bytes() -> None:
    data = encode_row_ids(RowIdSequence.from_values(np.random.default_rng(9).permutation(3000)))
    first = decode_row_ids(data, "a", 3000)
    assert decode_row_ids(bytes(bytearray(data)), "b") is first
    with pytest.raises(CorruptTable, match="3000 row ids for 2999 rows"):
        decode_row_ids(data, "c", 2999)
    twice = encode_row_ids(RowIdSequence((*first.segments, *first.segments)))
    for _ in range(2):
        with pytest.raises(CorruptTable, match="comes twice"):
            decode_row_ids(twice, "d")
