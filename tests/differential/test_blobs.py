"""Blob columns: pylance writes them, we read them; we change the table, pylance reads it; and the other way round.

Two deliberate differences, both about nulls (docs/design/0005): files of version 2.0 describe a null blob as position
1 and size 0, which pylance shows and we show as null; and a null blob has no members, so ``b.kind = 0`` is not true of
it.
"""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.bounded import run_bounded
from tests.differential.referee import assert_same_rows, lance, ours

from tablewright.errors import CommitConflict, InvalidRequest, StorageError, UnsupportedFeature
from tablewright.storage import open_store

GOLDEN = Path(__file__).parents[1] / "golden" / "lance-blob"
NAMES = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
HANDLINGS = [None, "blobs_descriptions", "all_descriptions", "all_binary"]


@pytest.fixture(params=NAMES)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A copy of a golden table."""
    shutil.copytree(GOLDEN / request.param / "table", tmp_path / request.param)
    return str(tmp_path / request.param)


def _with_nulls(table: pa.Table) -> pa.Table:
    """What pylance read from files of version 2.0, with nulls where it shows their stored form."""
    rows = [
        {name: None if value == {"position": 1, "size": 0} else value for name, value in row.items()}
        for row in table.to_pylist()
    ]
    return pa.Table.from_pylist(rows, schema=table.schema)


def _same(uri: str, memory: str | None = None, **options: Any) -> pa.Table:
    """Both read the same; returns it."""
    read = ours.dataset(memory or uri).to_table(**options)
    expected = lance.dataset(uri).to_table(**options)
    assert_same_rows(read, _with_nulls(expected) if "v1_2.0" in uri else expected)
    return read


def _blob_paths(schema: pa.Schema) -> list[str]:
    names = [
        field.name for field in schema if "blob" in str(field.type) or b"lance-encoding:blob" in (field.metadata or {})
    ]
    return ["st.x" if name == "st" else name for name in names if name != "l"]


@pytest.mark.parametrize("handling", HANDLINGS)
def test_every_column_and_filter(golden: str, handling: str | None) -> None:
    if handling in ("blobs_descriptions", "all_descriptions") and Path(golden).name not in ("v1_2.1", "v2_2.2"):
        return  # they are the default under other names
    schema = lance.dataset(golden).schema
    assert ours.dataset(golden).schema.equals(schema, check_metadata=True)
    _same(golden, blob_handling=handling)
    for name in schema.names:
        _same(golden, columns=[name], blob_handling=handling)
        _same(golden, columns=[name], filter="id >= 2", blob_handling=handling)
    _same(golden, columns=schema.names[::-1], filter="id in (0, 3)", blob_handling=handling)
    for path in _blob_paths(schema):
        if "v1_2.0" not in golden:  # there pylance takes a null for a value
            _same(golden, filter=f"{path} is not null", blob_handling=handling)
            _same(golden, columns=["id"], filter=f"{path} is null", blob_handling=handling)


def test_nulls_are_counted(golden: str) -> None:
    binary = lance.dataset(golden).to_table(blob_handling="all_binary")
    for path in _blob_paths(lance.dataset(golden).schema):
        column = binary.combine_chunks().flatten()["st.x"] if path == "st.x" else binary[path]
        assert ours.dataset(golden).count_rows(f"{path} is null") == column.null_count


@pytest.mark.parametrize("filter", ["{} is not null", "{}.size > 10", "{}.kind = 1", "{}.size > 10 and id > 3"])
def test_filters_over_descriptions(golden: str, filter: str) -> None:
    for path in _blob_paths(lance.dataset(golden).schema):
        if "v1" in Path(golden).name.split("_")[0]:
            continue
        text = filter.format(path)
        assert ours.dataset(golden).count_rows(text) == lance.dataset(golden).count_rows(text)
        _same(golden, filter=text)
        _same(golden, columns=["id"], filter=text)


def test_members_of_descriptions(golden: str) -> None:
    if Path(golden).name.startswith(("v1", "mixed")):
        return  # pylance has no such columns there, or shows members of null blobs
    for path in _blob_paths(lance.dataset(golden).schema):
        _same(golden, columns=[f"{path}.size"])
        _same(golden, columns=["id", f"{path}.kind"], filter=f"{path}.size > 0")
        if "." not in path:
            _same(golden, columns={"n": f"{path}.size", "whole": path})


def test_take_fragments_and_streams(golden: str) -> None:
    here, there = ours.dataset(golden), lance.dataset(golden)
    rows = [3, 0, 0, 2]
    names = [None, *([name] for name in there.schema.names)]
    for columns in names:
        expected = there.take(rows, columns=columns)
        expected = _with_nulls(expected) if "v1_2.0" in golden else expected
        assert_same_rows(here.take(rows, columns=columns), expected, metadata=False)
    for handling in HANDLINGS:
        expected = there.to_table(blob_handling=handling)
        expected = _with_nulls(expected) if "v1_2.0" in golden else expected
        batches = list(here.to_batches(batch_size=2, blob_handling=handling))
        assert max(batch.num_rows for batch in batches) <= 2
        assert_same_rows(pa.Table.from_batches(batches), expected)
        parts = [fragment.to_table(blob_handling=handling) for fragment in here.get_fragments()]
        assert_same_rows(pa.concat_tables(parts), expected)
        query = here.sql("SELECT * FROM dataset ORDER BY id")
        query = query if handling is None else query.blob_handling(handling)
        answer = pa.Table.from_batches(query.build().to_batch_records())
        order = expected.sort_by("id") if pa.types.is_integer(expected["id"].type) else expected
        assert answer.to_pylist() == order.to_pylist()


def test_unknown_handling(golden: str) -> None:
    with pytest.raises(ValueError, match="Invalid blob_handling: zz") as theirs:
        lance.dataset(golden).to_table(blob_handling="zz")
    with pytest.raises(ValueError, match="Invalid blob_handling: zz") as mine:
        ours.dataset(golden).to_table(blob_handling="zz")
    assert str(mine.value) == str(theirs.value)


# ------------------------------------------------------------------------------------------------- tables made here
def _values(rows: int, seed: int = 0) -> list[bytes | None]:
    chance = np.random.default_rng(seed)
    sizes = chance.choice([0, 3, 40, 90, 700], rows, p=[0.1, 0.3, 0.3, 0.295, 0.005])
    found = [bytes([(i + seed) % 251]) * int(size) for i, size in enumerate(sizes)]
    return [None if i % 7 == 3 else value for i, value in enumerate(found)]


def _blob(name: str, **options: Any) -> pa.Field:
    return lance.blob_field(name, inline_size_threshold=50, dedicated_size_threshold=500, **options)


def _table(rows: int, start: int = 0, values: list[bytes | None] | None = None) -> pa.Table:
    values = _values(rows, start) if values is None else values
    other = _values(rows, start + 1)
    fields = [
        pa.field("id", pa.int64()),
        _blob("b"),
        pa.field("s", pa.string()),
        _blob("c"),
        pa.field("n", pa.list_(pa.int32())),
    ]
    columns = [
        pa.array(range(start, start + rows), pa.int64()),
        lance.blob_array(values),
        pa.array([f"row {i}" for i in range(start, start + rows)]),
        lance.blob_array(other),
        pa.array([[i, i + 1] for i in range(start, start + rows)], pa.list_(pa.int32())),
    ]
    arrays = [
        column
        if not isinstance(column, pa.ExtensionArray)
        else pa.ExtensionArray.from_storage(field.type, column.storage)
        for column, field in zip(columns, fields, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _in_memory(uri: str) -> str:
    """A copy of a table in the memory of this process."""
    root, copy = Path(uri), f"memory://{Path(uri).parent.name}-{Path(uri).name}"
    store = open_store(copy)
    for path in root.rglob("*"):
        if path.is_file():
            store.put(path.relative_to(root).as_posix(), path.read_bytes())
    return copy


@pytest.fixture(params=["many_pages", "all_null", "all_empty", "deletions", "stable_ids"])
def made(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    uri = str(tmp_path / request.param)
    match request.param:
        case "many_pages":
            lance.write_dataset(_table(20_000), uri, max_rows_per_file=15_000)
        case "all_null":
            lance.write_dataset(_table(50, values=[None] * 50), uri)
        case "all_empty":
            lance.write_dataset(_table(50, values=[b""] * 50), uri)
        case "deletions":
            lance.write_dataset(_table(200), uri, max_rows_per_file=80).delete("id % 3 = 0")
        case "stable_ids":
            ds = lance.write_dataset(_table(100), uri, max_rows_per_file=40, enable_stable_row_ids=True)
            ds.update({"s": "'moved'"}, where="id % 9 = 0")
            lance.write_dataset(_table(30, start=100), uri, mode="append")
    return uri


@pytest.mark.parametrize("place", ["local", "memory"])
def test_tables_of_pylance(made: str, place: str) -> None:
    memory = _in_memory(made) if place == "memory" else None
    for handling in (None, "all_binary"):
        _same(made, memory, blob_handling=handling)
        for name in ("id", "b", "s", "c", "n"):
            _same(made, memory, columns=[name], blob_handling=handling)
        _same(made, memory, columns=["c", "id"], filter="id % 11 = 5", blob_handling=handling)
        _same(made, memory, columns=["id", "b"], filter="b.size > 80", blob_handling=handling) if not handling else None
        _same(made, memory, filter="b is null", blob_handling=handling)
    here, there = ours.dataset(memory or made), lance.dataset(made)
    positions = [there.count_rows() - 1, 0, 17]
    assert_same_rows(here.take(positions), there.take(positions), metadata=False)
    if there.has_stable_row_ids:
        expected = there.to_table(with_row_id=True, blob_handling="all_binary")
        assert_same_rows(here.to_table(with_row_id=True, blob_handling="all_binary"), expected)


def test_external_blobs(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.bin").write_bytes(b"0123456789")
    uri = f"file://{tmp_path}/outside/a.bin"
    values = [lance.Blob(uri=uri), lance.Blob(uri=uri, position=2, size=3), None, b"own"]
    table = pa.table(
        [pa.array([1, 2, 3, 4]), lance.blob_array(values)],
        schema=pa.schema([pa.field("id", pa.int64()), lance.blob_field("b")]),
    )
    path = str(tmp_path / "t")
    lance.write_dataset(table, path, allow_external_blob_outside_bases=True)
    _same(path)
    assert _same(path, blob_handling="all_binary")["b"].to_pylist() == [b"0123456789", b"234", None, b"own"]
    (tmp_path / "outside" / "a.bin").unlink()
    _same(path)
    with pytest.raises(OSError, match=r"Not found: .*a\.bin"):
        ours.dataset(path).to_table(blob_handling="all_binary")


def test_a_dropped_blob_column(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(_table(100), uri)
    lance.dataset(uri).drop_columns(["b"])
    _same(uri)
    for name in ("id", "s", "c", "n"):
        _same(uri, columns=[name])


def test_wanted_columns_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of blobs are not copied where they are not asked for."""
    from tablewright.data import view

    uri = str(tmp_path / "t")
    large = [bytes([i]) * 60_000 for i in range(64)]
    schema = pa.schema([pa.field("id", pa.int64()), lance.blob_field("b"), pa.field("s", pa.string())])
    lance.write_dataset(
        pa.table([pa.array(range(64)), lance.blob_array(large), pa.array(["x"] * 64)], schema=schema), uri
    )
    fetched: list[int] = []
    chunks = view._chunks
    monkeypatch.setattr(view, "_chunks", lambda ranges: (fetched.append(e - b) or (b, e) for b, e in chunks(ranges)))
    _same(uri, columns=["s", "id"])
    _same(uri, columns=["b"])
    assert 0 < sum(fetched) < 300_000


# --------------------------------------------------------------------------------------------------------- changes
def _binary(uri: str) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in lance.dataset(uri).to_table(blob_handling="all_binary").to_pylist()}


def _agree(uri: str) -> dict[int, dict[str, Any]]:
    """The table is valid and both read the same from it, in every form; returns the rows by id."""
    lance.dataset(uri).validate()
    ours.dataset(uri).validate()
    _same(uri)
    _same(uri, blob_handling="all_binary")
    return _binary(uri)


def _files(uri: str) -> set[str]:
    return {path.relative_to(uri).as_posix() for path in Path(uri).rglob("*") if path.is_file()}


SOURCE = pa.table({"id": [0, 4, 3, 777], "s": ["m0", "m4", "m3", "new"]})


def _first(ds: Any) -> int:
    return int(ds.versions()[0]["version"])


CHANGES: dict[str, Any] = {
    "update_rows": lambda ds: ds.update({"s": "'!'"}, where="id in (0, 3, 4, 6, 8)", write_mode="rewrite_rows"),
    "update_columns": lambda ds: ds.update({"s": "'!'"}, where="id in (0, 3, 8)", write_mode="rewrite_columns"),
    "update_where_null": lambda ds: ds.update({"s": "'!'"}, where="b is null"),
    "update_all": lambda ds: ds.update({"s": "concat(s, '!')"}),
    "merge_rows": lambda ds: (
        ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(SOURCE)
    ),
    "merge_columns": lambda ds: (
        ds.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns").execute(SOURCE)
    ),
    "merge_condition": lambda ds: ds.merge_insert("id").when_matched_update_all("target.b is not null").execute(SOURCE),
    "add_columns": lambda ds: ds.add_columns({"double": "id * 2"}),
    "cast": lambda ds: ds.alter_columns({"path": "id", "data_type": pa.int32()}),
    "drop": lambda ds: ds.drop_columns(["s"]),
    "insert_without": lambda ds: ds.insert(pa.table({"id": [900, 901], "s": ["p", "q"]})),
    "stable_ids": lambda ds: None if ds.has_stable_row_ids else ds.enable_stable_row_ids(),
    "restore": lambda ds: ds.checkout_version(_first(ds)).restore(),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("v2_2.2_nested", "v2_2.2_two_columns")])
def test_rows_keep_their_blobs(name: str, change: str, tmp_path: Path) -> None:
    uri = str(tmp_path / name)
    shutil.copytree(GOLDEN / name / "table", uri)
    before = _binary(uri)
    if name == "v2_2.2_managed":
        with pytest.raises(UnsupportedFeature, match="managed blobs"):
            CHANGES[change](ours.dataset(uri))
        return
    if change == "restore":
        first = lance.dataset(uri, version=_first(ours.dataset(uri)))
        before = {row["id"]: row for row in first.to_table(blob_handling="all_binary").to_pylist()}
    CHANGES[change](ours.dataset(uri))
    after = _agree(uri)
    assert after.keys() - before.keys() <= {777, 900, 901}
    assert before.keys() <= after.keys()
    assert all(after[id]["b"] == before[id]["b"] for id in before if "b" in before[id])
    assert all(after[id]["b"] is None for id in after.keys() - before.keys())
    if change not in ("drop", "cast", "restore") and not name.startswith("mixed"):  # which pylance can't change
        there = lance.dataset(uri)
        there.update({"s": "'theirs'"}, where="id in (3, 4)")
        there.delete("id = 0")
        there.optimize.compact_files()
        again = _agree(uri)
        assert all(again[id]["b"] == after[id]["b"] for id in again)


def test_delete_and_filters(golden: str) -> None:
    if "managed" in golden:
        return
    before = _binary(golden)
    path = _blob_paths(lance.dataset(golden).schema)[0]
    deleted = ours.dataset(golden).delete(f"{path} is null")["num_deleted_rows"]
    after = _agree(golden)
    gone = before.keys() - after.keys()
    assert len(gone) == deleted
    assert all((before[id]["st"]["x"] if path == "st.x" else before[id][path]) is None for id in gone)
    assert not ours.dataset(golden).count_rows(f"{path} is null")


def test_blobs_in_structs_and_lists(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    shutil.copytree(GOLDEN / "v2_2.2_nested" / "table", uri)
    before = _binary(uri)
    ds = ours.dataset(uri)
    ds.update({"st.k": "99"}, where="id in (0, 2)", write_mode="rewrite_rows")
    ds.update({"st.k": "98"}, where="id = 3", write_mode="rewrite_columns")
    given = pa.schema({"id": pa.int64(), "st": pa.struct({"z": pa.string()})})
    source = pa.table({"id": [2, 50], "st": [{"z": "new"}, {"z": "other"}]}, schema=given)
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)
    after = _agree(uri)
    assert {id: row["st"]["k"] for id, row in after.items()} == {0: 99, 1: 2, 2: 99, 3: 98, 50: None}
    assert {id: row["st"]["z"] for id, row in after.items()} == {0: "a", 1: "b", 2: "new", 3: "d", 50: "other"}
    assert all(after[id]["st"]["x"] == before[id]["st"]["x"] and after[id]["l"] == before[id]["l"] for id in before)
    assert after[50]["st"]["x"] is None
    ds.drop_columns(["st.x"])
    _same(uri)


EMPTY_LISTS = """
import tablewright as tw
for columns in (None, ["id"]):
    try:
        print(tw.dataset(sys.argv[1]).to_table(columns=columns, limit=1).num_rows)
    except tw.errors.UnsupportedFeature as error:
        print("refused" if "lists of blobs" in str(error) else error)
"""


@pytest.mark.parametrize("version", ["2.2", "2.3"])
def test_empty_lists_alone_do_not_end_the_process(version: str, tmp_path: Path) -> None:
    """The codec panics where no list that it reads has items; only a process of its own can show what that does."""
    uri = str(tmp_path / "t")
    field = pa.field("l", pa.list_(lance.blob_field("item")))
    lists = pa.ListArray.from_arrays(pa.array([0, 0, 1, 1], pa.int32()), lance.blob_array([b"abc"]), type=field.type)
    schema = pa.schema([pa.field("id", pa.int64()), field])
    lance.write_dataset(
        pa.Table.from_arrays([pa.array(range(3)), lists], schema=schema), uri, data_storage_version=version
    )
    ours.dataset(uri).delete("id = 1")
    assert run_bounded(EMPTY_LISTS, uri).split() == ["refused", "1"]


def test_many_rows_move(tmp_path: Path) -> None:
    """Two blob columns share their objects; pylance reads them one by one."""
    uri = str(tmp_path / "t")
    lance.write_dataset(_table(3000), uri, max_rows_per_file=1000, enable_stable_row_ids=True)
    before = _binary(uri)
    ds = ours.dataset(uri)
    ds.update({"s": "'moved'"}, where="id % 3 = 1", write_mode="rewrite_rows")
    ds.update({"s": "'again'"}, where="id % 5 = 1", write_mode="rewrite_rows")
    after = _agree(uri)
    assert all(after[id]["b"] == before[id]["b"] and after[id]["c"] == before[id]["c"] for id in before)
    there = lance.dataset(uri)
    ids = there.to_table(columns=["id"], with_row_id=True).to_pylist()
    files = there.take_blobs("c", ids=[row["_rowid"] for row in ids[-50:]])
    taken = [None if file is None else file.read() for file in files]
    assert taken == [before[row["id"]]["c"] for row in ids[-50:]]
    there.optimize.compact_files()
    there.cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    assert _agree(uri) == after


def test_external_blobs_stay_external(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "base" / "a.bin").write_bytes(b"0123456789")
    uri = f"file://{tmp_path}/base/a.bin"
    values = [lance.Blob(uri=uri), lance.Blob(uri=uri, position=2, size=3), None, b"own"]
    schema = pa.schema([pa.field("id", pa.int64()), lance.blob_field("b"), pa.field("s", pa.string())])
    table = pa.table([pa.array([1, 2, 3, 4]), lance.blob_array(values), pa.array(list("abcd"))], schema=schema)
    path = str(tmp_path / "t")
    lance.write_dataset(table, path, allow_external_blob_outside_bases=True)
    before = lance.dataset(path).to_table().to_pylist()
    ours.dataset(path).update({"s": "'!'"}, write_mode="rewrite_rows")
    after = lance.dataset(path).to_table().to_pylist()
    assert [row["b"] for row in after[:3]] == [row["b"] for row in before[:3]]
    assert [row["b"] for row in _agree(path).values()] == [b"0123456789", b"234", None, b"own"]


def test_branches_and_changes(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(_table(60), uri, enable_stable_row_ids=True)
    before = _binary(uri)
    branch = ours.dataset(uri).create_branch("try")
    branch.update({"s": "'there'"}, where="id < 10", write_mode="rewrite_rows")
    rows = branch.to_table(blob_handling="all_binary").to_pylist()
    assert {row["id"]: (row["b"], row["c"]) for row in rows} == {id: (r["b"], r["c"]) for id, r in before.items()}
    theirs = lance.dataset(uri).checkout_version(("try", None)).to_table(blob_handling="all_binary").to_pylist()
    assert rows == theirs
    assert _binary(uri) == before
    ds = ours.dataset(uri)
    ds.update({"s": "'here'"}, where="id = 5", write_mode="rewrite_rows")
    ds.delete("id = 7")
    feed = ds.changes(1, 3).to_table().to_pylist()
    assert [(row["_change_type"], row["id"], row["s"]) for row in feed] == [
        ("update_preimage", 5, "row 5"),
        ("update_postimage", 5, "here"),
        ("delete", 7, "row 7"),
    ]
    assert [(row["b"] or {}).get("size") for row in feed] == [
        None if before[i]["b"] is None else len(before[i]["b"]) for i in (5, 5, 7)
    ]


REFUSED: dict[str, Any] = {
    "update_blob": lambda ds: ds.update({"b": "null"}),
    "update_blob_bytes": lambda ds: ds.update({"b": "x'0102'"}, where="id = 0"),
    "update_reads": lambda ds: ds.update({"id": "b.size"}),
    "add_reads": lambda ds: ds.add_columns({"n": "b.size"}),
    "function_reads": lambda ds: ds.add_columns(
        lambda batch: pa.record_batch({"made": pa.nulls(len(batch), pa.int8())})
    ),
    "merge_gives": lambda ds: ds.merge_insert("id").when_matched_update_all().execute(_table(1)),
    "insert": lambda ds: ds.insert(_table(1)),
    "overwrite": lambda ds: ours.write_dataset(_table(1), ds.uri, mode="overwrite"),
    "insert_bytes": lambda ds: ds.insert(pa.table({"id": [1], "b": pa.array([b"x"], pa.large_binary())})),
    "insert_descriptions": lambda ds: ds.insert(ds.to_table(columns=["id", "b"])),
    "cast": lambda ds: ds.alter_columns({"path": "b", "data_type": pa.large_binary()}),
    "rename_member": lambda ds: ds.alter_columns({"path": "b.data", "name": "x"}),
    "drop_member": lambda ds: ds.drop_columns(["b.data"]),
    "add_member": lambda ds: ds.add_columns(pa.schema({"b": pa.struct({"x": pa.int8()})})),
    "take_blobs": lambda ds: ds.take_blobs("b", indices=[0]),
    "read_blobs": lambda ds: ds.read_blobs("b", indices=[0]),
    "read_blob_ranges": lambda ds: ds.read_blob_ranges("b", [(0, 0, 1)], selector="indices"),
    "to_pandas": lambda ds: ds.to_pandas(blob_mode="lazy"),
}


@pytest.mark.parametrize("call", REFUSED)
def test_what_is_not_offered_is_refused(call: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(_table(10), uri)
    before = _files(uri)
    with pytest.raises((UnsupportedFeature, InvalidRequest), match=r"blob|`b`|b\.data|Column b"):
        REFUSED[call](ours.dataset(uri))
    assert _files(uri) == before


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "2.3"])
def test_writing_a_marked_column(version: str, tmp_path: Path) -> None:
    values = [b"a", None, b"", b"x" * 1000]
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), field])
    table = pa.table([pa.array(range(4), pa.int64()), pa.array(values, pa.large_binary())], schema=schema)
    uri = str(tmp_path / "v1_2.0") if version == "2.0" else str(tmp_path / "t")
    if version in ("2.2", "2.3"):
        with pytest.raises(InvalidRequest, match="does not write blob columns in data storage version 2"):
            ours.write_dataset(table, uri, data_storage_version=version)
        return
    ours.write_dataset(table, uri, data_storage_version=version)
    assert [row["b"] for row in _agree(uri).values()] == values
    assert [file and file.read() for file in lance.dataset(uri).take_blobs("b", indices=[0, 1, 3])] == [
        b"a",
        None,
        b"x" * 1000,
    ]
    ours.dataset(uri).update({"b": "x'0a0b'"}, where="id = 1")
    assert _agree(uri)[1]["b"] == b"\n\x0b"
    for kind, bad in ((pa.binary(), [b"x"]), (pa.string(), ["x"])):
        wrong = pa.table([pa.array(bad, kind)], schema=pa.schema([field.with_type(kind)]))
        with pytest.raises(InvalidRequest, match="only large_binary can be marked as a blob"):
            ours.write_dataset(wrong, str(tmp_path / "wrong"), data_storage_version=version)


@pytest.mark.parametrize(
    "where", ["tablewright.operations.rewrite.hide.hide_rows", "tablewright.data.encoder.DataFileWriter.close"]
)
def test_a_failed_change_leaves_nothing(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(_table(200), uri)
    before = _files(uri)

    def fail(*args: Any, **options: Any) -> None:
        raise StorageError("the disk is gone")

    with monkeypatch.context() as patch:
        patch.setattr(where, fail)
        with pytest.raises(StorageError, match="the disk is gone"):
            ours.dataset(uri).update({"s": "'!'"}, where="id < 150", write_mode="rewrite_rows")
    assert _files(uri) == before
    ours.dataset(uri).update({"s": "'!'"}, where="id < 150", write_mode="rewrite_rows")
    assert any(path.endswith(".blob") for path in _files(uri) - before)


def test_a_conflict_removes_what_was_written_in_vain(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(_table(200), uri)
    prepared = ours.dataset(uri).prepare_update(
        {"s": "'!'"}, where="id < 150", write_mode="rewrite_rows", conflict_retries=0
    )
    ours.dataset(uri).update({"s": "'first'"}, where="id < 100", write_mode="rewrite_rows")
    before = _files(uri)
    with pytest.raises(CommitConflict):
        prepared.execute()
    assert {path for path in _files(uri) - before if path.endswith((".blob", ".lance"))} == set()
    _agree(uri)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_mark_that_came_later(version: str, tmp_path: Path) -> None:
    """pylance fails to describe values that were not written as blobs; nobody may take them for nulls."""
    uri = str(tmp_path / "t")
    values = [b"x", None, b""]
    plain = pa.table({"id": [1, 2, 3], "b": pa.array(values, pa.large_binary())})
    ours.write_dataset(plain, uri, data_storage_version=version)
    ours.dataset(uri).update_field_metadata({"b": {"lance-encoding:blob": "true"}})
    with pytest.raises(UnsupportedFeature, match="field metadata were changed"):
        ours.dataset(uri).to_table()
    with pytest.raises(UnsupportedFeature, match="field metadata were changed"):
        ours.dataset(uri).delete("b is null")
    assert _same(uri, columns=["id"])["id"].to_pylist() == [1, 2, 3]
    assert _same(uri, blob_handling="all_binary")["b"].to_pylist() == values


def test_a_mark_that_went(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    shutil.copytree(GOLDEN / "v2_2.2" / "table", uri)
    ours.dataset(uri).update_field_metadata({"b": {"ARROW:extension:name": None}})
    with pytest.raises(UnsupportedFeature, match="field metadata were changed"):
        ours.dataset(uri).to_table(columns=["b"])
    assert ours.dataset(uri).to_table(columns=["c0"])["c0"].to_pylist()[:3] == [0, 1, 2]


@pytest.mark.parametrize("managed", [False, True])
@pytest.mark.parametrize("target", [None, "files"])
def test_bases_clones_and_branches(managed: bool, target: str | None, tmp_path: Path) -> None:
    (tmp_path / "outside" / "sub").mkdir(parents=True)
    (tmp_path / "files").mkdir()
    (tmp_path / "outside" / "sub" / "a.bin").write_bytes(b"0123456789")
    uri = f"file://{tmp_path}/outside/sub/a.bin"
    values = [lance.Blob(uri=uri), lance.Blob(uri=uri, position=1, size=2), None, b"a value of its own"]
    fields = [pa.field("id", pa.int64()), lance.blob_field("b", inline_size_threshold=4), pa.field("s", pa.string())]
    schema = pa.schema(fields, metadata={"lance.blob.managed": "true"} if managed else None)
    table = pa.table([pa.array([1, 2, 3, 4]), lance.blob_array(values), pa.array(list("abcd"))], schema=schema)
    bases = [lance.DatasetBasePath(str(tmp_path / name), name=name) for name in ("outside", "files")]
    path, clone = str(tmp_path / "t"), str(tmp_path / "clone")
    options = {} if target is None else {"target_bases": [target]}
    there = lance.write_dataset(table, path, initial_bases=bases, **options)
    there.shallow_clone(clone, there.version)
    there.create_branch("try")
    expected = [b"0123456789", b"12", None, b"a value of its own"]
    opened = [ours.dataset(path), ours.dataset(clone), ours.dataset(path, version=("try", None))]
    for ds in opened:
        assert ds.to_table(blob_handling="all_binary")["b"].to_pylist() == expected
    for ds in opened if not managed else ():
        ds.update({"s": "'!'"}, write_mode="rewrite_rows")
        assert ds.to_table(blob_handling="all_binary")["b"].to_pylist() == expected
    assert [row["b"] for row in _agree(path).values()] == [row["b"] for row in _agree(clone).values()] == expected
