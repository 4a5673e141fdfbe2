"""Columns added, altered, dropped and merged through the public face; pylance reads and changes every result."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyroaring import BitMap
from tests.unit.api.test_columns import _rows, _while_computing, _written

import tablewright as tw
from tablewright.errors import CommitConflict, InvalidRequest
from tablewright.operations.columns.schema import InvalidColumns
from tablewright.optimize import Compaction

SYSTEM = ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]
ROWS = 10


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def stable(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def ds(tmp_path: Path, version: str, stable: bool) -> tw.LanceDataset:
    """Three fragments of four, four and two rows; rows 1, 4, 5 and 9 are deleted."""
    ds = _written(tmp_path, data_storage_version=version, enable_stable_row_ids=stable)
    ds.delete("id in (1, 4, 5, 9)")
    return ds


@pytest.fixture
def plain(tmp_path: Path) -> tw.LanceDataset:
    """Three fragments, nothing deleted."""
    return _written(tmp_path)


def _tree(ds: tw.LanceDataset) -> set[str]:
    return {str(path) for path in Path(ds.uri).rglob("*") if path.is_file()}


def _check(ds: tw.LanceDataset, *, go_on: bool = True) -> pa.Table:
    """Pylance sees what we see, and can change the table further."""
    there = lance.dataset(ds.uri)
    there.validate()
    ds.validate()
    columns = [*ds.schema.names, *SYSTEM]
    ours, theirs = ds.to_table(columns=columns), there.to_table(columns=columns)
    assert ours.schema.equals(theirs.schema, check_metadata=True), f"{ours.schema}\n{theirs.schema}"
    assert ours.equals(theirs), f"{ours.to_pylist()}\n{theirs.to_pylist()}"
    result = ds.to_table()
    if go_on:
        there.delete("_rowaddr = 0")
        if ds.count_rows() > 1:
            there.optimize.compact_files(materialize_deletions_threshold=0.0)
        there.validate()
        left = result.slice(result.num_rows - there.count_rows())
        assert tw.dataset(ds.uri).to_table().equals(left) and there.to_table().equals(left)
    return result


def _fragments_of(batch: pa.RecordBatch) -> set[int]:
    return {address >> 32 for address in batch["_rowaddr"].to_pylist()}


# -------------------------------------------------------------------------------------------------------------- add
def test_add_by_sql(ds: tw.LanceDataset) -> None:
    before = {file.path for fragment in ds.get_fragments() for file in fragment.data_files()}
    ds.add_columns({"c": "id + 1", "t": "s || '!'", "one": "1", "big": "n > 30"})
    result = _check(ds)
    ids = result["id"].to_pylist()
    assert ids == [0, 2, 3, 6, 7, 8]
    assert result["c"].to_pylist() == [i + 1 for i in ids] and result["one"].to_pylist() == [1] * 6
    assert result["t"].to_pylist() == ["r0!", "r2!", None, "r6!", None, "r8!"]
    assert not ds.schema.field("one").nullable and ds.schema.field("c").nullable
    files = [[file.path for file in fragment.data_files()] for fragment in ds.get_fragments()]
    assert all(len(paths) == 2 and paths[0] in before for paths in files)


def test_add_nulls(ds: tw.LanceDataset) -> None:
    before = [fragment.data_files() for fragment in ds.get_fragments()]
    ds.add_columns(pa.field("a", pa.int8(), metadata={"k": "v"}))
    ds.add_columns([pa.field("l", pa.list_(pa.float32())), pa.field("v", pa.list_(pa.float32(), 2))])
    ds.add_columns(pa.schema({"t": pa.string()}, metadata={"about": "it"}))
    ds.add_columns({"sql": "cast(null as double)"})
    assert [fragment.data_files() for fragment in ds.get_fragments()] == before
    result = _check(ds)
    assert all(result[name].null_count == 6 for name in ("a", "l", "v", "t", "sql"))
    assert ds.schema.metadata == {b"about": b"it"} and ds.schema.field("a").metadata == {b"k": b"v"}


def test_add_by_function(ds: tw.LanceDataset) -> None:
    seen: list[Any] = []

    @tw.batch_udf()
    def function(batch: pa.RecordBatch) -> pd.DataFrame:
        seen.append((batch.schema.names, batch["id"].to_pylist()))
        return pd.DataFrame({"double": np.array(batch["id"].to_pylist()) * 2, "text": ["x"] * batch.num_rows})

    ds.add_columns(function, read_columns=["_rowid", "id"], batch_size=3)
    assert seen[0] == (["_rowid", "id"], [0])  # the sample
    assert [ids for _, ids in seen[1:]] == [[0, 2], [3], [6], [7], [8]]
    result = _check(ds)
    assert result["double"].to_pylist() == [i * 2 for i in result["id"].to_pylist()]
    assert ds.schema.metadata is None  # pandas' own notes stay out


def test_add_by_function_with_schema(ds: tw.LanceDataset) -> None:
    schema = pa.schema([pa.field("v", pa.list_(pa.float32(), 2), nullable=False), pa.field("d", pa.string())])

    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        assert batch.num_rows and batch.schema.names == ["id", "n", "s"]
        vectors = pa.array([[i, i] for i in batch["id"].to_pylist()], schema.field("v").type)
        return pa.record_batch([vectors, batch["s"]], names=["v", "d"])

    ds.add_columns(tw.batch_udf(schema)(function))
    result = _check(ds)
    assert result["v"].to_pylist() == [[i, i] for i in result["id"].to_pylist()] and result["d"].equals(result["s"])
    assert not ds.schema.field("v").nullable


def test_add_from_a_stream(ds: tw.LanceDataset) -> None:
    values = pa.table(
        {"r": range(6), "l": [[i] * i for i in range(6)], "st": [{"x": i, "y": [str(i)]} for i in range(6)]}
    )
    ds.add_columns(values.to_reader(max_chunksize=4))
    ds.add_columns(iter(values.select(["r"]).rename_columns(["again"]).to_batches()), batch_size=2)
    ds.add_columns(pd.DataFrame({"frame": np.arange(6)}))
    ds.add_columns(pa.table({"small": range(6)}), reader_schema=pa.schema({"small": pa.int8()}))
    result = _check(ds)
    for name in ("r", "again", "frame", "small"):
        assert result[name].to_pylist() == list(range(6))
    assert result["st"].to_pylist() == values["st"].to_pylist() and ds.schema.field("small").type == pa.int8()


@pytest.mark.parametrize(
    "values",
    [
        pa.array([{"a": 1, "b": [{"c": "x"}, None]}, None, {"a": None, "b": []}, {"a": 4, "b": None}]),
        pa.array([[b"x", None], None, [], [b"y"]]),
        pa.array([Decimal("1.5"), None, Decimal("-2"), Decimal("3")], pa.decimal128(10, 2)),
        pa.array(["a", "b", None, "a"]).dictionary_encode(),
        pa.array([[("k", 1)], None, [], [("x", 2), ("y", None)]], pa.map_(pa.string(), pa.int64())),
        pa.array([b"0" * 16, None, b"1" * 16, b"2" * 16], pa.uuid()),
        pa.array(['{"a":1}', None, "[]", "3"], pa.json_()),
        pa.array([[1.5] * 4, None, [2.5] * 4, [0.0] * 4], pa.list_(pa.float16(), 4)),
        pa.nulls(4),
    ],
    ids=lambda array: str(array.type).split("<")[0],
)
@pytest.mark.parametrize("how", ["stream", "function"])
def test_add_any_type(tmp_path: Path, values: pa.Array, how: str) -> None:
    ds = _written(tmp_path, {"id": range(6)})
    ds.delete("id in (0, 4)")
    table = pa.table({"x": values})
    if how == "stream":
        ds.add_columns(table.to_reader(max_chunksize=3))
    else:
        by_id = dict(zip([1, 2, 3, 5], range(4), strict=True))
        batch = table.to_batches()[0]
        ds.add_columns(lambda rows: batch.take(pa.array([by_id[i] for i in rows["id"].to_pylist()])), batch_size=2)
    result = _check(ds)
    assert result["x"].to_pylist() == values.to_pylist()


def test_new_members_of_a_struct(tmp_path: Path, stable: bool) -> None:
    rows = {"id": range(4), "s": [{"p": 0}, None, {"p": 2}, {"p": None}], "l": [[{"x": 1}]] * 4}
    ds = _written(tmp_path, rows, max_rows_per_file=2, enable_stable_row_ids=stable)
    ds.add_columns(pa.schema({"s": pa.struct({"nothing": pa.int8()}), "l": pa.list_(pa.struct({"y": pa.int8()}))}))
    ds.add_columns({"s": "named_struct('w', id)"})
    ds.add_columns(pa.table({"s": [{"t": str(i)} for i in range(4)]}))
    result = _check(ds)
    assert result["s"].to_pylist() == [
        None if i == 1 else {"p": [0, None, 2, None][i], "nothing": None, "w": i, "t": str(i)} for i in range(4)
    ]
    assert result["l"].to_pylist() == [[{"x": 1, "y": None}]] * 4
    with pytest.raises(InvalidColumns, match="inside a list"):
        ds.add_columns(pa.table({"l": [[{"z": 1}]] * 4}))


def test_add_to_an_empty_table(tmp_path: Path) -> None:
    ds = _written(tmp_path, _rows().slice(0, 0))
    ds.add_columns({"c": "id + 1"})
    ds.add_columns(lambda batch: pa.record_batch({"f": pa.array(batch["id"].to_pylist(), pa.int64())}))
    ds.add_columns(pa.table({"r": pa.array([], pa.string())}))
    ds.alter_columns({"path": "id", "data_type": pa.int32()})
    ds.insert(_rows(0, 2).cast(pa.schema({"id": pa.int32(), "n": pa.int32(), "s": pa.string()})))
    assert _check(ds).to_pydict()["c"] == [None, None]
    assert [field.name for field in ds.schema] == ["id", "n", "s", "c", "f", "r"]


# ------------------------------------------------------------------------------------------------------ alter, drop
def test_rename_and_nullability_are_metadata_only(ds: tw.LanceDataset) -> None:
    files = [fragment.data_files() for fragment in ds.get_fragments()]
    ds.alter_columns({"path": "id", "name": "key", "nullable": False}, {"path": "s", "name": "text"})
    ds.alter_columns({"path": "key", "name": "n"}, {"path": "n", "name": "key"})
    ds.alter_columns({"path": "n", "nullable": True})
    assert [fragment.data_files() for fragment in ds.get_fragments()] == files
    result = _check(ds)
    assert result.schema.names == ["n", "key", "text"] and result["n"].to_pylist() == [0, 2, 3, 6, 7, 8]


def test_casts(ds: tw.LanceDataset) -> None:
    ds.alter_columns(
        {"path": "id", "data_type": pa.int8()}, {"path": "s", "name": "text", "data_type": pa.large_string()}
    )
    result = _check(ds)
    assert result.schema.types == [pa.int8(), pa.int32(), pa.large_string()]
    assert result["id"].to_pylist() == [0, 2, 3, 6, 7, 8]
    ds = tw.dataset(ds.uri)
    ds.alter_columns({"path": "text", "data_type": pa.dictionary(pa.int8(), pa.string())})
    assert ds.to_table()["text"].to_pylist() == [None if i % 4 == 3 else f"r{i}" for i in (2, 3, 6, 7, 8)]


def test_a_deleted_value_may_not_fit(tmp_path: Path) -> None:
    ds = _written(tmp_path, {"x": [1, 1000, 3]})
    ds.delete("x = 1000")
    ds.alter_columns({"path": "x", "data_type": pa.int8()})
    assert _check(ds)["x"].to_pylist() == [1, 3]


@pytest.mark.parametrize(
    ("own", "wanted"),
    [
        (pa.array([1.5, None, -2.5]), pa.float16()),
        (pa.array([b"x", None, b""]), pa.large_binary()),
        (pa.array([1, None, 86_400_000_000], pa.timestamp("us")), pa.date32()),
        (pa.array([1, None, 3], pa.date32()), pa.timestamp("ms", "UTC")),
        (pa.array([1, None, 3], pa.duration("s")), pa.duration("us")),
        (pa.array([Decimal("1.25"), None, Decimal("9.99")], pa.decimal128(10, 2)), pa.decimal256(40, 1)),
        (pa.array([[1, None], None, []], pa.list_(pa.int32())), pa.large_list(pa.int64())),
        (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int32())), pa.list_(pa.int16(), 2)),
        (pa.array([[1.5, 2], None, [3, 4]], pa.list_(pa.float32(), 2)), pa.list_(pa.float64())),
        (pa.array(["a", None, "b"]).dictionary_encode(), pa.string()),
    ],
    ids=lambda value: str(value if isinstance(value, pa.DataType) else value.type),
)
def test_cast_as_pylance_does(tmp_path: Path, own: pa.Array, wanted: pa.DataType) -> None:
    ds = _written(tmp_path, pa.table({"id": range(3), "x": own}), max_rows_per_file=2)
    twin = lance.write_dataset(pa.table({"id": range(3), "x": own}), str(tmp_path / "twin.lance"))
    ds.alter_columns({"path": "x", "data_type": wanted})
    twin.alter_columns({"path": "x", "data_type": wanted})
    result = _check(ds)
    assert result.schema.field("x").type == wanted and result.equals(twin.to_table())


def test_nested_alterations(tmp_path: Path, version: str, stable: bool) -> None:
    rows = pa.table(
        {
            "id": range(5),
            "s": [{"p": i, "q": str(i)} for i in range(5)],
            "l": [[{"m": i, "n": i}] * i for i in range(5)],
        }
    )
    ds = _written(tmp_path, rows, max_rows_per_file=3, data_storage_version=version, enable_stable_row_ids=stable)
    ds.delete("id = 1")
    ds.alter_columns(
        {"path": "s.p", "name": "pp", "data_type": pa.int8()},
        {"path": "l.item.m", "data_type": pa.int32()},
        {"path": "l.item.n", "name": "nn"},
    )
    result = _check(ds, go_on=False)
    kept = (0, 2, 3, 4)
    assert result["s"].to_pylist() == [{"pp": i, "q": str(i)} for i in kept]
    assert result["l"].to_pylist() == [[{"m": i, "nn": i}] * i for i in kept]
    assert ds.schema.field("s").type == pa.struct({"pp": pa.int8(), "q": pa.string()})
    ds.drop_columns(["s.q", "l.item.m"])
    assert _check(ds)["l"].to_pylist() == [[{"nn": i}] * i for i in kept]


def test_packed_structs(tmp_path: Path) -> None:
    """They are one column of their files: a member can get another name or type, and not go."""
    packed = pa.field("s", pa.struct({"p": pa.int32(), "q": pa.float32()}), metadata={"lance-encoding:packed": "true"})
    rows = pa.table(
        {"id": range(3), "s": [{"p": i, "q": i / 2} for i in range(3)]}, schema=pa.schema([("id", pa.int64()), packed])
    )
    ds = _written(tmp_path, rows, max_rows_per_file=2)
    for refused in (
        lambda: ds.drop_columns(["s.p"]),
        lambda: ds.add_columns(packed.with_type(pa.struct({"w": pa.int8()}))),
    ):
        with pytest.raises(InvalidRequest, match="packed struct"):
            refused()
    ds.alter_columns({"path": "s.p", "name": "first"})
    assert _check(ds, go_on=False)["s"].to_pylist() == [{"first": i, "q": i / 2} for i in range(3)]
    ds.alter_columns({"path": "s.first", "data_type": pa.int64()})
    ds.add_columns({"s": "named_struct('w', id)"})
    assert _check(ds)["s"].to_pylist() == [{"first": i, "q": i / 2, "w": i} for i in range(3)]


def test_indices_follow_their_column(plain: tw.LanceDataset) -> None:
    for column in ("id", "n"):
        lance.dataset(plain.uri).create_scalar_index(column, "BTREE")
    plain.checkout_latest()
    plain.alter_columns({"path": "id", "name": "key", "nullable": False})
    assert {index["fields"][0] for index in plain.list_indices()} == {"key", "n"}
    with pytest.raises(
        OSError, match=r"Cannot cast column\(s\) \[key\] to a new type: they have 1 index\(es\) attached"
    ):
        plain.alter_columns({"path": "key", "data_type": pa.int32()})
    plain.add_columns({"c": "key"})
    plain.alter_columns({"path": "s", "data_type": pa.large_string()})
    plain.drop_columns(["n"])
    assert [index["fields"] for index in plain.list_indices()] == [["key"]]
    there = lance.dataset(plain.uri)
    assert there.to_table(filter="key = 7")["c"].to_pylist() == [7]
    assert "ScalarIndexQuery" in there.scanner(filter="key = 7").explain_plan()


def test_drop(ds: tw.LanceDataset) -> None:
    ds.add_columns({"c": "id", "d": "n"})
    ds.drop_columns(["n", "c"])
    assert _check(ds, go_on=False).schema.names == ["id", "s", "d"]
    ds.drop_columns(["d"])
    ds.add_columns({"e": "id"})
    result = _check(ds)
    assert result["e"].equals(result["id"]) and all(len(fragment.data_files()) == 2 for fragment in ds.get_fragments())


# ------------------------------------------------------------------------------------------------------------ merge
def test_merge(ds: tw.LanceDataset) -> None:
    right = pa.table(
        {"k": [8, 0, 0, 77, None], "y": ["eight", "zero", "null", "none", "x"], "z": [[1], [2], None, [], [3]]}
    )
    ds.merge(right, "id", "k")
    result = _check(ds)
    assert result["y"].to_pylist() == ["null", None, None, None, None, "eight"]
    assert result["z"].to_pylist() == [None, None, None, None, None, [1]]


def test_merge_by_other_keys(tmp_path: Path, stable: bool) -> None:
    ds = _written(tmp_path, enable_stable_row_ids=stable)
    ids = pa.array(ds.to_table(columns=["_rowid"])["_rowid"].to_pylist(), pa.uint64())
    ds.merge(pa.table({"_rowid": ids, "a": range(10)}), "_rowid")
    ds.merge({"s": ["r1", None], "b": [1, 2]}, "s")
    ds.merge(pd.DataFrame({"id": [3], "c": ["three"]}), "id")
    ds.merge(pa.table({"id": pa.array([], pa.int64()), "e": pa.array([], pa.string())}), "id")
    result = _check(ds)
    assert result["a"].to_pylist() == list(range(10))
    assert result["b"].to_pylist() == [1 if i == 1 else 2 if i % 4 == 3 else None for i in range(10)]
    assert result["c"].to_pylist()[3] == "three" and result["e"].null_count == 10


# -------------------------------------------------------------------------------------------------------- fragments
@pytest.mark.parametrize(
    "how",
    [
        lambda fragment: fragment.merge_columns({"c": "id * 2"}),
        lambda fragment: fragment.merge_columns(
            lambda b: pa.record_batch({"c": pc.multiply(b["id"], 2)}), columns=["id"]
        ),
        lambda fragment: fragment.merge_columns(
            pa.table({"c": pc.multiply(fragment.to_table()["id"], 2)}).to_reader(max_chunksize=1)
        ),
        lambda fragment: fragment.merge(pa.table({"k": range(10), "c": range(0, 20, 2)}), "id", "k"),
    ],
    ids=["sql", "function", "stream", "join"],
)
def test_fragment_columns(ds: tw.LanceDataset, how: Callable[[Any], Any]) -> None:
    parts = [how(fragment) for fragment in ds.get_fragments()]
    merge = tw.LanceOperation.Merge([metadata for metadata, _ in parts], parts[0][1], preserves_nullability=True)
    made = tw.LanceDataset.commit(ds, merge, read_version=ds.version)
    result = _check(made)
    assert result["c"].to_pylist() == [i * 2 for i in result["id"].to_pylist()]


@pytest.mark.parametrize("mode", ["", "rewrite_columns"])
def test_update_columns_of_a_fragment(ds: tw.LanceDataset, mode: str) -> None:
    fragment = ds.get_fragment(0)
    assert fragment is not None
    data = pa.table(
        {
            "id": [3, 1, 2, 2, 8],
            "s": ["three", "gone", "x", None, "elsewhere"],
            "n": pa.array([3, 1, 5, 2, 8], pa.int32()),
        }
    )
    metadata, fields, offsets = fragment.update_columns(data, left_on="id", with_offsets=True)
    assert sorted(fields) == [1, 2] and BitMap.deserialize(offsets) == BitMap([2, 3])
    update = tw.LanceOperation.Update(
        updated_fragments=[metadata], fields_modified=fields, update_mode=mode, updated_fragment_offsets={0: offsets}
    )
    made = tw.LanceDataset.commit(ds, update, read_version=ds.version)
    result = _check(made)
    assert result["s"].to_pylist()[:3] == ["r0", None, "three"] and result["n"].to_pylist()[:3] == [0, 2, 3]


# ------------------------------------------------------------------------------------------------------ other writers
Meanwhile = Callable[[tw.LanceDataset], Any]


@pytest.mark.parametrize(
    ("meanwhile", "computed"),
    [
        (lambda other: other.insert(_rows(10, 12)), {0: 1, 1: 1, 2: 1, 3: 1}),
        (lambda other: other.delete("id in (0, 3)"), {0: 1, 1: 1, 2: 1}),
        (lambda other: other.delete("id < 4"), {0: 1, 1: 1, 2: 1}),
        (lambda other: other.update({"n": "-1"}, write_mode="rewrite_columns"), {0: 1, 1: 1, 2: 1}),
        (
            lambda other: other.update({"id": "id + 1000"}, where="id = 6", write_mode="rewrite_columns"),
            {0: 1, 1: 2, 2: 1},
        ),
        (
            lambda other: other.update({"s": "'new'"}, where="id in (0, 6)", write_mode="rewrite_rows"),
            {0: 1, 1: 1, 2: 1, 3: 1},
        ),
        (lambda other: other.add_columns({"other": "n"}), {0: 1, 1: 1, 2: 1}),
        (lambda other: other.drop_columns(["n"]), {0: 1, 1: 1, 2: 1}),
        (lambda other: other.alter_columns({"path": "n", "data_type": pa.int64()}), {0: 1, 1: 1, 2: 1}),
        (lambda other: lance.dataset(other.uri).optimize.compact_files(), {0: 1, 1: 1, 2: 1}),
        (lambda other: lance.dataset(other.uri).delete("id = 7"), {0: 1, 1: 1, 2: 1}),
        (lambda other: lance.dataset(other.uri).update({"n": "-1"}, where="id = 7"), {0: 1, 1: 1, 2: 1, 3: 1}),
        (lambda other: lance.dataset(other.uri).create_scalar_index("id", "BTREE"), {0: 1, 1: 1, 2: 1}),
        (lambda other: other.update_schema_metadata({"k": "v"}), {0: 1, 1: 1, 2: 1}),
    ],
    ids=[
        "append",
        "delete",
        "delete fragment",
        "other column",
        "column read",
        "rows",
        "add",
        "drop",
        "cast",
        "compact",
        "pylance delete",
        "pylance update",
        "index",
        "metadata",
    ],
)
def test_nothing_computed_is_thrown_away(
    tmp_path: Path, stable: bool, meanwhile: Meanwhile, computed: dict[int, int]
) -> None:
    ds = _written(tmp_path, enable_stable_row_ids=stable)
    calls, prepared = _while_computing(ds, meanwhile)
    prepared.execute()
    assert calls == computed
    result = _check(ds, go_on=False)
    assert result["c"].to_pylist() == [i + 100 for i in result["id"].to_pylist()]
    files = {path for path in _tree(ds) if path.endswith(".lance") and "/data/" in path}
    used = {
        str(Path(ds.uri) / "data" / file.path)
        for number in range(1, ds.version + 1)
        for fragment in ds.checkout_version(number).get_fragments()
        for file in fragment.data_files()
    }
    assert files == used, "files that no version uses were left behind"


def test_a_stale_handle_adds_to_what_is_there_now(plain: tw.LanceDataset) -> None:
    other = tw.dataset(plain.uri)
    other.insert(_rows(10, 12))
    other.delete("id = 2")
    other.update({"id": "id + 1"}, where="id = 0")
    for transforms in ({"c": "id"}, lambda batch: pa.record_batch({"d": batch["id"]}), pa.field("e", pa.int8())):
        plain = tw.dataset(plain.uri, version=1) if transforms == {"c": "id"} else plain
        plain.add_columns(transforms)
    result = _check(plain)
    assert result["c"].equals(result["id"]) and result["d"].equals(result["id"])


def test_a_cast_goes_on_too(plain: tw.LanceDataset) -> None:
    stale = tw.dataset(plain.uri)
    plain.insert(_rows(10, 12))
    plain.update({"n": "7"}, where="id = 1", write_mode="rewrite_columns")
    stale.alter_columns({"path": "n", "data_type": pa.int64()})
    assert _check(stale)["n"].to_pylist() == [7 if i == 1 else i * 10 for i in range(12)]
    stale, other = tw.dataset(plain.uri), tw.dataset(plain.uri)
    other.insert(stale.to_table().slice(0, 1))
    stale.alter_columns({"path": "n", "name": "m"})
    stale.drop_columns(["s"])
    assert _check(tw.dataset(plain.uri)).schema.names == ["id", "m"]


def _stream(ds: tw.LanceDataset, meanwhile: Meanwhile, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
    """Ten values, before the last of which another writer does something."""
    schema = schema or pa.schema({"c": pa.int64()})

    def batches() -> Any:
        for start in range(0, 10, 5):
            if start:
                meanwhile(tw.dataset(ds.uri))
            yield pa.RecordBatch.from_arrays([pa.array(range(start, start + 5), pa.int64())], schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())


@pytest.mark.parametrize(
    "meanwhile",
    [
        lambda other: other.insert(_rows(10, 12)),
        lambda other: (other.delete("id in (0, 9)"), other.insert(_rows(10, 11))),
        lambda other: other.update({"n": "1"}, write_mode="rewrite_columns"),
        lambda other: other.add_columns({"other": "n"}),
    ],
    ids=["append", "delete, append", "columns", "add"],
)
def test_a_stream_goes_on(plain: tw.LanceDataset, meanwhile: Meanwhile) -> None:
    plain.add_columns(_stream(plain, meanwhile))
    result = _check(plain)
    assert result["c"].to_pylist() == [i if i < 10 else None for i in result["id"].to_pylist()]


def test_a_stream_can_not_follow_rows(plain: tw.LanceDataset) -> None:
    def meanwhile(other: tw.LanceDataset) -> object:
        return other.update({"n": "1"}, where="id = 3", write_mode="rewrite_rows")

    with pytest.raises(CommitConflict, match="moved rows, whose values are lost") as raised:
        plain.add_columns(_stream(plain, meanwhile))
    assert raised.value.retryable
    strict = pa.schema([pa.field("d", pa.int64(), nullable=False)])
    again = tw.dataset(plain.uri)
    with pytest.raises(CommitConflict, match="may not be null"):
        again.add_columns(_stream(again, lambda other: other.insert(_rows(10, 11)), strict))
    assert "d" not in tw.dataset(plain.uri).schema.names


def test_a_stream_follows_rows_through_a_compaction(plain: tw.LanceDataset) -> None:
    plain.add_columns(_stream(plain, lambda other: lance.dataset(other.uri).optimize.compact_files()))
    result = _check(plain)
    assert result["c"].to_pylist() == result["id"].to_pylist() == list(range(10))


# ------------------------------------------------------------------------------------------------------- checkpoints
def _counting(path: Path, calls: list[int], *, fail_at: int | None = None) -> tw.BatchUDF:
    @tw.batch_udf(output_schema=pa.schema({"c": pa.int64()}), checkpoint_file=path)
    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        if fail_at in batch["id"].to_pylist():
            raise RuntimeError("I failed")
        calls.extend(batch["id"].to_pylist())
        return pa.record_batch({"c": pc.multiply(batch["id"], 2)})

    return function


def test_a_checkpoint_saves_what_is_done(ds: tw.LanceDataset, tmp_path: Path) -> None:
    path, calls, again = tmp_path / "checkpoint", list[int](), list[int]()
    with pytest.raises(OSError, match="RuntimeError: I failed"):
        ds.add_columns(_counting(path, calls, fail_at=7), read_columns=["id"], batch_size=1)
    assert calls == [0, 2, 3, 6] and path.exists() and "c" not in tw.dataset(ds.uri).schema.names
    tw.dataset(ds.uri).delete("id = 2")
    ds = tw.dataset(ds.uri)
    ds.add_columns(_counting(path, again), read_columns=["id"], batch_size=1)
    assert again == [7, 8] and not path.exists()
    result = _check(ds)
    assert result["c"].to_pylist() == [i * 2 for i in result["id"].to_pylist()]


def test_a_checkpoint_outlives_changes_of_others(plain: tw.LanceDataset, tmp_path: Path) -> None:
    path, calls, again = tmp_path / "checkpoint", list[int](), list[int]()
    with pytest.raises(OSError, match="I failed"):
        plain.add_columns(_counting(path, calls, fail_at=9), read_columns=["id"], batch_size=2)
    assert calls == list(range(8))
    other = tw.dataset(plain.uri)
    other.add_columns({"other": "n"})  # takes the field id that the finished files were given
    other.update({"id": "id + 100"}, where="id < 4", write_mode="rewrite_columns")
    other.insert(other.to_table().slice(0, 1))
    ds = tw.dataset(plain.uri)
    ds.add_columns(_counting(path, again), read_columns=["id"], batch_size=2)
    assert again == [100, 101, 102, 103, 8, 9, 100]
    result = _check(ds)
    assert result["c"].to_pylist() == [i * 2 for i in result["id"].to_pylist()]


def test_a_checkpoint_is_not_taken_for_another(plain: tw.LanceDataset, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    with pytest.raises(OSError, match="I failed"):
        plain.add_columns(_counting(path, [], fail_at=9), read_columns=["id"])
    elsewhere = tw.write_dataset(_rows(), str(tmp_path / "other.lance"))
    for ds, columns in ((elsewhere, ["id"]), (plain, ["id", "n"])):
        before = _tree(ds)
        with pytest.raises(InvalidRequest, match="another table or other columns"):
            ds.add_columns(_counting(path, []), read_columns=columns)
        assert _tree(ds) == before
    lost = [file for file in Path(plain.uri, "data").iterdir() if file.name not in str(plain.get_fragments())]
    for file in lost:  # somebody cleaned up meanwhile
        file.unlink()
    calls: list[int] = []
    plain.add_columns(_counting(path, calls), read_columns=["id"])
    assert sorted(calls) == list(range(10)) and _check(plain)["c"].to_pylist() == list(range(0, 20, 2))


def test_a_killed_process_is_gone_on_from(plain: tw.LanceDataset, tmp_path: Path) -> None:
    script = f"""
        import os
        import pyarrow as pa, pyarrow.compute as pc
        import tablewright as tw

        @tw.batch_udf(output_schema=pa.schema({{"c": pa.int64()}}), checkpoint_file={str(tmp_path / "c")!r})
        def function(batch):
            if 6 in batch["id"].to_pylist():
                os._exit(9)
            return pa.record_batch({{"c": pc.multiply(batch["id"], 2)}})

        tw.dataset({plain.uri!r}).add_columns(function, read_columns=["id"], batch_size=1)
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(tw.__file__).parents[1])}
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=environment, timeout=120, check=False)
    assert killed.returncode == 9
    calls: list[int] = []
    plain.add_columns(_counting(tmp_path / "c", calls), read_columns=["id"], batch_size=1)
    assert calls == [6, 7, 8, 9] and _check(plain)["c"].to_pylist() == list(range(0, 20, 2))


def test_columns_on_a_branch(plain: tw.LanceDataset) -> None:
    branch = plain.create_branch("trial")
    branch.add_columns({"c": "id + 1"})
    branch.alter_columns({"path": "id", "data_type": pa.int32()})
    assert branch.to_table()["c"].to_pylist() == list(range(1, 11)) and plain.schema.names == ["id", "n", "s"]
    there = lance.dataset(plain.uri).checkout_version(("trial", None))
    assert there.to_table().equals(branch.to_table())


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_columns_that_may_not_be_null_pass_a_compaction_of_rows_that_are_gone(tmp_path: Path, stable: bool) -> None:
    """A fragment was emptied while it was compacted: its rows are hidden, and no value of ours is left for them."""
    ds = tw.write_dataset({"id": range(30)}, str(tmp_path), max_rows_per_file=10, enable_stable_row_ids=stable)
    stale, compactor = tw.dataset(str(tmp_path)), tw.dataset(str(tmp_path))
    results = [task.execute(compactor) for task in Compaction.plan(compactor).tasks]
    ds.delete("id >= 10 and id < 20")
    Compaction.commit(compactor, results)
    schema, calls = pa.schema([pa.field("d", pa.int64(), nullable=False)]), []

    @tw.batch_udf(output_schema=schema)
    def copied(batch: pa.RecordBatch) -> pa.RecordBatch:
        calls.append(batch.num_rows)
        return pa.RecordBatch.from_arrays([batch["id"]], schema=schema)

    stale.add_columns(copied)
    found = stale.to_table()
    assert found["d"].equals(found["id"]) and found.num_rows == 20
    assert calls == [10, 10, 10], "nothing was computed again"
    lance.dataset(str(tmp_path)).validate()
    assert lance.dataset(str(tmp_path)).to_table().equals(found)
