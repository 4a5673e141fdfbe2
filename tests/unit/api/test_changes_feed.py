"""``ds.changes()`` and ``ds.delta()``: what a caller asks for, gets, and is refused."""

from __future__ import annotations

import pickle
import tracemalloc
from datetime import UTC
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablewright as tw
from tablewright.api.dataset import LanceDataset
from tablewright.errors import InvalidRequest, VersionNotFound
from tablewright.format.naming import manifest_path

FEED = ["_change_type", "_commit_version", "_commit_timestamp", "_rowid"]


@pytest.fixture(scope="module")
def ds(tmp_path_factory: pytest.TempPathFactory) -> LanceDataset:
    """The history, and a sixth version that changes no row."""
    made = history(str(tmp_path_factory.mktemp("feed") / "t.lance"))
    made.update_config({"changes": "no row"})
    return made


def history(uri: str) -> LanceDataset:
    """Five versions: written, updated by rows, deleted, appended, updated in place."""
    rows = pa.table({"id": range(12), "n": range(0, 120, 10), "st": [{"x": i, "y": str(i)} for i in range(12)]})
    made = tw.write_dataset(rows, uri, max_rows_per_file=4, enable_stable_row_ids=True)
    made.update({"n": "n + 1"}, where="id in (1, 5)", write_mode="rewrite_rows")
    made.delete("id in (2, 5)")
    made.insert([{"id": 12, "n": 120, "st": {"x": 12, "y": None}}])
    made.update({"n": "n + 1"}, where="id in (0, 3)", write_mode="rewrite_columns")
    return made


def told(feed: Any, *columns: str) -> list[tuple[Any, ...]]:
    columns = columns or ("_commit_version", "_change_type", "id", "n")
    return [tuple(row[name] for name in columns) for row in feed.to_table().to_pylist()]


PER_VERSION = [
    (2, "update_preimage", 1, 10),
    (2, "update_preimage", 5, 50),
    (2, "update_postimage", 1, 11),
    (2, "update_postimage", 5, 51),
    (3, "delete", 2, 20),
    (3, "delete", 5, 51),
    (4, "insert", 12, 120),
    (5, "update_preimage", 0, 0),
    (5, "update_preimage", 3, 30),
    (5, "update_postimage", 0, 1),
    (5, "update_postimage", 3, 31),
]


def test_each_version_tells_its_rows(ds: LanceDataset) -> None:
    feed = ds.changes(1)
    assert told(feed) == PER_VERSION
    table = feed.to_table()
    assert table.schema.names == ["id", "n", "st", *FEED]
    assert [str(table.schema.field(name).type) for name in FEED] == [
        "string",
        "int64",
        "timestamp[us, tz=UTC]",
        "uint64",
    ]
    assert table["_rowid"].to_pylist() == table["id"].to_pylist()
    assert table["st"].to_pylist()[0] == {"x": 1, "y": "1"}
    times = {version["version"]: version["timestamp"].astimezone(UTC) for version in ds.versions()}
    assert [each.as_py() for each in table["_commit_timestamp"]] == [times[each[0]] for each in PER_VERSION]
    assert told(ds.changes(2, 4)) == [each for each in PER_VERSION if 2 < each[0] <= 4]
    assert told(ds.checkout_version(3).changes(1)) == [each for each in PER_VERSION if each[0] <= 3]
    assert len(told(ds.changes(0, 1))) == 12
    assert told(ds.changes(5)) == told(ds.changes(6)) == told(ds.changes(6, 6, net=True)) == []


def test_net_tells_each_row_once(ds: LanceDataset) -> None:
    end = ds.version
    assert sorted(told(ds.changes(1, net=True))) == sorted(
        [
            (end, "delete", 2, 20),
            (end, "delete", 5, 50),
            *((end, "update_preimage", id, id * 10) for id in (0, 1, 3)),
            *((end, "update_postimage", id, id * 10 + 1) for id in (0, 1, 3)),
            (end, "insert", 12, 120),
        ]
    )


def test_columns_and_filter(ds: LanceDataset) -> None:
    feed = ds.changes(1, columns=["n", "st.x", "_row_last_updated_at_version"], filter="id = 5")
    assert feed.schema.names == ["n", "st.x", "_row_last_updated_at_version", *FEED]
    assert told(feed, "n", "st.x", "_row_last_updated_at_version") == [(50, 5, 1), (51, 5, 2), (51, 5, 2)]
    assert told(ds.changes(1, columns={"double": "n * 2"}, filter="_change_type = 'insert'"), "double") == [(240,)]
    assert told(ds.changes(1, filter="_commit_version > 4 and n % 2 = 1"), "n") == [(1,), (31,)]
    assert told(ds.changes(1, filter=pc.field("_rowid") == 12), "id") == [(12,)]
    assert told(ds.changes(1, filter="st.y is null"), "id") == [(12,)]
    assert ds.changes(1, columns=[]).schema.names == FEED
    assert told(ds.changes(3, 4, columns=["_rowid", "id", "_change_type"]), "id", "_rowid") == [(12, 12)]
    assert ds.changes(1, columns=["_change_type"]).to_table().num_rows == len(PER_VERSION)


def test_streams_batches_and_letters_that_travel(ds: LanceDataset) -> None:
    feed = ds.changes(0, batch_size=5)
    assert max(batch.num_rows for batch in feed.to_batches()) <= 5
    assert feed.to_reader().read_all() == feed.to_table() == pa.table(feed)
    assert feed.to_pandas().shape == (feed.to_table().num_rows, 7)
    again = pickle.loads(pickle.dumps(feed))
    assert again.to_table() == feed.to_table()
    assert repr(ds.changes(1, net=True)).endswith(f"in versions (1, {ds.version}], net>")
    tasks = [pickle.loads(pickle.dumps(task)) for task in feed._plan.tasks()]
    assert sum(task.picked[0].picks.total_rows for task in tasks) <= feed.to_table().num_rows


def test_explain_says_what_is_read(ds: LanceDataset) -> None:
    lines = ds.changes(1, filter="n > 3", columns=["id"]).explain_plan().splitlines()
    assert lines[0].endswith(f"versions=(1, {ds.version}], per version")
    assert lines[1:5] == [
        "  columns=[id]",
        "  filter=n > 3",
        "  version 2: 2 updated; reads rows of 2 of 3 fragments before it, 1 of 4 after",
        "  version 3: 2 deleted; reads rows of 2 of 4 fragments before it, 0 of 4 after",
    ]
    assert lines[-1] == f"  version {ds.version}: no rows changed"
    analyzed = ds.changes(1).analyze_plan().splitlines()
    assert analyzed[:-1] == ds.changes(1).explain_plan().splitlines()
    assert f"rows={len(PER_VERSION)}, " in analyzed[-1]


def test_only_touched_fragments_are_read(tmp_path: Path) -> None:
    made = tw.write_dataset(
        {"id": range(40)}, str(tmp_path / "t"), max_rows_per_file=10, enable_stable_row_ids=True, engine="local"
    )
    made.delete("id = 15")
    made.insert({"id": [40]})
    for number in (0, 2, 3):
        (tmp_path / "t" / "data" / made.get_fragment(number).metadata.files[0].path).unlink()
    for net in (False, True):
        assert sorted(told(made.changes(1, net=net), "_change_type", "id")) == [("delete", 15), ("insert", 40)]


def test_columns_that_came_changed_and_went(tmp_path: Path) -> None:
    made = tw.write_dataset(
        {"id": [1, 2], "a": [1, 2], "b": ["x", "y"]}, str(tmp_path / "t"), enable_stable_row_ids=True
    )
    made.delete("id = 1")
    made.add_columns({"c": "5"})
    made.alter_columns({"path": "a", "data_type": pa.int8()}, {"path": "b", "name": "text"})
    made.drop_columns(["c"])
    made.add_columns(pa.schema({"d": pa.int64()}))  # takes the id that was c's
    feed = made.changes(1)
    assert feed.schema.names == ["id", "a", "text", "d", *FEED]
    assert feed.schema.field("a").type == pa.int8()
    rows = [{name: value for name, value in row.items() if name not in FEED[1:]} for row in feed.to_table().to_pylist()]
    assert rows[0] == {"id": 1, "a": 1, "text": "x", "d": None, "_change_type": "delete"}
    same = {"id": 2, "a": 2, "text": "y", "d": None}
    assert rows[1:] == [{**same, "_change_type": f"update_{kind}image"} for kind in ("pre", "post", "pre", "post")]
    with_c = made.changes(1, 3).to_table().to_pylist()
    assert [row["c"] for row in with_c] == [None, None, 5]
    assert made.changes(1, 3).schema.field("c").nullable
    assert [row["c"] for row in made.changes(1, 3, filter="c is null").to_table().to_pylist()] == [None, None]


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32()])
def test_past_an_overwrite_columns_are_known_by_name(tmp_path: Path, kind: pa.DataType) -> None:
    uri = str(tmp_path / "t")
    tw.write_dataset({"id": [1], "x": [5]}, uri, enable_stable_row_ids=True)
    rows = pa.table({"x": pa.array([6], kind), "id": pa.array([2], pa.int64()), "y": [0]})
    made = tw.write_dataset(rows, uri, mode="overwrite")
    for net in (False, True):
        assert told(made.changes(1, net=net), "_change_type", "x", "id") == [("delete", 5, 1), ("insert", 6, 2)]


def test_values_that_do_not_fit_a_later_type_are_refused(tmp_path: Path) -> None:
    made = tw.write_dataset({"id": [1, 2], "a": [300, 2]}, str(tmp_path / "t"), enable_stable_row_ids=True)
    made.delete("id = 1")
    made.alter_columns({"path": "a", "data_type": pa.int8()})
    with pytest.raises(InvalidRequest, match=r"a.*columns="):
        made.changes(1).to_table()
    assert told(made.changes(1, 3, columns=["id"], filter="_change_type = 'delete'"), "id") == [(1,)]
    assert told(made.changes(1, 2), "a") == [(300,)]


def test_restore_and_overwrite(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    made = tw.write_dataset({"id": [1, 2, 3]}, uri, enable_stable_row_ids=True)
    made.update({"id": "20"}, where="id = 2")
    made.delete("id = 1")
    made.insert({"id": [4]})
    tw.dataset(uri, version=1).restore()
    restored = tw.dataset(uri).changes(4)
    assert sorted(told(restored, "_change_type", "id", "_rowid")) == [
        ("delete", 4, 3),
        ("insert", 1, 0),
        ("update_postimage", 2, 1),
        ("update_preimage", 20, 1),
    ]
    assert told(tw.dataset(uri).changes(1, net=True)) == []
    tw.write_dataset({"id": [1, 2, 3]}, uri, mode="overwrite")
    kinds = told(tw.dataset(uri).changes(5), "_change_type", "id", "_rowid")
    assert [kind[0] for kind in kinds] == ["delete"] * 3 + ["insert"] * 3
    assert [kind[2] for kind in kinds] == [0, 1, 2, 4, 5, 6]


def test_columns_rewritten_without_saying_which_rows(tmp_path: Path) -> None:
    """A commit of others may replace a column's file and name no rows: all rows of the fragment count as updated."""
    uri = str(tmp_path / "t")
    made = tw.write_dataset(
        {"id": range(6), "a": range(6)}, uri, max_rows_per_file=3, enable_stable_row_ids=True, engine="local"
    )
    fragment, fields = made.get_fragment(0).update_columns(pa.table({"id": [1], "a": [9]}), "id")
    update = tw.LanceOperation.Update(
        removed_fragment_ids=[],
        updated_fragments=[fragment],
        new_fragments=[],
        fields_modified=fields,
        update_mode="rewrite_columns",
    )
    done = tw.LanceDataset.commit(uri, update, read_version=1)
    assert told(done.changes(1), "_change_type", "id", "a") == [
        *(("update_preimage", id, id) for id in range(3)),
        *(("update_postimage", id, 9 if id == 1 else id) for id in range(3)),
    ]


def test_what_is_refused(ds: LanceDataset, tmp_path: Path) -> None:
    end = ds.version
    for arguments, words in (
        ((3, 2), "begin version 3 is newer than end version 2"),
        ((-1,), "non-negative"),
        (("1",), "whole number"),
        ((1, None, ["nope"]), "nope"),
        ((1, None, None, "nope = 1"), "nope"),
        ((1, None, None, "id"), "boolean"),
        ((1, None, ["_rowoffset"]), "_rowoffset"),
        ((1, None, {"_rowid": "id"}), "_rowid of its own"),
    ):
        with pytest.raises(InvalidRequest, match=words):
            ds.changes(*arguments)
    for span in ((1, end + 1), (end + 1, end + 1)):
        with pytest.raises(VersionNotFound, match=f"Version {end + 1}.*latest version is {end}"):
            ds.changes(*span)
    for begin in (1, 10**6 - 1):  # a number beyond all versions costs nothing
        tracemalloc.start()
        with pytest.raises(VersionNotFound, match=f"latest version is {end}"):
            ds.changes(begin, 10**6)
        with pytest.raises(VersionNotFound, match=f"latest version is {end}"):
            ds.delta(begin_version=begin, end_version=10**6).list_transactions()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2**20
    with pytest.raises(InvalidRequest, match="SQL text"):
        ds.changes(1, filter=pc.field("id") == 1).to_spark()
    own = tw.write_dataset({"_change_type": [1], "id": [1]}, str(tmp_path / "own"), enable_stable_row_ids=True)
    with pytest.raises(InvalidRequest, match="_change_type of its own"):
        own.changes(0)
    for filter in (None, "_change_type = 'insert'"):
        assert told(own.changes(0, columns=["id"], filter=filter), "id", "_change_type") == [(1, "insert")]


def test_without_stable_ids_there_is_an_error_and_no_empty_answer(tmp_path: Path) -> None:
    made = tw.write_dataset({"id": [1, 2]}, str(tmp_path / "t"))
    made.delete("id = 1")
    delta = made.delta(1)
    asked = (
        lambda: made.changes(1),
        lambda: made.changes(1, net=True),
        delta.get_inserted_rows,
        delta.get_updated_rows,
        delta.get_deleted_row_ids,
    )
    for ask in asked:
        with pytest.raises(InvalidRequest, match=r"no stable row ids.*enable_stable_row_ids\(\)"):
            ask()
    assert len(delta.list_transactions()) == 1


def test_where_history_was_cleaned_up_there_is_an_error(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    made = tw.write_dataset({"id": [1, 2]}, uri, enable_stable_row_ids=True)
    made.delete("id = 1")
    made.insert({"id": [3]})
    made.insert({"id": [4]})
    for version in (2, 3):
        (tmp_path / "t" / manifest_path(version)).unlink()
    left = [each["version"] for each in made.versions()]
    assert left == [1, 4]
    for begin in (0, 1, 2, 3):
        with pytest.raises(VersionNotFound, match=r"Version [23] .*cleaned up.*from version 4 on"):
            made.changes(begin)
    for begin in (2, 3):
        with pytest.raises(VersionNotFound, match=f"Version {begin}"):
            made.changes(begin, net=True)
        delta = made.delta(begin)
        for ask in (delta.get_inserted_rows, delta.get_updated_rows, delta.get_deleted_row_ids):
            with pytest.raises(VersionNotFound, match=f"Version {begin}"):
                ask()
    with pytest.raises(VersionNotFound, match="Version 2"):
        made.delta(1).list_transactions()
    assert sorted(told(made.changes(1, net=True), "_change_type", "id")) == [
        ("delete", 1),
        ("insert", 3),
        ("insert", 4),
    ]
    assert made.delta(1).get_deleted_row_ids().read_all()["_rowid"].to_pylist() == [0]


def test_columns_of_every_shape_come_through(tmp_path: Path) -> None:
    strict = pa.field("k", pa.int64(), nullable=False)
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("st", pa.struct([strict]), nullable=False),
            pa.field("map", pa.map_(pa.string(), pa.int64())),
            pa.field("list", pa.list_(pa.field("item", pa.struct([strict]), nullable=False))),
            pa.field("dict", pa.dictionary(pa.int32(), pa.string())),
            pa.field("json", pa.json_()),
            pa.field("vector", pa.list_(pa.float32(), 3)),
        ]
    )
    row = {
        "st": {"k": 1},
        "map": [("a", 1)],
        "list": [{"k": 2}],
        "dict": "d",
        "json": '{"a":1}',
        "vector": [1.0, 2.0, 3.0],
    }
    rows = [{"id": number, **row} for number in range(3)]
    made = tw.write_dataset(pa.Table.from_pylist(rows, schema), str(tmp_path / "t"), enable_stable_row_ids=True)
    made.delete("id = 1")
    (told,) = made.changes(1).to_table().to_pylist()
    assert {name: told[name] for name in schema.names} == rows[1]


def test_a_table_whose_ids_were_switched_on_later(tmp_path: Path) -> None:
    made = tw.write_dataset({"id": range(6)}, str(tmp_path / "t"), max_rows_per_file=3)
    made.delete("id = 1")
    made.enable_stable_row_ids()
    begin = made.version
    made.update({"id": "40"}, where="id = 4")
    made.delete("id = 0")
    assert told(made.changes(begin), "_change_type", "id") == [
        ("update_preimage", 4),
        ("update_postimage", 40),
        ("delete", 0),
    ]
    assert told(made.changes(begin, net=True), "_change_type", "id") == [
        ("delete", 0),
        ("update_preimage", 4),
        ("update_postimage", 40),
    ]
    with pytest.raises(InvalidRequest, match=f"Version {begin - 1} .* no stable row ids"):
        made.changes(begin - 1)


def test_a_branch_tells_its_own_versions(tmp_path: Path) -> None:
    made = tw.write_dataset({"id": range(4)}, str(tmp_path / "t"), enable_stable_row_ids=True)
    made.delete("id = 1")
    branch = made.create_branch("dev")
    branch.update({"id": "30"}, where="id = 3")
    expected = [("update_preimage", 3), ("update_postimage", 30)]
    assert (
        told(branch.changes(2), "_change_type", "id")
        == told(branch.changes(2, net=True), "_change_type", "id")
        == expected
    )
    with pytest.raises(VersionNotFound, match="branch dev begins with version 2"):
        branch.changes(1)
