"""Data files that we wrote: pylance opens them as fragments of a table."""

from __future__ import annotations

import datetime as dt
import json
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lance.file import LanceFileReader

import tablewright as tw
from tablewright.data.read import read_fragment
from tablewright.data.write import (
    WriteOptions,
    describe_data_file,
    write_data_file,
    write_fragments,
)
from tablewright.errors import InvalidRequest, SchemaMismatch
from tablewright.format.fragment import Fragment, fragment_to_json
from tablewright.format.naming import data_path
from tablewright.format.schema import Schema
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.storage import open_store
from tablewright.testing.worlds import seeded_world
from tablewright.world import World


def _world(path: Path) -> World:
    return seeded_world(open_store(str(path)))


def _write(world: World, batches: list[pa.RecordBatch], **options: Any) -> tuple[Fragment, ...]:
    return write_fragments(world, Schema.from_arrow(batches[0].schema), batches, WriteOptions(**options))


def _pylance(path: Path, schema: pa.Schema, fragments: tuple[Fragment, ...]) -> lance.LanceDataset:
    given = [lance.FragmentMetadata.from_json(json.dumps(fragment_to_json(fragment))) for fragment in fragments]
    return lance.LanceDataset.commit(str(path), lance.LanceOperation.Overwrite(schema, given))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_pylance_opens_what_we_wrote(tmp_path: Path, version: str) -> None:
    table = pa.table(
        {
            "a": range(10),
            "st": pa.array([{"p": i, "l": [{"x": i}]} for i in range(10)]),
            "v": pa.array([[i, i] for i in range(10)], pa.list_(pa.float32(), 2)),
            "d": pa.array(["x", "y"] * 5).dictionary_encode(),
            "j": pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array([f'{{"i":{i}}}' for i in range(10)])),
        }
    )
    fragments = _write(_world(tmp_path), table.to_batches(max_chunksize=3), data_storage_version=version)
    dataset = _pylance(tmp_path, table.schema, fragments)
    dataset.validate()
    assert dataset.to_table().to_pylist() == table.to_pylist()
    assert dataset.schema == table.schema
    theirs = lance.write_dataset(table, tmp_path / "theirs", data_storage_version=version)
    expected = theirs.get_fragments()[0].data_files()[0]
    (file,) = fragments[0].files
    assert (list(file.fields), list(file.column_indices)) == (expected.fields, expected.column_indices)
    assert (file.file_major_version, file.file_minor_version) == tuple(map(int, version.split(".")))
    assert file.file_size_bytes == (tmp_path / "data" / file.path).stat().st_size
    assert len(file.path) == 24 + 26 + len(".lance")


def test_one_file_for_more_columns(tmp_path: Path) -> None:
    """A struct whose members lie in two files, as pylance and we read it."""
    lance.write_dataset(pa.table({"st": pa.array([{"p": 1}, None, {"p": 3}])}), tmp_path)
    world = _world(tmp_path)
    snapshot = open_snapshot(world)
    both = pa.schema([("st", pa.struct([("p", pa.int64()), ("new", pa.string())]))])
    table = Schema.from_arrow(both)
    added = pa.record_batch({"st": pa.array([{"new": "x"}, None, {"new": "z"}])})
    file, rows = write_data_file(world, table.project_ids([0, 2]), [added], "2.2")
    assert (file.fields, rows) == ((2,), 3)
    fragment = snapshot.fragments[0].with_files((*snapshot.fragments[0].files, file))
    expected = [{"st": {"p": 1, "new": "x"}}, {"st": None}, {"st": {"p": 3, "new": "z"}}]
    assert [row for batch in read_fragment(snapshot, fragment, table, table) for row in batch.to_pylist()] == expected
    (only_new,) = read_fragment(snapshot, fragment, table, table.project_ids([0, 2]))
    assert only_new.to_pylist() == [{"st": {"new": "x"}}, {"st": None}, {"st": {"new": "z"}}]
    given = lance.FragmentMetadata.from_json(json.dumps(fragment_to_json(fragment)))
    merged = lance.LanceDataset.commit(str(tmp_path), lance.LanceOperation.Merge([given], both), read_version=1)
    assert merged.to_table().to_pylist() == expected


def test_a_file_that_lies_there_already(tmp_path: Path) -> None:
    schema = pa.schema(
        [("a", pa.int64()), ("st", pa.struct([("p", pa.int64()), ("q", pa.string())])), ("z", pa.int8())]
    )
    table = Schema.from_arrow(schema)
    batch = pa.record_batch({"z": pa.array([1, 2], pa.int8()), "st": pa.array([{"p": 1, "q": "x"}, None])})
    world = _world(tmp_path)
    other, _ = write_data_file(world, Schema.from_arrow(batch.schema), [batch], "2.2")
    fragment = describe_data_file(world, table, other.path, 7)
    (file,) = fragment.files
    assert (fragment.id, fragment.physical_rows) == (7, 2)
    assert (file.fields, file.column_indices) == ((4, 2, 3), (0, 1, 2))
    dataset = _pylance(tmp_path, schema, (fragment,))
    assert dataset.to_table().to_pylist() == [
        {"a": None, "st": {"p": 1, "q": "x"}, "z": 1},
        {"a": None, "st": None, "z": 2},
    ]
    strange, _ = write_data_file(world, Schema.from_arrow(pa.schema([("nope", pa.int8())])), [], "2.2")
    with pytest.raises(InvalidRequest, match="No field named nope"):
        describe_data_file(world, table, strange.path)
    wrong, _ = write_data_file(world, Schema.from_arrow(pa.schema([("a", pa.string())])), [], "2.2")
    with pytest.raises(InvalidRequest, match="should have type int64"):
        describe_data_file(world, table, wrong.path)


def test_nulls_where_none_may_be_are_refused_in_one_voice(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    batch = pa.RecordBatch.from_arrays([pa.array([1, None])], names=["a"])
    words = "declared as non-nullable but contains null values"
    with pytest.raises(SchemaMismatch, match=words):
        write_fragments(_world(tmp_path), Schema.from_arrow(schema), [batch])
    with pytest.raises(OSError, match=words):
        lance.write_dataset(pa.Table.from_arrays(batch.columns, schema=schema), tmp_path)


_KINDS = pa.table(
    {
        "n": range(40),
        "b": [None if row % 7 == 0 else row % 3 == 0 for row in range(40)],
        "t": [None if row % 5 == 0 else "x" * row for row in range(40)],
        "l": pa.array([None if row % 9 == 0 else list(range(row % 4)) for row in range(40)], pa.list_(pa.int16())),
        "s": pa.array([None if row % 6 == 0 else {"p": row, "q": [str(row)]} for row in range(40)]),
        "v": pa.array([[row, None] for row in range(40)], pa.list_(pa.float32(), 2)),
        "d": pa.array([f"{row % 3}" for row in range(40)]).dictionary_encode(),
    }
)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@given(edges=st.lists(st.integers(0, 40), min_size=2, max_size=6))
def test_rows_that_are_not_copied_are_written_as_they_are(version: str, edges: list[int]) -> None:
    """Slices, which begin within bytes and buffers."""
    table = _KINDS.drop_columns(["s"]) if version == "2.0" else _KINDS  # 2.0 has no nulls of structs
    cuts = [table.slice(begin, end - begin) for begin, end in pairwise(sorted(edges))]
    batches = [batch for cut in cuts for batch in cut.to_batches()]
    schema = Schema.from_arrow(table.schema)
    with tempfile.TemporaryDirectory() as place:
        world = _world(Path(place))
        fragments = write_fragments(world, schema, batches, WriteOptions(data_storage_version=version, in_memory=True))
        files = [data_path(file.path) for fragment in fragments for file in fragment.files]
        found = [row for file in files for row in LanceFileReader(f"{place}/{file}").read_all().to_table().to_pylist()]
    assert found == [row for cut in cuts for row in cut.to_pylist()]


def test_a_stream_may_use_its_memory_again(tmp_path: Path) -> None:
    numbers = np.zeros(1000, np.int64)

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(5):
            numbers[:] = number
            yield pa.record_batch({"n": pa.array(numbers)})

    assert pa.array(numbers).buffers()[1].address == numbers.ctypes.data
    tw.write_dataset(batches(), tmp_path / "t", schema=pa.schema({"n": pa.int64()}))
    expected = np.repeat(np.arange(5), 1000).tolist()
    assert lance.dataset(tmp_path / "t").to_table()["n"].to_pylist() == expected


@pytest.mark.parametrize("in_memory", [False, True])
def test_small_slices_make_no_small_pages(tmp_path: Path, in_memory: bool) -> None:
    """A stream of slices, as `table.to_reader(max_chunksize=1000)` is one, becomes the pages of the whole table."""
    count = 300_000
    table = pa.table({"n": np.arange(count), "t": pa.array(np.char.add("text ", np.arange(count).astype(str)))})
    batches = table.to_batches(max_chunksize=1000)
    (fragment,) = _write(_world(tmp_path), batches, in_memory=in_memory)
    reader = LanceFileReader(str(tmp_path / data_path(fragment.files[0].path)))
    assert [len(column.pages) for column in reader.metadata().columns] == [1, 1]
    assert reader.read_all().to_table().equals(table)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_one_row_at_a_time(tmp_path: Path, version: str) -> None:
    """From the fourth file on these are made without the codec: pylance reads them, and changes what is in them."""
    kinds = [pa.int64(), pa.float32(), pa.list_(pa.float32(), 4), pa.timestamp("us"), pa.decimal128(9, 2)]
    rows = [
        {
            "n": n,
            "f": n / 4,
            "v": [n + each / 8 for each in range(4)],
            "t": dt.datetime(2026, 1, 1 + n),
            "d": Decimal(n),
        }
        for n in range(12)
    ]
    schema = pa.schema(list(zip("nfvtd", kinds, strict=True)))
    ds = tw.write_dataset(pa.Table.from_pylist(rows[:1], schema), tmp_path / "t", data_storage_version=version)
    for row in rows[1:]:
        ds.insert(pa.Table.from_pylist([row], schema))
    for n in (2, 10):
        ds.update({"f": "-1"}, where=f"n = {n}")
        rows[n]["f"] = -1.0
    theirs = lance.dataset(tmp_path / "t")
    theirs.validate()
    assert sorted(theirs.to_table().to_pylist(), key=lambda row: row["n"]) == rows
    assert theirs.to_table(filter="n > 8 AND f < 0")["v"].to_pylist() == [rows[10]["v"]]
    theirs.optimize.compact_files()
    theirs.update({"f": "f * 2"}, where="n = 11")
    rows[11]["f"] *= 2
    assert sorted(tw.dataset(tmp_path / "t").to_table().to_pylist(), key=lambda row: row["n"]) == rows
