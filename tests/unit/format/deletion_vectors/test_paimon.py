"""Paimon's deletion-vectors files: golden bytes both ways, the two meanings of length, rolling, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.vectors import PAIMON, READ_ONLY, golden_bytes, vector_of

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.deletion_vectors.bins import encode_bin
from tablewright.format.deletion_vectors.paimon import (
    BinPlace,
    VectorRange,
    decode_vector,
    decode_vectors,
    encode_vector_file,
    encode_vector_files,
    walk_vector_file,
)
from tablewright.format.row_set import RowSet


@pytest.mark.parametrize("file", PAIMON)
def test_golden_files_both_ways(file: str) -> None:
    data, bins = golden_bytes("paimon", file), PAIMON[file]["bins"]
    vectors = {entry["data_file"]: vector_of(entry["positions"]) for entry in bins}
    ranges = [
        VectorRange(entry["data_file"], entry["offset"], entry["meta_length"], entry["cardinality"]) for entry in bins
    ]
    assert decode_vectors(data, ranges, file) == vectors
    assert decode_vectors(data, [replace(place, cardinality=None) for place in ranges], file) == vectors
    for place in ranges:
        assert decode_vector(data[place.offset : place.end_max], place, file) == vectors[place.data_file]

    walked = walk_vector_file(data, file)
    assert [place.of(entry["data_file"]) for (place, _), entry in zip(walked, bins, strict=True)] == ranges
    assert [place.width for place, _ in walked] == [entry["bits"] for entry in bins]
    assert [vector for _, vector in walked] == list(vectors.values())

    again = b"\x01" + b"".join(encode_bin(vector, place.width) for place, vector in walked)
    assert (again == data) == (file not in READ_ONLY)
    widths = {place.width for place, _ in walked} or {32}
    if len(widths) == 1 and file not in READ_ONLY:
        assert encode_vector_file(vectors, widths.pop()) == (data, tuple(ranges))


def test_what_is_read_only_says_the_same_as_what_is_written() -> None:
    for read_only, written in zip(sorted(READ_ONLY), ("dv32-runs.bin", "dv64-two-bins.bin"), strict=True):
        for entry in PAIMON[read_only]["bins"]:
            assert entry["positions"] in [other["positions"] for other in PAIMON[written]["bins"]]


ONE, TWO = RowSet.of([0, 2, 5, 9]), RowSet.of([7, 2**32])


def test_length_has_two_meanings() -> None:
    narrow, (narrow_range,) = encode_vector_file({"a": ONE})
    wide, (wide_range,) = encode_vector_file({"a": ONE}, 64)
    assert narrow_range.length == len(narrow) - 9 and wide_range.length == len(wide) - 1
    for data, place, off in ((narrow, narrow_range, 8), (wide, wide_range, -8)):
        with pytest.raises(
            CorruptTable, match=f"length {place.length + off} where its .*-bit bitmap has {place.length}"
        ):
            decode_vectors(data, [replace(place, length=place.length + off)], "index-1")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"offset": 0}, "no bin has offset 0"),
        ({"offset": -5}, "no bin has offset -5"),
        ({"length": -1}, "length -1"),
        ({"offset": 2}, "claims"),
        ({"offset": 10**12}, "too few"),
        ({"length": 29}, "gives length 29"),
        ({"cardinality": 5}, "counts 5 positions, it holds 4"),
        ({"cardinality": 0, "length": 1}, "gives length 1 .* counts 0"),
    ],
)
def test_metadata_that_does_not_fit(change: dict[str, int], reason: str) -> None:
    data, (place,) = encode_vector_file({"data-a.parquet": ONE})
    with pytest.raises(CorruptTable, match=rf"index-1: bin of data-a.parquet at byte .*{reason}") as caught:
        decode_vectors(data, [replace(place, **change)], "index-1")
    assert caught.value.path == "index-1"


def test_other_versions_and_cut_files() -> None:
    data, ranges = encode_vector_file({"a": ONE, "b": TWO}, 64)
    for first in (b"", b"\x00" + data[1:], b"\x02" + data[1:], b"PFA1" + data[1:]):
        for read in (lambda data: walk_vector_file(data, "i"), lambda data: decode_vectors(data, ranges, "i")):
            with pytest.raises(CorruptTable, match="version 1 is the one that is known"):
                read(first)
    ends = {1, ranges[1].offset, len(data)}  # a walk can't know of a bin that is gone; the index manifest can
    for end in range(1, len(data)):
        if end not in ends:
            with pytest.raises(CorruptTable, match="index-1: bin"):
                walk_vector_file(data[:end], "index-1")
        with pytest.raises(CorruptTable, match="index-1: bin"):
            decode_vectors(data[:end], ranges, "index-1")
    with pytest.raises(CorruptTable, match="2 ranges belong to only 1"):
        decode_vectors(data, [ranges[0], ranges[0]], "i")


def test_files_roll_once_they_are_past_the_target() -> None:
    vectors = {f"{number}": RowSet.of([number]) for number in range(5)}  # 30 bytes each

    def sizes(target: int) -> list[tuple[int, int]]:
        files = encode_vector_files(vectors, target_size=target)
        assert [place.data_file for _, ranges in files for place in ranges] == list(vectors)
        for data, ranges in files:
            assert decode_vectors(data, ranges, "i") == {place.data_file: vectors[place.data_file] for place in ranges}
            assert all(place.offset == 1 + 30 * at for at, place in enumerate(ranges))
        return [(len(data), len(ranges)) for data, ranges in files]

    assert sizes(50) == [(61, 2), (61, 2), (31, 1)]  # as Java did it
    assert sizes(31) == sizes(60) == [(61, 2), (61, 2), (31, 1)]
    assert sizes(30) == sizes(0) == [(31, 1)] * 5
    assert sizes(61) == [(91, 3), (61, 2)]
    assert sizes(2**21) == sizes(151) == [(151, 5)]
    assert encode_vector_files(vectors) == (encode_vector_file(vectors),)
    assert encode_vector_files(vectors, width=64) == (encode_vector_file(vectors, 64),)
    assert encode_vector_files({}) == ()


def test_vectors_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="Write it with 64 bits"):
        encode_vector_file({"a": TWO})
    data, (place,) = encode_vector_file({"a": TWO}, 64)
    assert walk_vector_file(data, "i") == ((BinPlace(1, place.length, 2, 64), TWO),)
