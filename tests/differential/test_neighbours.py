"""LanceDB on the same tables, and the smaller arguments of the public face that scripts for pylance use."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from .changes import fragment
from .referee import (
    UNDER_TEST,
    assert_same_dataset,
    assert_same_rows,
    everything,
    lance,
    lancedb_rows,
    numbers,
    ours,
    state_of,
)


def test_lancedb_and_we_take_turns(tmp_path: Path) -> None:
    import lancedb

    database = lancedb.connect(str(tmp_path))
    uri = str(tmp_path / "t.lance")
    ours.write_dataset(numbers(0, 4), uri)
    table = database.open_table("t")
    table.add(numbers(4, 7))
    assert_same_dataset(uri)
    ours.dataset(uri).insert(numbers(7, 9))
    table.checkout_latest()
    assert table.count_rows() == 9
    table.delete("id in (1, 5, 8)")
    assert_same_dataset(uri)
    table.update(where="id = 2", values={"s": "changed"})
    assert_same_dataset(uri)
    ours.write_dataset(numbers(9, 10), uri, mode="append")
    assert_same_rows(lancedb_rows(uri), lance.dataset(uri).to_table())
    assert sorted(ours.dataset(uri).to_table()["id"].to_pylist()) == [0, 2, 3, 4, 6, 7, 9]


def test_a_table_that_lancedb_made_is_ours_to_read_and_grow(tmp_path: Path) -> None:
    import lancedb
    from lancedb.index import BTree

    rows = [{"id": i, "text": f"document {i}", "vector": [i / 7, 1.0, 2.0, 3.0]} for i in range(300)]
    made = lancedb.connect(str(tmp_path)).create_table("t", rows)
    made.create_index("id", config=BTree())
    uri = str(tmp_path / "t.lance")
    assert_same_dataset(uri)
    ours.write_dataset(ours.dataset(uri).to_table(limit=5), uri, mode="append")
    assert_same_dataset(uri)
    made.checkout_latest()
    assert made.count_rows() == 305
    assert len(made.search([1.0, 1.0, 2.0, 3.0]).limit(3).to_list()) == 3
    assert made.search().where("id = 3").to_arrow().num_rows == 2


def test_uncommitted_transactions_travel(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(numbers(0, 3), uri)
    for library, start in ((ours, 3), (lance, 5)):
        rows = numbers(start, start + 2)
        transaction = library.fragment.write_fragments(rows, library.dataset(uri), return_transaction=True)
        assert lance.dataset(uri).count_rows() == start
        assert library.LanceDataset.commit(uri, transaction).count_rows() == start + 2
    assert_same_dataset(uri)


def test_several_appends_become_one_version(tmp_path: Path) -> None:
    states = []
    for number, library in enumerate((ours, lance)):
        uri = str(tmp_path / f"{number}.lance")
        dataset = library.write_dataset(numbers(0, 3), uri, enable_stable_row_ids=True)
        parts = [
            library.fragment.write_fragments(numbers(start, start + 2), dataset, return_transaction=True)
            for start in (3, 5, 7)
        ]
        done = library.LanceDataset.commit_batch(dataset, parts)
        assert done["dataset"].version == 2
        assert len(done["merged"].operation.fragments) == 3
        states.append(state_of(uri))
    assert states[0] == states[1]


@pytest.mark.skipif(UNDER_TEST != "tablewright", reason="pylance has no affected rows")
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_affected_rows_let_an_update_pass_a_delete(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(numbers(0, 6), uri, enable_stable_row_ids=stable)
    facts = lance.dataset(uri).get_fragment(0).delete("id in (4, 5)")
    moved = ours.fragment.write_fragments(numbers(4, 6), uri)[0].to_json()
    if stable:
        moved["row_id_meta"] = {"Inline": [10, 6, 10, 4, 8, 4, 16, 6]}
    operation = ours.LanceOperation.Update(
        updated_fragments=[fragment(ours, facts)], new_fragments=[fragment(ours, moved)], update_mode="rewrite_rows"
    )
    lance.dataset(uri).delete("id = 1")
    done = ours.LanceDataset.commit(uri, operation, read_version=1, affected_rows=pa.array([4, 5], pa.uint64()))
    assert done.to_table(columns=["id"])["id"].to_pylist() == [0, 2, 3, 4, 5]
    assert_same_dataset(uri)
    if stable:
        assert everything(lance.dataset(uri))["_rowid"].to_pylist() == [0, 2, 3, 4, 5]
        assert everything(done)["_row_created_at_version"].to_pylist() == [1] * 5
        assert everything(done)["_row_last_updated_at_version"].to_pylist() == [1, 1, 1, 3, 3]
    lance.dataset(uri).delete("id = 0")
    before = lance.dataset(uri).version
    again = ours.LanceOperation.Delete([fragment(ours, facts)], [], "id in (4, 5)")
    with pytest.raises(ours.errors.CommitConflict):  # the same rows once more
        ours.LanceDataset.commit(uri, again, read_version=1, affected_rows=[4, 5])
    assert lance.dataset(uri).version == before


def test_commit_lock_is_held_around_the_commit(tmp_path: Path) -> None:
    uri, held = str(tmp_path / "t.lance"), []

    @contextmanager
    def lock(version: int) -> Any:
        held.append(version)
        yield

    ours.write_dataset(numbers(0, 1), uri, commit_lock=lock)
    ours.write_dataset(numbers(1, 2), uri, mode="append", commit_lock=lock)
    if UNDER_TEST == "tablewright":
        assert held == [1, 2]
    assert_same_dataset(uri)


def test_defaults_of_scans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = str(tmp_path / "t.lance")
    ours.write_dataset(numbers(0, 20), uri)
    for library in (ours, lance):
        dataset = library.dataset(uri, default_scan_options={"with_row_id": True, "columns": ["s"]})
        assert dataset.to_table().column_names == ["s", "_rowid"]
        assert dataset.to_table(columns=["id"], with_row_id=False).column_names == ["id"]
        monkeypatch.setenv("LANCE_DEFAULT_BATCH_SIZE", "6")
        assert [batch.num_rows for batch in library.dataset(uri).to_batches()] == [6, 6, 6, 2]
        monkeypatch.delenv("LANCE_DEFAULT_BATCH_SIZE")


def test_drop_removes_a_table(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(numbers(0, 5), uri)
    dataset.create_scalar_index("id", "BTREE")
    ours.LanceDataset.drop(uri)
    assert not [path for path in Path(uri).rglob("*") if path.is_file()]
    with pytest.raises(ValueError, match="not found"):
        ours.dataset(uri)
    assert ours.write_dataset(numbers(0, 2), uri).version == 1
    assert_same_dataset(uri)


def test_properties_and_repr(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(numbers(0, 5), uri, enable_stable_row_ids=True, data_storage_version="2.1")
    here, there = ours.dataset(uri), lance.dataset(uri)
    for name in ("version", "latest_version", "data_storage_version", "has_stable_row_ids", "max_field_id", "metadata"):
        assert getattr(here, name) == getattr(there, name), name
    assert here.has_index is False
    assert Path(here.uri) == Path(there.uri)
    there.create_scalar_index("id", "BTREE")
    here.checkout_latest()
    assert here.has_index is True
    left, right = here.list_indices(), lance.dataset(uri).list_indices()
    for name in ("name", "type", "fields", "uuid"):
        assert [index[name] for index in left] == [index[name] for index in right], name
    assert [set(index["fragment_ids"]) for index in left] == [set(index["fragment_ids"]) for index in right]
    assert "version 2" in repr(here) or UNDER_TEST != "tablewright"
