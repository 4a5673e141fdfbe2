"""Deletion vectors: golden bytes, both encodings, what is accepted and refused."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap, BitMap64, FrozenBitMap

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.deletion_vector import (
    DeletionVector,
    choose_type,
    decode_deletion_vector,
    encode_deletion_vector,
)
from tablewright.format.fragment import DeletionFileType

ARRAY, BITMAP = DeletionFileType.ARROW_ARRAY, DeletionFileType.BITMAP
LAST = 2**32 - 1
SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])

GOLDEN = {  # bytes of pylance 14.0.2
    (1, 2): "3a30000001000000000001001000000001000200",
    (6,): "3a3000000100000000000000100000000600",
    (): "3a30000000000000",
}


@pytest.mark.parametrize(("offsets", "stored"), GOLDEN.items(), ids=str)
def test_golden_bitmaps_both_ways(offsets: tuple[int, ...], stored: str) -> None:
    assert encode_deletion_vector(DeletionVector.of(offsets), BITMAP).hex() == stored
    assert decode_deletion_vector(bytes.fromhex(stored), BITMAP, "p") == DeletionVector.of(offsets)


def test_run_containers_are_read_and_never_written() -> None:
    runs = decode_deletion_vector(bytes.fromhex("3b3000000100000400010000000400"), BITMAP, "p")
    assert runs == DeletionVector.of(range(5))
    assert encode_deletion_vector(runs, BITMAP)[:4].hex() == "3a300000"
    long = DeletionVector(FrozenBitMap(BitMap(range(100_000))))
    stored = encode_deletion_vector(long, BITMAP)
    assert stored[:4].hex() == "3a300000"
    assert decode_deletion_vector(stored, BITMAP, "p") == long


def test_golden_header_of_four_containers() -> None:
    sizes = (0x1A, 0xCCD, 0xCCD, 0xA9)
    offsets = np.concatenate([np.arange(size, dtype=np.int64) * 2 + (key << 16) for key, size in enumerate(sizes)])
    stored = encode_deletion_vector(DeletionVector.of(offsets), BITMAP)
    header = "3a300000040000000000190001 00cc0c0200cc0c0300a800280000005c000000f619000090330000"
    assert stored[:40].hex() == header.replace(" ", "")


def test_the_set() -> None:
    vector = DeletionVector.of([5, 1, 9, 5])
    assert len(vector) == 3 and 5 in vector and 6 not in vector and -1 not in vector and 2**40 not in vector
    assert vector == DeletionVector.of(np.array([9, 5, 1], np.int64)) == DeletionVector.of(BitMap([1, 5, 9]))
    assert vector.to_numpy().tolist() == [1, 5, 9] and vector.to_numpy().dtype == np.uint32
    other = DeletionVector.of([5, 6])
    assert vector.union(other).to_numpy().tolist() == [1, 5, 6, 9]
    assert vector.intersection(other).to_numpy().tolist() == [5]
    assert vector.difference(other).to_numpy().tolist() == [1, 9]
    assert [vector.rank(offset) for offset in (0, 1, 2, 5, 6, 10, 2**33)] == [0, 0, 1, 1, 2, 3, 3]
    assert pickle.loads(pickle.dumps(vector)) == vector
    assert len({vector, DeletionVector.of([1, 5, 9])}) == 1
    assert DeletionVector.of([LAST]).rank(2**32) == 1


def test_offsets_beyond_32_bits() -> None:
    low, high = [3, LAST], [2**32, 2**40 + 1, 2**63 - 1]
    wide = DeletionVector.of([*high, *low])
    assert len(wide) == 5 and wide.last == 2**63 - 1 and wide.to_numpy().tolist() == low + high
    assert wide == DeletionVector.of(BitMap64(low + high)) == DeletionVector.of(np.array(high + low, np.uint64))
    assert all(offset in wide for offset in low + high)
    assert not any(offset in wide for offset in (-1, 2, 2**32 + 1, 2**63, 2**64 + 3))
    assert [wide.rank(offset) for offset in (-1, 3, 4, 2**32, 2**32 + 1, 2**63 - 1, 2**63, 2**70)] == [
        0,
        0,
        1,
        2,
        3,
        4,
        5,
        5,
    ]
    assert pickle.loads(pickle.dumps(wide)) == wide and len({wide, DeletionVector.of(low + high)}) == 1

    narrow = DeletionVector.of(low)
    assert DeletionVector.of(BitMap64(low)) == narrow and narrow.beyond is None and narrow.last == LAST
    assert DeletionVector().last is None
    above = DeletionVector.of(high)
    assert narrow.union(above) == above.union(narrow) == wide.union(narrow) == wide.union(above) == wide
    assert wide.difference(above) == wide.intersection(narrow) == narrow.intersection(wide) == narrow
    assert wide.difference(narrow) == wide.intersection(above) == above
    assert narrow.difference(wide) == above.difference(wide) == above.intersection(narrow) == DeletionVector()
    other = DeletionVector.of([2**32 + 1])
    assert above.union(other).to_numpy().tolist() == sorted([*high, 2**32 + 1])
    assert above.intersection(other) == DeletionVector() and above.difference(other) == above

    assert wide.live_mask(5).tolist() == [True, True, True, False, True]
    (problem,) = wide.problems(2**32)
    assert problem.startswith(f"3 deleted offsets lie beyond the {2**32} rows")
    for file_type in DeletionFileType:
        with pytest.raises(InvalidRequest, match="below 2\\*\\*32"):
            encode_deletion_vector(wide, file_type)


def test_masks() -> None:
    vector = DeletionVector.of([0, 3, 4])
    assert vector.live_mask(5).tolist() == [False, True, True, False, False]
    assert vector.live_offsets(5).tolist() == [1, 2]
    assert DeletionVector().live_mask(2).tolist() == [True, True]
    assert DeletionVector().live_offsets(0).tolist() == []
    assert vector.live_mask(2).tolist() == [False, True]


def test_problems() -> None:
    vector = DeletionVector.of([0, 3, 4])
    assert vector.problems(5) == vector.problems(5, 3) == ()
    assert vector.problems(4) == ("1 deleted offsets lie beyond the 4 rows of the fragment: 4",)
    assert len(vector.problems(3, 2)) == 2
    assert DeletionVector().problems(0, 0) == ()


@pytest.mark.parametrize("bad", [[-1], [2**63], [-1, 2**63], [2**70], [0.5], ["a"]])
def test_what_is_no_offset_is_refused(bad: list[object]) -> None:
    with pytest.raises(InvalidRequest):
        DeletionVector.of(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("count", "existing", "expected"),
    [
        (1, None, ARRAY),
        (4999, None, ARRAY),
        (5000, None, BITMAP),
        (5000, ARRAY, ARRAY),
        (5001, ARRAY, BITMAP),
        (1, BITMAP, BITMAP),
    ],
)
def test_thresholds(count: int, existing: DeletionFileType | None, expected: DeletionFileType) -> None:
    assert choose_type(count, existing) is expected


@pytest.mark.parametrize("file_type", DeletionFileType)
@pytest.mark.parametrize("offsets", [[], [0], [LAST], [3, 19, 42], range(70_000), range(0, 300_000, 3)], ids=len)
def test_round_trip(offsets: list[int], file_type: DeletionFileType) -> None:
    vector = DeletionVector.of(offsets)
    assert decode_deletion_vector(encode_deletion_vector(vector, file_type), file_type, "p") == vector


def arrow_file(batches: list[pa.RecordBatch], schema: pa.Schema = SCHEMA, compression: str | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue())


def batch(values: list[int | None], schema: pa.Schema = SCHEMA) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values, schema.field(0).type)], schema=schema)


@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
def test_any_order_and_compression_is_read(compression: str | None) -> None:
    values = [int(value) for value in np.random.default_rng(1).permutation(3000)]
    data = arrow_file([batch(values)], compression=compression)
    assert decode_deletion_vector(data, ARRAY, "p") == DeletionVector.of(range(3000))


def other_schema(field: pa.Field, metadata: dict[str, str] | None = None) -> bytes:
    schema = pa.schema([field], metadata=metadata)
    return arrow_file([batch([1], schema)], schema)


GOOD_ARRAY = arrow_file([batch([1, 2])])
GOOD_BITMAP = bytes.fromhex(GOLDEN[(1, 2)])
FOREIGN = {
    "nothing": (b"", ARRAY),
    "text": (b"hello, this is no Arrow file", ARRAY),
    "cut": (GOOD_ARRAY[:-20], ARRAY),
    "bitmap as array": (GOOD_BITMAP, ARRAY),
    "nullable": (other_schema(pa.field("row_id", pa.uint32())), ARRAY),
    "int32": (other_schema(pa.field("row_id", pa.int32(), nullable=False)), ARRAY),
    "other name": (other_schema(pa.field("row", pa.uint32(), nullable=False)), ARRAY),
    "no batch": (arrow_file([]), ARRAY),
    "two batches": (arrow_file([batch([1]), batch([2])]), ARRAY),
    "no bitmap": (b"", BITMAP),
    "cut bitmap": (GOOD_BITMAP[:-1], BITMAP),
    "long bitmap": (GOOD_BITMAP + b"\0", BITMAP),
    "array as bitmap": (GOOD_ARRAY, BITMAP),
    "unsorted bitmap": (GOOD_BITMAP[:-4] + b"\2\0\1\0", BITMAP),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files_are_corrupt(name: str) -> None:
    data, file_type = FOREIGN[name]
    with pytest.raises(CorruptTable, match=r"_deletions/0-1-2\.bin"):
        decode_deletion_vector(data, file_type, "_deletions/0-1-2.bin")


def test_a_vector_is_asked_without_being_spread_out() -> None:
    """All of 2**32 offsets as an array would take 16 GiB."""
    runs = BitMap(range(10, 2**32))
    runs.run_optimize()
    vector = decode_deletion_vector(bytes(runs.serialize()), BITMAP, "p")
    assert vector.problems(100) == (
        "4294967196 deleted offsets lie beyond the 100 rows of the fragment: 100, 101, 102, 103, 104",
    )
    assert vector.first(2) == [10, 11]
    assert np.flatnonzero(vector.live_mask(100)).tolist() == list(range(10))
    with pytest.raises(CorruptTable, match="4294967286 values where there can be at most 100"):
        decode_deletion_vector(bytes(runs.serialize()), BITMAP, "p", rows_max=100)


def test_problems_of_offsets_beyond_32_bits() -> None:
    vector = DeletionVector.of([5, 2**40, 2**40 + 1])
    assert vector.problems(2**40 + 1) == (
        f"1 deleted offsets lie beyond the {2**40 + 1} rows of the fragment: {2**40 + 1}",
    )
    assert vector.first(5) == [5, 2**40, 2**40 + 1]
    assert vector.problems(2**41, 3) == ()


@pytest.mark.parametrize("deleted", [[], [0], [1, 2, 7], [0, 1, 2, 3], [9]])
def test_ranks_and_membership_agree_with_the_mask(deleted: list[int]) -> None:
    vector = DeletionVector.of(deleted)
    live = vector.live_offsets(10)
    assert vector.nth_live(np.arange(len(live))).tolist() == live.tolist()
    assert (~vector.contains(np.arange(10))).tolist() == vector.live_mask(10).tolist()
