"""Rows of fragments without the codec: those of the fragment's reader, and no file that this one would refuse."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.data.number_files import open_numbers
from tablewright.data.number_rows import read_number_rows, read_rows_together
from tablewright.data.packed_reads import packed_chunks
from tablewright.data.read import FragmentReader
from tablewright.data.shape import ReadShape
from tablewright.errors import CorruptTable
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

ROWS = 3000


def opened(place: Path) -> Snapshot:
    return open_snapshot(World(open_store(str(place))))


def shape_of(snapshot: Snapshot, *names: str) -> ReadShape:
    ids = [field.id for field in snapshot.schema.fields if field.name in names]
    return ReadShape(snapshot.schema, snapshot.schema.project_ids(ids))


def rows(snapshot: Snapshot, shape: ReadShape, start: int, stop: int) -> pa.RecordBatch | None:
    return read_number_rows(snapshot, snapshot.fragments[0], shape, np.arange(start, stop))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    data = {"id": np.arange(ROWS) * 977, "score": np.random.default_rng(0).random(ROWS), "text": ["x"] * ROWS}
    ds = tw.write_dataset(pa.table(data), tmp_path / "t")
    ds.alter_columns({"path": "score", "name": "points"})
    ds.delete("id = 0")
    return tmp_path / "t"


def test_rows_are_those_of_the_reader(place: Path) -> None:
    """Under the names of the table; deleted or not, as for known rows."""
    snapshot = opened(place)
    for names in (("id",), ("points",), ("points", "id")):
        shape = shape_of(snapshot, *names)
        for offsets in (np.array([0]), np.array([2999]), np.arange(1000, 1030), np.array([0, 7, 1023, 1024, 2999])):
            (expected,) = FragmentReader(snapshot, snapshot.fragments[0], shape).start_at(offsets)
            found = read_number_rows(snapshot, snapshot.fragments[0], shape, offsets)
            assert found is not None and found.schema == shape.schema
            assert found == expected.batch


KINDS = [pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.timestamp("us")]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_rows_of_several_fragments_together(tmp_path: Path, kind: pa.DataType) -> None:
    """Packed, flat and constant pages; read for the first time, and again. Any rows, as the reader has them."""
    random = np.random.default_rng(7)
    bits = 8 * (kind.bit_width // 8)
    wide = random.integers(0, 256, ROWS * bits // 8, np.uint8).tobytes()
    columns = {
        "narrow": pa.array(random.permutation(ROWS) % (1 << min(bits - 1, 14)), pa.int64()).cast(kind),
        "wide": pa.Array.from_buffers(kind, ROWS, [None, pa.py_buffer(wide)]),
        "same": pa.array(np.full(ROWS, 5), pa.int64()).cast(kind),
    }
    tw.write_dataset(pa.table(columns), tmp_path, max_rows_per_file=1300)
    snapshot = opened(tmp_path)
    for names in (["narrow"], ["wide", "narrow"], ["same"], ["same", "wide"]):
        shape = shape_of(snapshot, *names)
        for picks in ([[3], [], []], [[0, 1299], [5, 6, 7], [399]], [[1024], [0], [0, 1]], [[1], [2, 9], []]):
            wanted = [(snapshot.fragments[at], np.array(rows)) for at, rows in enumerate(picks) if rows]
            expected = pa.Table.from_batches(
                [part.batch for each in wanted for part in FragmentReader(snapshot, each[0], shape).start_at(each[1])]
            )
            for _ in range(2):
                found = read_rows_together(snapshot, shape, wanted)
                if found is None:  # the codec reads scattered rows of a constant
                    assert "same" in names and any(len(rows) > 1 and np.ptp(rows) >= len(rows) for _, rows in wanted)
                    continue
                assert [column.to_numpy().tobytes() for column in found.columns] == [
                    column.to_numpy().tobytes() for column in expected.columns
                ]
                assert found.schema == shape.schema


def test_rows_together_need_rows_of_each(place: Path) -> None:
    snapshot = opened(place)
    shape, fragment = shape_of(snapshot, "id"), snapshot.fragments[0]
    assert read_rows_together(snapshot, shape, []) is None
    assert read_rows_together(snapshot, shape, [(fragment, np.array([1])), (fragment, np.array([], np.int64))]) is None
    assert read_rows_together(snapshot, shape, [(fragment, np.array([1])), (fragment, np.array([3000]))]) is None


def test_damaged_chunks_are_left_to_the_codec(place: Path) -> None:
    """A chunk whose number of bits is not that of its size; in a file that was read before, and in one that was not."""
    snapshot = opened(place)
    shape, fragment = shape_of(snapshot, "id"), snapshot.fragments[0]
    assert rows(snapshot, shape, 5, 6) is not None
    (file,) = (place / "data").glob("*.lance")
    with open_numbers(snapshot.world.store, f"data/{file.name}") as numbers:
        assert numbers is not None
        (chunks,) = packed_chunks(numbers, [0])
        assert chunks is not None and chunks.is_packed.all()
    data = bytearray(file.read_bytes())
    data[int(chunks.offsets[0]) + 8] ^= 1
    file.write_bytes(data)
    for _ in range(2):
        assert rows(snapshot, shape, 5, 6) is None
        assert read_number_rows(snapshot, fragment, shape, np.array([5, 2000])) is None
        later = read_number_rows(snapshot, fragment, shape, np.array([1024, 2000]))
        assert later is not None and later.column(0).to_pylist() == [1024 * 977, 2000 * 977]


def test_what_the_codec_reads(place: Path) -> None:
    snapshot = opened(place)
    assert rows(snapshot, shape_of(snapshot, "id", "text"), 0, 1) is None
    assert rows(snapshot, shape_of(snapshot), 0, 1) is None
    assert rows(snapshot, shape_of(snapshot, "id"), 2999, 3001) is None
    assert rows(snapshot, shape_of(snapshot, "id"), 0, 0) is None
    scattered = np.array([0, 2999, 3000])
    assert read_number_rows(snapshot, snapshot.fragments[0], shape_of(snapshot, "id"), scattered) is None


def test_columns_of_two_files_are_read_by_the_codec(tmp_path: Path) -> None:
    tw.write_dataset(pa.table({"id": np.arange(ROWS)}), tmp_path).add_columns({"twice": "id * 2"})
    snapshot = opened(tmp_path)
    assert rows(snapshot, shape_of(snapshot, "twice"), 5, 6) is not None
    assert rows(snapshot, shape_of(snapshot, "id", "twice"), 5, 6) is None


@pytest.mark.parametrize("other", ["longer", "of other types", "missing"])
def test_a_file_that_was_replaced_is_refused(place: Path, other: str) -> None:
    snapshot = opened(place)
    (file,) = (place / "data").glob("*.lance")
    columns = {"id": np.arange(ROWS), "score": np.arange(ROWS), "text": ["x"] * ROWS}
    if other == "longer":
        columns = {name: [*values, values[0]] for name, values in columns.items()}
    tw.write_dataset(pa.table(columns), place.parent / "other")
    (theirs,) = (place.parent / "other" / "data").glob("*.lance")
    file.unlink()
    if other != "missing":
        shutil.copy(theirs, file)
    shape = shape_of(snapshot, "id")
    assert rows(snapshot, shape, 5, 6) is None
    assert read_number_rows(snapshot, snapshot.fragments[0], shape, np.array([5, 2000])) is None
    with pytest.raises(CorruptTable):
        FragmentReader(snapshot, snapshot.fragments[0], shape)
