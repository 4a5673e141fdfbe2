"""Rows of fragments without the codec: those of the fragment's reader, and no file that this one would refuse."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.data.number_rows import read_number_rows
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
