"""Compaction of columns of every type, of blobs, and of tables whose files lie elsewhere; pylance is the judge."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from lance.arrow import bfloat16_array

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.errors import UnsupportedFeature
from tablewright.optimize import Compaction

ROWS = 24
GOLDEN = Path(__file__).parents[1] / "golden" / "lance-blob"


def _column(kind: pa.DataType, value: Any, *, nulls: bool = True) -> pa.Array:
    return pa.array([None if nulls and n % 4 == 1 else value(n) for n in range(ROWS)], kind)


def columns(version: str) -> dict[str, pa.Array]:
    """A column of each type that files of a version can hold."""
    struct = pa.struct({"a": pa.int64(), "l": pa.list_(pa.string()), "s": pa.struct({"d": pa.float32()})})
    storage = pa.array([None if n % 4 == 1 else uuid.UUID(int=n).bytes for n in range(ROWS)], pa.binary(16))
    texts = pa.array([None if n % 4 == 1 else f'{{"a": {n}}}' for n in range(ROWS)])
    found = {
        "json": pa.ExtensionArray.from_storage(pa.json_(), texts),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), storage),
        "bfloat16": bfloat16_array([None if n % 4 == 1 else float(n) for n in range(ROWS)]),
        "struct": _column(struct, lambda n: {"a": n, "l": ["x"] * (n % 3), "s": {"d": 0.5}}, nulls=version != "2.0"),
        "lists": _column(pa.list_(pa.list_(pa.int32())), lambda n: [[n], [], None] if n % 3 else []),
        "dictionary": _column(pa.string(), lambda n: f"word {n % 2}").dictionary_encode(),
        "large": _column(pa.large_string(), lambda n: "x" * n),
        "large_list": _column(pa.large_list(pa.int8()), lambda n: [1] * (n % 5)),
        "vector": _column(pa.list_(pa.float32(), 3), lambda n: [n, 1, 2], nulls=False),
        "nothing": pa.nulls(ROWS),
        "only_nulls": pa.nulls(ROWS, pa.int64()),
        "time": _column(pa.timestamp("us", "UTC"), lambda n: dt.datetime(2020, 1, 1 + n, tzinfo=dt.UTC)),
        "decimal": _column(pa.decimal128(20, 3), lambda n: Decimal(n)),
        "bytes": _column(pa.binary(4), lambda n: b"abcd"),
        "flag": _column(pa.bool_(), lambda n: n % 2 == 0),
    }
    if version == "2.2":
        found["map"] = _column(pa.map_(pa.string(), pa.int64()), lambda n: [("k", n)] * (n % 3))
    return found


def typed(version: str) -> pa.Table:
    arrays = columns(version)
    schema = pa.schema([pa.field("id", pa.int64()), *(pa.field(name, each.type) for name, each in arrays.items())])
    return pa.table([pa.array(range(ROWS)), *arrays.values()], schema=schema)


def reads(uri: str, **options: Any) -> tuple[pa.Table, pa.Table]:
    """The rows by id, as pylance and as we read them. Both find nothing to complain about."""
    theirs, ours = lance.dataset(uri), tw.dataset(uri)
    theirs.validate()
    ours.validate()
    return theirs.to_table(**options), ours.to_table(**options)


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def assert_same(before: tuple[pa.Table, pa.Table], after: tuple[pa.Table, pa.Table]) -> None:
    for then, now in zip(before, after, strict=True):
        assert now.schema.equals(then.schema, check_metadata=True)
        wanted, found = (table.take(pc.sort_indices(table["id"])) for table in (then, now))
        different = [name for name in then.schema.names if not _decoded(found[name]).equals(_decoded(wanted[name]))]
        assert not different, (found.select(different), wanted.select(different))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("writer", [tw, lance], ids=["ours", "pylance"])
def test_values_of_every_type_stay(tmp_path: Path, version: str, writer: Any) -> None:
    uri = str(tmp_path / "t")
    writer.write_dataset(
        typed(version), uri, max_rows_per_file=5, data_storage_version=version, enable_stable_row_ids=True
    )
    writer.dataset(uri).delete("id % 5 = 2")
    before = reads(uri, with_row_id=True)
    assert tw.dataset(uri).optimize.compact_files().fragments_removed == 5
    assert_same(before, reads(uri, with_row_id=True))
    (fragment,) = tw.dataset(uri).get_fragments()
    assert not fragment.num_deletions


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_columns_of_every_type_are_carried(tmp_path: Path, version: str) -> None:
    """They came while the groups were rewritten; of one fragment all rows went, and of another some."""
    uri, table = str(tmp_path / "t"), typed(version)
    tw.write_dataset(table.select(["id"]), uri, max_rows_per_file=5, data_storage_version=version)
    tw.dataset(uri).delete("id = 7")
    stale = tw.dataset(uri)
    results = [task.execute(stale) for task in Compaction.plan(stale).tasks]
    live = table.filter(pa.array([n != 7 for n in range(ROWS)])).drop_columns(["id"])
    tw.dataset(uri).add_columns(live.to_reader())
    tw.dataset(uri).delete("id < 5 or id = 13")
    before = reads(uri)
    assert Compaction.commit(stale, results).bytes_carried > 0
    assert_same(before, reads(uri))


def test_a_column_that_may_not_be_null_beside_a_fragment_that_is_gone(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("v", pa.string(), nullable=False)])
    tw.write_dataset(pa.table([range(40), ["x"] * 40], schema=schema), uri, max_rows_per_file=10)
    stale = tw.dataset(uri)
    results = [task.execute(stale) for task in Compaction.plan(stale).tasks]
    tw.dataset(uri).delete("id < 10")
    tw.dataset(uri).update({"v": "'new'"}, where="id = 14", write_mode="rewrite_columns")
    before = reads(uri)
    Compaction.commit(stale, results)
    assert_same(before, reads(uri))


def test_columns_without_files_stay_without(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"id": range(40)}), uri, max_rows_per_file=10)
    lance.dataset(uri).add_columns(pa.field("n", pa.int64()))
    lance.write_dataset(pa.table({"id": [40], "n": [1]}), uri, mode="append")
    before = reads(uri)
    tw.dataset(uri).optimize.compact_files(excluded_fragment_ids=[4])
    assert_same(before, reads(uri))
    first, last = lance.dataset(uri).get_fragments()
    assert {tuple(file.fields) for fragment in (first, last) for file in fragment.data_files()} == {(0,), (0, 1)}
    tw.dataset(uri).optimize.compact_files()
    assert_same(before, reads(uri))


# ----------------------------------------------------------------------------------------------------------- blobs
def _golden(tmp_path: Path, name: str) -> str:
    return shutil.copytree(GOLDEN / name / "table", str(tmp_path / name))


BLOBS = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir() and "managed" not in path.name)


@pytest.mark.parametrize("name", BLOBS)
def test_blobs_read_back(tmp_path: Path, name: str) -> None:
    uri = _golden(tmp_path, name)
    tw.dataset(uri).delete("id = 1")
    before = reads(uri, blob_handling="all_binary")
    metrics = tw.dataset(uri).optimize.compact_files(materialize_deletions_threshold=0)
    assert metrics.fragments_removed > 0
    assert_same(before, reads(uri, blob_handling="all_binary"))


def test_blobs_that_are_managed_elsewhere_are_refused(tmp_path: Path) -> None:
    uri = _golden(tmp_path, "v2_2.2_managed")
    files = {name for _, _, names in os.walk(uri) for name in names}
    with pytest.raises(UnsupportedFeature, match="managed blobs"):
        tw.dataset(uri).optimize.compact_files(materialize_deletions_threshold=0)
    assert files == {name for _, _, names in os.walk(uri) for name in names}


def test_blobs_in_files_of_their_own(tmp_path: Path) -> None:
    """Groups that are dropped take the objects with them; those that are committed keep theirs."""
    uri, outside = str(tmp_path / "t"), tmp_path / "a.bin"
    outside.write_bytes(b"0123456789")
    link = lance.Blob(uri=f"file://{outside}", position=2, size=3)
    field = lance.blob_field("b", inline_size_threshold=50, dedicated_size_threshold=500)
    values = [None if n % 5 == 1 else link if n == 30 else bytes([n]) * (n * 30) for n in range(40)]
    blobs = pa.ExtensionArray.from_storage(field.type, lance.blob_array(values).storage)
    table = pa.table([pa.array(range(40)), blobs], schema=pa.schema([pa.field("id", pa.int64()), field]))
    lance.write_dataset(table, uri, max_rows_per_file=10, allow_external_blob_outside_bases=True)
    stale = tw.dataset(uri)
    results = [task.execute(stale) for task in Compaction.plan(stale, {"target_rows_per_fragment": 20}).tasks]
    tw.dataset(uri).delete("id = 25")
    tw.dataset(uri).optimize.compact_files(target_rows_per_fragment=20, excluded_fragment_ids=[2, 3])
    before = reads(uri, blob_handling="all_binary")
    metrics = Compaction.commit(stale, results)
    assert (metrics.groups_dropped, metrics.fragments_removed) == (1, 2)
    assert_same(before, reads(uri, blob_handling="all_binary"))
    used = {
        file.path.removesuffix(".lance")
        for entry in stale.versions()
        for fragment in table_of(stale.checkout_version(entry["version"])).snapshot.fragments
        for file in fragment.files
    }
    data = tmp_path / "t" / "data"
    found = {file.relative_to(data).parts[0].split(".")[0] for file in data.rglob("*") if file.is_file()}
    assert found <= used, "objects with the bytes of a group that was dropped"


# ------------------------------------------------------------------------------------------- files that lie elsewhere
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_a_shallow_clone(tmp_path: Path, stable: bool) -> None:
    source, uri = str(tmp_path / "source"), str(tmp_path / "clone")
    data = pa.table({"id": range(40), "v": [f"x{n}" for n in range(40)]})
    theirs = lance.write_dataset(data, source, max_rows_per_file=10, enable_stable_row_ids=stable)
    theirs.delete("id = 3")
    theirs.shallow_clone(uri, theirs.version)
    stale = tw.dataset(uri)
    results = [task.execute(stale) for task in Compaction.plan(stale).tasks]
    tw.dataset(uri).delete("id = 13")
    tw.dataset(uri).update({"v": "'new'"}, where="id in (14, 25)", write_mode="rewrite_columns")
    before, files = reads(uri, with_row_id=stable), sorted(os.listdir(Path(source, "data")))
    Compaction.commit(stale, results)
    assert_same(before, reads(uri, with_row_id=stable))
    assert sorted(os.listdir(Path(source, "data"))) == files
    assert lance.dataset(source).count_rows() == 39
    assert not any(file.base_id for fragment in table_of(stale).snapshot.fragments for file in fragment.files)


def test_a_branch(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    data = pa.table({"id": range(40)})
    lance.write_dataset(data, uri, max_rows_per_file=10).create_branch("side").delete("id = 5")
    side = tw.dataset(uri).checkout_version(("side", None))
    before = side.to_table()
    stale = tw.dataset(uri).checkout_version(("side", None))
    results = [task.execute(stale) for task in Compaction.plan(stale).tasks]
    side.delete("id = 6")
    Compaction.commit(stale, results)
    theirs = lance.dataset(uri).checkout_version(("side", None))
    theirs.validate()
    assert theirs.to_table().equals(stale.to_table()) and stale.to_table().num_rows == before.num_rows - 1
    assert len(stale.get_fragments()) == 1
    assert len(tw.dataset(uri).get_fragments()) == 4 and lance.dataset(uri).to_table().equals(data)


def test_a_fragment_reuse_index_is_respected(tmp_path: Path) -> None:
    """Case 10: pylance deferred the remap of an index; our compaction, and rows deleted meanwhile, on top of it."""
    uri = str(tmp_path / "t")
    theirs = lance.write_dataset(pa.table({"id": range(60), "v": range(60)}), uri, max_rows_per_file=10)
    theirs.create_scalar_index("v", "BTREE")
    theirs.delete("id = 7")
    theirs.optimize.compact_files(target_rows_per_fragment=20, defer_index_remap=True)
    assert "__lance_frag_reuse" in {index["name"] for index in theirs.list_indices()}
    stale = tw.dataset(uri)
    plan = Compaction.plan(stale, {"target_rows_per_fragment": 100})
    results = [task.execute(stale) for task in plan.tasks]
    assert results
    tw.dataset(uri).delete("id in (20, 41)")
    Compaction.commit(stale, results)
    for library in (tw, lance):
        dataset = library.dataset(uri)
        dataset.validate()
        found = [dataset.to_table(filter=f"v = {n}")["id"].to_pylist() for n in range(60)]
        assert found == [[] if n in (7, 20, 41) else [n] for n in range(60)]
    theirs = lance.dataset(uri)
    theirs.insert(pa.table({"id": [60], "v": [60]}))
    theirs.optimize.optimize_indices()
    found = [theirs.to_table(filter=f"v = {n}")["id"].to_pylist() for n in range(61)]
    assert found == [[] if n in (7, 20, 41) else [n] for n in range(61)]
