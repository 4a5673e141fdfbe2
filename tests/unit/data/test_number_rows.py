"""Rows of fragments without the codec: those of the fragment's reader, and no file that this one would refuse."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.data.number_files import open_numbers
from tablewright.data.number_rows import read_number_rows, read_number_runs
from tablewright.data.packed_reads import packed_chunks
from tablewright.data.read import FragmentReader
from tablewright.data.shape import ReadShape
from tablewright.errors import CorruptTable
from tablewright.format.fragment import Fragment
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


Wanted = list[tuple[Fragment, Any]]


def read_in_runs(snapshot: Snapshot, shape: ReadShape, wanted: Wanted) -> list[tuple[int, bool]]:
    """The runs, each with whether the codec has to read it; the rows of others are compared with the reader's."""
    runs, done = [], 0
    for count, batch in read_number_runs(snapshot, shape, wanted):
        runs.append((count, batch is None))
        run, done = wanted[done : done + count], done + count
        if batch is not None:
            parts = [part for each in run for part in FragmentReader(snapshot, each[0], shape).start_at(each[1])]
            expected = pa.Table.from_batches([part.batch for part in parts])
            assert batch.schema == shape.schema and batch.num_rows == expected.num_rows
            for found, column in zip(batch.columns, expected.columns, strict=True):
                assert found.to_numpy().tobytes() == column.to_numpy().tobytes()
    assert done == len(wanted)
    return runs


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
            for _ in range(2):
                runs = read_in_runs(snapshot, shape, wanted)
                if "same" not in names:
                    assert runs == [(len(wanted), False)]
                else:  # the codec reads scattered rows of a constant
                    scattered = [bool(np.ptp(rows) >= len(rows)) for _, rows in wanted]
                    assert [by_codec for count, by_codec in runs for _ in range(count)] == scattered


def test_a_fragment_that_the_codec_reads_is_a_run_of_its_own(tmp_path: Path) -> None:
    """One with a null; ranges of many rows, which are unpacked as a whole, beside rows that are picked."""
    with_null = pa.array([*range(1299), None])
    for values in (
        pa.array(np.arange(1300) * 7),
        pa.array(np.arange(1300) * 9),
        with_null,
        with_null,
        pa.array([5] * 9),
    ):
        tw.write_dataset(pa.table({"id": values}), tmp_path, mode="append")
    snapshot = opened(tmp_path)
    shape, some, many = shape_of(snapshot, "id"), np.array([3, 8]), np.arange(2, 90)
    first, second, third, fourth, last = snapshot.fragments
    one = np.array([4])
    assert read_in_runs(snapshot, shape, [(first, some), (second, one), (third, one), (fourth, some), (last, one)]) == [
        (2, False),
        (2, True),
        (1, False),
    ]
    assert read_in_runs(snapshot, shape, [(third, some), (first, some), (second, many)]) == [(1, True), (2, False)]
    assert read_in_runs(snapshot, shape, [(first, some), (second, np.array([1299, 1300]))]) == [(1, False), (1, True)]
    assert read_in_runs(snapshot, shape, []) == []


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
    for at in (0, 2, 5, 8):  # in its header, and its number of bits
        data[int(chunks.offsets[0]) + at] ^= 1
        file.write_bytes(data)
        for _ in range(2):
            assert rows(snapshot, shape, 5, 6) is None
            assert read_number_rows(snapshot, fragment, shape, np.array([5, 2000])) is None
            assert read_in_runs(snapshot, shape, [(fragment, np.array([1024, 2000])), (fragment, np.array([5]))]) in (
                [(1, False), (1, True)],
                [(2, True)],  # the chunk was read before it was found out
            )
            later = read_number_rows(snapshot, fragment, shape, np.array([1024, 2000]))
            assert later is not None and later.column(0).to_pylist() == [1024 * 977, 2000 * 977]
        data[int(chunks.offsets[0]) + at] ^= 1


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
