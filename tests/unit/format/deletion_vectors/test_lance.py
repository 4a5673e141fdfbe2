"""Deletion vectors: golden bytes, both encodings, what is accepted and refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap, FrozenBitMap

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.deletion_vectors.lance import choose_type, decode_deletion_vector, encode_deletion_vector
from tablewright.format.deletion_vectors.problems import problems_of_deletions
from tablewright.format.fragment import DeletionFileType
from tablewright.format.row_set import RowSet

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
    assert encode_deletion_vector(RowSet.of(offsets), BITMAP).hex() == stored
    assert decode_deletion_vector(bytes.fromhex(stored), BITMAP, "p") == RowSet.of(offsets)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 63, 64, 1000, 1023])
def test_short_arrays_are_the_files_that_arrow_writes(count: int) -> None:
    for offsets in (np.arange(count, dtype=np.uint32) * 3, np.arange(count, dtype=np.uint32) + LAST - count):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, SCHEMA) as writer:
            writer.write_batch(pa.record_batch([pa.array(offsets)], schema=SCHEMA))
        stored = encode_deletion_vector(RowSet.of(offsets), ARRAY)
        assert stored == sink.getvalue().to_pybytes()
        assert decode_deletion_vector(stored, ARRAY, "p") == RowSet.of(offsets)


def test_run_containers_are_read_and_never_written() -> None:
    runs = decode_deletion_vector(bytes.fromhex("3b3000000100000400010000000400"), BITMAP, "p")
    assert runs == RowSet.of(range(5))
    assert encode_deletion_vector(runs, BITMAP)[:4].hex() == "3a300000"
    long = RowSet(FrozenBitMap(BitMap(range(100_000))))
    stored = encode_deletion_vector(long, BITMAP)
    assert stored[:4].hex() == "3a300000"
    assert decode_deletion_vector(stored, BITMAP, "p") == long


def test_golden_header_of_four_containers() -> None:
    sizes = (0x1A, 0xCCD, 0xCCD, 0xA9)
    offsets = np.concatenate([np.arange(size, dtype=np.int64) * 2 + (key << 16) for key, size in enumerate(sizes)])
    stored = encode_deletion_vector(RowSet.of(offsets), BITMAP)
    header = "3a300000040000000000190001 00cc0c0200cc0c0300a800280000005c000000f619000090330000"
    assert stored[:40].hex() == header.replace(" ", "")


def test_offsets_beyond_32_bits_are_refused() -> None:
    wide = RowSet.of([3, 2**32, 2**40 + 1, 2**63 - 1])
    (problem,) = problems_of_deletions(wide, 2**32)
    assert problem.startswith(f"3 deleted offsets lie beyond the {2**32} rows")
    for file_type in DeletionFileType:
        with pytest.raises(InvalidRequest, match="below 2\\*\\*32"):
            encode_deletion_vector(wide, file_type)


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
    vector = RowSet.of(offsets)
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
    assert decode_deletion_vector(data, ARRAY, "p") == RowSet.of(range(3000))


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
    assert problems_of_deletions(vector, 100) == (
        "4294967196 deleted offsets lie beyond the 100 rows of the fragment: 100, 101, 102, 103, 104",
    )
    assert vector.first(2) == [10, 11]
    assert np.flatnonzero(vector.absent_mask(100)).tolist() == list(range(10))
    with pytest.raises(CorruptTable, match="4294967286 values where there can be at most 100"):
        decode_deletion_vector(bytes(runs.serialize()), BITMAP, "p", rows_max=100)
