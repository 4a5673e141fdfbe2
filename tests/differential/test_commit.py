"""`commit()` with every kind of operation: ours on one copy of a table, pylance's on another, the same table after.

Compared by pylance: rows, ids, addresses, version columns, fragments, schema and field ids, indices, config.
"""

from __future__ import annotations

import datetime as dt
import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from .changes import Base, base_table, fragment
from .referee import (
    UNDER_TEST,
    assert_same_dataset,
    assert_same_rows,
    copy_of,
    everything,
    lance,
    numbers,
    ours,
    state_of,
    tree,
)

only_ours = pytest.mark.skipif(UNDER_TEST != "tablewright", reason="pylance has no such thing")

NAMES = [
    "Append",
    "Append nothing",
    "Overwrite",
    "Overwrite with nothing",
    "Delete rows of 0",
    "Delete more rows of 2",
    "Delete fragment 0",
    "Delete rows and a fragment",
    "Update rows of 0",
    "Update rows of 1",
    "Update that removes 3",
    "Restore",
    "Rewrite 0",
    "Rewrite 1 and 3",
    "Update columns of 0",
    "Update columns of 1",
    "DataReplacement of 0",
    "Merge",
    "Project drop",
    "Project drop indexed",
    "Project rename",
    "Project nullability",
    "CreateIndex x",
    "CreateIndex id",
    "CreateIndex drop",
    "Config a",
    "Table metadata",
    "Schema metadata",
    "Field metadata 0",
]


@pytest.fixture(scope="module", params=[pytest.param(False, marks=pytest.mark.slow), True], ids=["addresses", "stable"])
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Base:
    return base_table(tmp_path_factory.mktemp("base"), stable=request.param)


def _copies(base: Base, folder: Path) -> tuple[str, str]:
    import shutil

    mine, theirs = str(folder / "ours.lance"), str(folder / "theirs.lance")
    for place in (mine, theirs):
        shutil.copytree(base.uri, place)
    return mine, theirs


@pytest.mark.parametrize("name", NAMES)
def test_every_operation_makes_the_same_version(base: Base, tmp_path: Path, name: str) -> None:
    mine, theirs = _copies(base, tmp_path)
    change = base.changes[name]
    done = ours.LanceDataset.commit(mine, change(ours), read_version=base.version)
    lance.LanceDataset.commit(theirs, change(lance), read_version=base.version)
    assert done.version == base.version + 1
    assert state_of(mine, names=True) == state_of(theirs, names=True)
    assert_same_dataset(mine)
    assert_same_dataset(theirs)
    operations = [lance.dataset(place).read_transaction(base.version + 1).operation for place in (mine, theirs)]
    assert type(operations[0]) is type(operations[1])
    _assert_indices_answer_as_a_scan(mine)
    for place in (mine, theirs):  # and the other library goes on from there
        rows = numbers(300, 302).select([n for n in lance.dataset(place).schema.names if n in ("id", "x", "s")])
        if rows.column_names:
            (lance if place == mine else ours).write_dataset(rows, place, mode="append")
            assert_same_dataset(place)


def _assert_indices_answer_as_a_scan(uri: str) -> None:
    dataset = lance.dataset(uri)
    for name, filter in (("id", "id in (1, 2, 9, 20, 30, 101, 201)"), ("s", "s in ('row 1', 'row 9', 'row 201')")):
        if name in dataset.schema.names:
            found = dataset.scanner(filter=filter, with_row_id=True).to_table().sort_by("id")
            flat = dataset.scanner(filter=filter, with_row_id=True, use_scalar_index=False).to_table().sort_by("id")
            assert_same_rows(found, flat)


@pytest.mark.parametrize("first", ["Append", "Delete rows of 0", "Config b", "CreateIndex extra"])
@pytest.mark.parametrize(
    "second", ["Append", "Delete rows of 1", "Update rows of 1", "Update columns of 1", "CreateIndex x"]
)
def test_a_commit_past_another_makes_the_same_version(base: Base, tmp_path: Path, first: str, second: str) -> None:
    """The second one is stale: it is rebased past the first, which the other library made."""
    mine, theirs = _copies(base, tmp_path)
    lance.LanceDataset.commit(mine, base.changes[first](lance), read_version=base.version)
    ours.LanceDataset.commit(theirs, base.changes[first](ours), read_version=base.version)
    ours.LanceDataset.commit(mine, base.changes[second](ours), read_version=base.version)
    lance.LanceDataset.commit(theirs, base.changes[second](lance), read_version=base.version)
    assert state_of(mine, names=True) == state_of(theirs, names=True)
    assert_same_dataset(mine)


@only_ours
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_rewrite_after_reserving_ids_is_pylances_compaction(tmp_path: Path, stable: bool) -> None:
    from lance.optimize import Compaction

    uri = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(numbers(0, 40), uri, max_rows_per_file=8, enable_stable_row_ids=stable)
    dataset.delete("id % 5 = 1")
    plan = Compaction.plan(dataset, {"target_rows_per_fragment": 16})
    results = [task.execute(dataset) for task in plan.tasks]
    other = copy_of(uri, "copy.lance")
    Compaction.commit(lance.dataset(other), results)
    facts = [json.loads(result.json()) for result in results]
    count = sum(len(fact["new_fragments"]) for fact in facts)
    version = dataset.version
    ours.LanceDataset.commit(uri, ours.LanceOperation.ReserveFragments(count), read_version=version)
    reserved = iter(range(5, 5 + count))
    groups = []
    for fact in facts:
        new = [fragment(ours, {**item, "id": next(reserved)}) for item in fact["new_fragments"]]
        old = [fragment(ours, item) for item in fact["original_fragments"]]
        groups.append(ours.LanceOperation.RewriteGroup(old, new))
    ours.LanceDataset.commit(uri, ours.LanceOperation.Rewrite(groups, []), read_version=version)
    assert state_of(uri, names=True) == state_of(other, names=True)
    assert_same_dataset(uri)


def test_a_transaction_object_and_its_message_are_committed(base: Base, tmp_path: Path) -> None:
    mine, theirs = _copies(base, tmp_path)
    for library, place in ((ours, mine), (lance, theirs)):
        properties = {"k": "v", "__lance_commit_message": "by hand"}
        transaction = library.Transaction(
            base.version, base.changes["Append"](library), transaction_properties=properties
        )
        library.LanceDataset.commit(place, transaction)
        found = lance.dataset(place).read_transaction(base.version + 1)
        assert (found.uuid, found.transaction_properties) == (transaction.uuid, properties)
    assert state_of(mine, names=True) == state_of(theirs, names=True)


def test_creating_a_table_by_commit(tmp_path: Path) -> None:
    for library, name in ((ours, "ours.lance"), (lance, "theirs.lance")):
        uri = str(tmp_path / name)
        fragments = library.fragment.write_fragments(numbers(0, 9), uri, max_rows_per_file=4, mode="create")
        operation = library.LanceOperation.Overwrite(numbers(0, 0).schema, fragments)
        library.LanceDataset.commit(uri, operation, enable_stable_row_ids=True)
    assert state_of(tmp_path / "ours.lance") == state_of(tmp_path / "theirs.lance")
    assert_same_dataset(tmp_path / "ours.lance")


def test_detached_versions(base: Base, tmp_path: Path) -> None:
    mine, theirs = _copies(base, tmp_path)
    for library, place in ((ours, mine), (lance, theirs)):
        done = library.LanceDataset.commit(
            place, base.changes["Append"](library), read_version=base.version, detached=True
        )
        assert done.version >= 2**63
        for reader in (ours, lance):
            assert reader.dataset(place).version == base.version
            assert_same_rows(reader.dataset(place, version=done.version).to_table(), done.to_table())


WRITERS = pytest.mark.parametrize(("writer", "committer"), [(ours, lance), (lance, ours)], ids=["w-ours", "w-pylance"])


@WRITERS
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_fragments_travel_as_json(tmp_path: Path, writer: Any, committer: Any, stable: bool, version: str) -> None:
    """One library writes the files, the other commits them."""
    uri = str(tmp_path / "t.lance")
    table = numbers(0, 12).append_column("st", [[{"a": i, "b": [i]} for i in range(12)]])
    lance.write_dataset(table.slice(0, 2), uri, enable_stable_row_ids=stable, data_storage_version=version)
    written = writer.fragment.write_fragments(table.slice(2), uri, max_rows_per_file=4)
    letters = [json.dumps(item.to_json()) for item in written]
    received = [committer.fragment.FragmentMetadata.from_json(letter) for letter in letters]
    assert [item.to_json() for item in received] == [json.loads(letter) for letter in letters]
    assert received == [committer.fragment.FragmentMetadata.from_json(letter) for letter in letters]
    assert pickle.loads(pickle.dumps(received)) == received
    committer.LanceDataset.commit(uri, committer.LanceOperation.Append(received), read_version=1)
    assert_same_rows(lance.dataset(uri).to_table(), table)
    assert_same_dataset(uri)
    for left in committer.dataset(uri).get_fragments():  # with row ids, versions and ids, the other way
        back = writer.fragment.FragmentMetadata.from_json(json.dumps(left.metadata.to_json()))
        assert back.to_json() == left.metadata.to_json()
        assert (back.id, back.physical_rows, len(back.files)) == (left.fragment_id, left.physical_rows, 1)


@WRITERS
def test_fragments_of_an_overwrite_travel_too(tmp_path: Path, writer: Any, committer: Any) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(numbers(0, 5), uri)
    table = pa.table({"q": [1.5, None], "when": [dt.datetime(2024, 1, 1), None]})
    written = writer.fragment.write_fragments(table, uri, mode="overwrite")
    received = [committer.fragment.FragmentMetadata.from_json(json.dumps(item.to_json())) for item in written]
    committer.LanceDataset.commit(uri, committer.LanceOperation.Overwrite(table.schema, received), read_version=1)
    assert_same_rows(lance.dataset(uri).to_table(), table)
    assert_same_dataset(uri)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_deleting_in_a_fragment_of_ours(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(numbers(0, 9), uri, max_rows_per_file=3, enable_stable_row_ids=stable)
    dataset = ours.dataset(uri)
    kept = [fragment.delete("id in (1, 6, 7, 8)") for fragment in dataset.get_fragments()]
    assert kept[2] is None  # nothing is left of it
    operation = ours.LanceOperation.Delete(kept[:1], [2], "id in (1, 6, 7, 8)")
    ours.LanceDataset.commit(uri, operation, read_version=1)
    assert lance.dataset(uri).to_table(columns=["id"])["id"].to_pylist() == [0, 2, 3, 4, 5]
    assert_same_dataset(uri)


@only_ours
@pytest.mark.parametrize("first", [ours, lance], ids=["after ours", "after pylance"])
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_affected_rows_let_deletes_of_one_fragment_pass_each_other(tmp_path: Path, first: Any, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(numbers(0, 6), uri, enable_stable_row_ids=stable)
    stale = ours.dataset(uri)
    metadata = stale.get_fragment(0).delete("id = 4")
    same_row = ours.LanceOperation.Delete([stale.get_fragment(0).delete("id = 1")], [], "id = 1")
    deletion = first.dataset(uri).get_fragment(0).delete("id in (1, 2)")
    operation = first.LanceOperation.Delete([deletion], [], "id in (1, 2)")
    first.LanceDataset.commit(uri, operation, read_version=1)
    before = tree(uri)
    ours_operation = ours.LanceOperation.Delete([metadata], [], "id = 4")
    with pytest.raises(ours.errors.CommitConflict) as caught:
        ours.LanceDataset.commit(uri, ours_operation, read_version=1)
    assert caught.value.retryable
    assert tree(uri) == before
    for untrue in ([], [1], [4, 5]):  # uniting what is not said would bring deleted rows back
        with pytest.raises(ours.errors.InvalidRequest, match="name exactly the rows"):
            ours.LanceDataset.commit(uri, ours_operation, read_version=1, affected_rows=untrue)
    assert tree(uri) == before
    ours.LanceDataset.commit(uri, ours_operation, read_version=1, affected_rows=[4])
    assert lance.dataset(uri).to_table(columns=["id"])["id"].to_pylist() == [0, 3, 5]
    ours.LanceDataset.commit(uri, same_row, read_version=1, affected_rows=[1])  # somebody did it already
    assert lance.dataset(uri).to_table(columns=["id"])["id"].to_pylist() == [0, 3, 5]
    assert_same_dataset(uri)


def test_config_and_metadata_by_their_own_methods(tmp_path: Path) -> None:
    places = [(ours, str(tmp_path / "ours.lance")), (lance, str(tmp_path / "theirs.lance"))]
    for library, place in places:
        dataset = library.write_dataset(numbers(0, 2), place)
        dataset.update_config({"a": "1", "b": "2"})
        dataset.update_config({"a": None, "c": "3"})
        dataset.update_metadata({"m": "1"})
        dataset.update_schema_metadata({"x": "y"})
        dataset.update_field_metadata({"id": {"unit": "m"}})
        dataset.delete_config_keys(["b"])
        assert dataset.version == 7
    assert state_of(places[0][1])["config"] == {"c": "3"}
    left, right = (state_of(place) for _, place in places)
    assert {**left, "fragments": 0} == {**right, "fragments": 0}
    for _, place in places:
        here, there = ours.dataset(place), lance.dataset(place)
        assert (here.config(), here.metadata, here.schema_metadata) == (
            there.config(),
            there.metadata,
            there.schema_metadata,
        )
        assert_same_rows(everything(here), everything(there))
