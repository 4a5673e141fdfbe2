"""Fragments: rows by range and offset, damaged files, sizes of batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.data.encoder import DataFileReader
from tablewright.data.read import FragmentReader, read_fragment
from tablewright.data.shape import ReadShape, read_shape
from tablewright.errors import CorruptTable
from tablewright.format.schema import Schema
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World


def _snapshot(path: Path | str, version: int | None = None) -> Snapshot:
    return open_snapshot(World(store=open_store(str(path))), version)


def _rows(snapshot: Snapshot, columns: list[str] | None = None, **options: Any) -> list[dict[str, Any]]:
    wanted = snapshot.schema
    if columns is not None:
        ids = [each for name in columns for each in wanted.descendants(wanted.resolve(name).id)]
        wanted = wanted.project_ids(ids)
    rows: list[dict[str, Any]] = []
    first = 0
    for fragment in snapshot.fragments:
        for batch in read_fragment(snapshot, fragment, snapshot.schema, wanted, first_row=first, **options):
            batch.validate(full=True)
            rows += batch.to_pylist()
        first += fragment.live_rows
    return rows


def _table(start: int = 0, rows: int = 10) -> pa.Table:
    numbers = range(start, start + rows)
    return pa.table(
        {
            "a": pa.array(numbers),
            "b": pa.array(numbers, pa.int32()),
            "s": [f"r{i}" for i in numbers],
            "st": pa.array([{"p": i, "q": str(i), "in": {"z": i, "w": [i]}} for i in numbers]),
            "l": pa.array([[{"x": i, "y": str(i)}] * (i % 3) for i in numbers]),
            "v": pa.array([[float(i), 0.5] for i in numbers], pa.list_(pa.float32(), 2)),
        }
    )


def test_packed_structs_by_member(tmp_path: Path) -> None:
    packed = pa.field("p", pa.struct([("a", pa.int64()), ("b", pa.float32())]), metadata={"packed": "true"})
    table = pa.table({"p": pa.array([{"a": i, "b": i / 2} for i in range(5)], packed.type)}, schema=pa.schema([packed]))
    tw.write_dataset(table, tmp_path / "t")
    snapshot = _snapshot(tmp_path / "t")
    assert _rows(snapshot, ["p.b"]) == [{"p": {"b": i / 2}} for i in range(5)]


@pytest.mark.parametrize("columns", [["a"], ["st.in.w"], ["st.q", "v"], ["l.item.y"]], ids=str)
def test_ranges_and_offsets(tmp_path: Path, columns: list[str]) -> None:
    tw.write_dataset(_table(), tmp_path / "t")
    snapshot = _snapshot(tmp_path / "t")
    every = _rows(snapshot, columns)
    assert _rows(snapshot, columns, start=2, stop=7) == every[2:7]
    assert _rows(snapshot, columns, rows_per_batch=3) == every
    assert _rows(snapshot, columns, offsets=np.array([0, 3, 9])) == [every[0], every[3], every[9]]
    assert _rows(snapshot, columns, offsets=np.array([], np.int64)) == []


@pytest.mark.parametrize("wide", [False, True])
def test_deleted_rows_in_many_batches(tmp_path: Path, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablewright.data.read._WIDE_ROW_BYTES", 0 if wide else 1 << 30)
    referee = tw.write_dataset(pa.table({"a": range(1000), "s": [str(i) for i in range(1000)]}), tmp_path / "t")
    referee.delete("a < 150 or a % 7 = 0 or (a > 400 and a < 600)")
    snapshot = _snapshot(tmp_path / "t")
    live = [i for i in range(1000) if not (i < 150 or i % 7 == 0 or 400 < i < 600)]
    found = _rows(snapshot, system=["_rowaddr"], rows_per_batch=64)
    assert [row["a"] for row in found] == live
    assert [row["_rowaddr"] for row in found] == live
    assert [row["a"] for row in _rows(snapshot, start=140, stop=410, rows_per_batch=50)] == [
        i for i in live if 140 <= i < 410
    ]
    shown = _rows(snapshot, ["a"], system=["_rowid"], include_deleted=True, rows_per_batch=64)
    assert [row["_rowid"] for row in shown] == [i if i in live else None for i in range(1000)]


def test_a_struct_whose_wanted_member_is_in_no_file(tmp_path: Path) -> None:
    rows = pa.array([{"p": 1}, None, {"p": 3}])
    tw.write_dataset(pa.table({"st": rows}), tmp_path / "t")
    snapshot = _snapshot(tmp_path / "t")
    table = type(snapshot.schema).from_arrow(pa.schema([("st", pa.struct([("p", pa.int64()), ("new", pa.string())]))]))
    wanted = table.project_ids([0, 2])
    fragment = snapshot.fragments[0]
    found = [row for batch in read_fragment(snapshot, fragment, table, wanted) for row in batch.to_pylist()]
    assert found == [{"st": {"new": None}}, {"st": None}, {"st": {"new": None}}]
    both = [row for batch in read_fragment(snapshot, fragment, table, table) for row in batch.to_pylist()]
    assert both == [{"st": {"p": 1, "new": None}}, {"st": None}, {"st": {"p": 3, "new": None}}]


def test_damaged_data_files(tmp_path: Path) -> None:
    tw.write_dataset(_table(), tmp_path / "t")
    snapshot = _snapshot(tmp_path / "t")
    (file,) = (tmp_path / "t" / "data").iterdir()
    whole = file.read_bytes()
    for damage, words in {
        whole[: len(whole) // 2]: "bytes, the manifest says",
        b"": "bytes, the manifest says",
        b"no data file at all".ljust(len(whole), b"!"): "can't be decoded",
        whole[: len(whole) // 2] * 2 + whole[-1:] * (len(whole) % 2): "can't be decoded",
    }.items():
        file.write_bytes(damage)
        with pytest.raises(CorruptTable, match=words) as error:
            _rows(snapshot)
        assert file.name in str(error.value) and ".rs:" not in str(error.value)
    file.unlink()
    with pytest.raises(CorruptTable, match="the data file is missing"):
        _rows(snapshot)


def test_a_file_with_other_rows_than_the_manifest_says(tmp_path: Path) -> None:
    tw.write_dataset(_table(), tmp_path / "t")
    tw.write_dataset(_table(rows=3), tmp_path / "u")
    (ours,), (other,) = (tmp_path / "t" / "data").iterdir(), (tmp_path / "u" / "data").iterdir()
    snapshot = _snapshot(tmp_path / "t")
    ours.write_bytes(other.read_bytes())
    with pytest.raises(CorruptTable, match="bytes, the manifest says"):
        _rows(snapshot)


def test_readers_keep_their_files_open(tmp_path: Path) -> None:
    tw.write_dataset(_table(), tmp_path / "t")
    snapshot = _snapshot(tmp_path / "t")
    reader = FragmentReader(snapshot, snapshot.fragments[0], ReadShape(snapshot.schema, snapshot.schema))
    (tmp_path / "t" / "data").rename(tmp_path / "t" / "moved")
    (tmp_path / "t" / "moved").rename(tmp_path / "t" / "data")
    assert sum(len(rows) for rows in reader.read(0, 10, 4)) == 10
    assert [len(rows) for rows in reader.read(3, 10, 4)] == [4, 3]


def test_reads_of_one_schema_share_their_shape() -> None:
    schema = Schema.from_arrow(pa.schema({"a": pa.int64(), "b": pa.string(), "c": pa.list_(pa.int8())}))
    wanted = schema.project_ids([1])
    shape = read_shape(schema, wanted)
    assert read_shape(schema, schema.project_ids([1])) is shape
    assert read_shape(schema, wanted, 10) is not shape
    assert read_shape(schema, schema) is not shape
    other = Schema.from_arrow(schema.to_arrow())
    assert read_shape(other, other.project_ids([1])).table is other


@pytest.mark.parametrize("offsets", [[3], [3, 4, 5], [0, 9], [1, 2, 7], list(range(10))])
@pytest.mark.parametrize("columns", [None, []])
def test_rows_that_are_asked_for_at_once(tmp_path: Path, offsets: list[int], columns: list[str] | None) -> None:
    tw.write_dataset(_table(), tmp_path)
    snapshot = _snapshot(tmp_path)
    table = snapshot.schema if columns is None else snapshot.schema.project_ids(())
    reader = FragmentReader(snapshot, snapshot.fragments[0], read_shape(snapshot.schema, table))
    parts = list(reader.start_at(np.array(offsets)))
    assert [offset for part in parts for offset in part.offsets.tolist()] == offsets
    expected = [row for part in reader.take(np.array(offsets), 100) for row in part.batch.to_pylist()]
    assert [row for part in parts for row in part.batch.to_pylist()] == expected and len(expected) == len(offsets)


def test_files_of_one_schema_ask_the_codec_for_it_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They differ in their number of rows, which is in the same bytes of the file."""
    asked: list[str] = []
    own = vars(DataFileReader)["schema"]
    counted = property(lambda self: asked.append(self.where) or own.__get__(self, DataFileReader))
    monkeypatch.setattr(DataFileReader, "schema", counted)
    for rows in (100_000, 100_001, 200_000):
        place = tmp_path / str(rows)
        tw.write_dataset(pa.table({"once_asked": np.arange(rows), "text": ["x"] * rows}), place)
        assert tw.dataset(place).to_table(columns=["once_asked"]).num_rows == rows
    assert len(asked) == 1
