"""Update: the plan, the decision, its tasks, and what is refused."""

from __future__ import annotations

import datetime as dt
import pickle
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.soon import assert_soon

import tablewright as tw
from tablewright.errors import InvalidRequest, StorageError, UnsupportedFeature
from tablewright.operations.rewrite.costs import Decision
from tablewright.operations.update import (
    UpdateOptions,
    UpdatePlan,
    columns_tasks,
    decide_update,
    finish_update,
    found_rows,
    plan_update,
    rows_tasks,
    run_update_task,
    update_tasks,
)
from tablewright.operations.update_tasks import run_update_columns, run_update_rows
from tablewright.reading.match import run_match_task
from tablewright.testing.faulty_store import FailBefore, Fault, FaultyStore, LoseReply, on_call
from tablewright.testing.worlds import seeded_world


def numbers(rows: int) -> pa.Table:
    ids = range(rows)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "x": pa.array([None if i % 7 == 3 else i / 4 for i in ids], pa.float64()),
            "s": [None if i % 5 == 2 else f"row {i}" for i in ids],
            "st": pa.array([None if i % 11 == 5 else {"a": i, "b": {"c": str(i)}} for i in ids]),
        }
    )


@pytest.fixture(params=["addresses", "stable"])
def stable(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "stable")


@pytest.fixture
def table(stable: bool, tmp_path: Path) -> tw.LanceDataset:
    dataset = tw.write_dataset(numbers(60), tmp_path / "t", max_rows_per_file=20, enable_stable_row_ids=stable)
    dataset.delete("id in (3, 4, 25)")
    return dataset


class TestWays:
    """What is written, and what the transaction says about it (``docs/format/transactions.md#update``)."""

    def test_deleted_rows_keep_their_values(self, table: tw.LanceDataset) -> None:
        table.update({"x": "-1"}, where="id < 10", write_mode="rewrite_columns")
        every = table.to_table(columns=["id", "x"], include_deleted_rows=True, with_row_id=True).to_pylist()
        assert [row["x"] for row in every if row["_rowid"] is None] == [None, 1.0, 6.25]

    @pytest.mark.slow
    def test_thousands_of_fragments_are_quick(self, tmp_path: Path) -> None:
        dataset = tw.write_dataset(numbers(2400), tmp_path / "t", max_rows_per_file=2)
        started = time.process_time()
        assert dataset.update({"x": "1"}, where="id % 4 = 0", write_mode="rewrite_rows") == {"num_rows_updated": 600}
        assert time.process_time() - started < 15
        assert dataset.count_rows("x = 1") == 600


class TestSteps:
    def plan(self, table: tw.LanceDataset, updates: dict[str, str], where: Any, mode: str = "auto") -> UpdatePlan:
        return plan_update(table._snapshot, updates, where, UpdateOptions(write_mode=mode), 0)

    def test_the_plan_prints(self, table: tw.LanceDataset) -> None:
        text = str(self.plan(table, {"x": "id + 1", "st.a": "1"}, "s = 'a'"))
        assert "set x = id + 1, st.a = 1" in text
        assert "projection=[s]" in text
        assert "expressions read [id]" in text

    @pytest.mark.parametrize(
        ("updates", "where", "reads"),
        [
            ({"x": "1"}, None, set()),
            ({"x": "id"}, "s = 'a'", {0, 2}),
            ({"st.a": "1"}, None, {3, 4, 5, 6}),
            ({"x": "st.b.c"}, "_rowid = 1", {3, 4, 5, 6}),
            ({"x": "_rowoffset"}, None, None),
        ],
    )
    def test_what_it_depends_on(
        self, table: tw.LanceDataset, updates: dict[str, str], where: str | None, reads: set[int] | None
    ) -> None:
        assert self.plan(table, updates, where).reads == (None if reads is None else frozenset(reads))

    def test_letters_travel(self, table: tw.LanceDataset) -> None:
        plan = self.plan(table, {"x": "-1"}, "id < 20 or id = 30")
        matched = [run_match_task(task, table._world) for task in pickle.loads(pickle.dumps(plan.search.scan.tasks))]
        found = found_rows(plan, pickle.loads(pickle.dumps(matched)))
        assert dict(found.counts) == {0: 18, 1: 1}
        choices = zip(decide_update(plan, found).choices, ("rewrite_columns", "rewrite_rows"), strict=True)
        decision = Decision(tuple(replace(choice, mode=mode) for choice, mode in choices))
        tasks = pickle.loads(pickle.dumps(update_tasks(plan, found, decision)))
        results = pickle.loads(pickle.dumps([run_update_task(task, table._world) for task in tasks]))
        transaction, affected = finish_update(plan, results, table._world.ids.uuid())
        assert len(affected) == 19
        assert 3 not in affected.offsets[0]
        assert transaction.read_version == table.version

    def test_without_a_condition_nobody_looks(self, table: tw.LanceDataset) -> None:
        plan = self.plan(table, {"x": "1"}, None)
        assert plan.updates_all
        assert dict(found_rows(plan, []).counts) == {0: 18, 1: 19, 2: 20}

    def test_the_decision_is_by_bytes(self, tmp_path: Path) -> None:
        vectors = pa.FixedSizeListArray.from_arrays(np.zeros(1000 * 64, np.float32), 64)
        dataset = tw.write_dataset(pa.table({"id": range(1000), "f": [0.0] * 1000, "v": vectors}), tmp_path / "t")
        narrow, wide = {"f": "1"}, {"v": "v"}
        for updates, rows, mode in [
            (narrow, 29, "rewrite_rows"),
            (narrow, 30, "rewrite_columns"),
            (wide, 900, "rewrite_rows"),
            (wide, 1000, "rewrite_columns"),
        ]:
            plan = self.plan(dataset, updates, f"id < {rows}")
            found = found_rows(plan, [run_match_task(task, dataset._world) for task in plan.search.scan.tasks])
            (choice,) = decide_update(plan, found).choices
            assert choice.bytes_rows == rows * (8 + 8 + 256)
            assert choice.bytes_columns == 1000 * (8 if updates is narrow else 256)
            assert choice.mode == mode

    @pytest.mark.parametrize("stable", [False, True])
    @pytest.mark.parametrize("scattered", [False, True])
    def test_runs_of_versions_count_in_the_manifest(self, tmp_path: Path, stable: bool, scattered: bool) -> None:
        """A fifth of the rows: as scattered ones they would be 4,000 runs of versions in every later manifest."""
        vectors = pa.FixedSizeListArray.from_arrays(np.zeros(10_000 * 64, np.float32), 64)
        rows = pa.table({"id": range(10_000), "f": [0.0] * 10_000, "v": vectors})
        dataset = tw.write_dataset(rows, tmp_path / "t", enable_stable_row_ids=stable)
        where = "id % 5 = 3" if scattered else "id < 2000"
        text = dataset.prepare_update({"f": "1"}, where=where).explain_plan()
        assert ("manifest_columns=+" in text) == ("count 100 times" in text) == stable
        assert f"-> {'rewrite_rows' if stable and scattered else 'rewrite_columns'}" in text
        before = len(dataset._world.store.get(dataset._snapshot.entry.path))
        dataset.update({"f": "1"}, where=where)
        assert len(dataset._world.store.get(dataset._snapshot.entry.path)) < before + 5000
        assert dataset.count_rows("f = 1") == 2000

    def test_the_decision_prints_some_fragments(self, tmp_path: Path) -> None:
        dataset = tw.write_dataset(numbers(50), tmp_path / "t", max_rows_per_file=2)
        text = dataset.prepare_update({"x": "1"}).explain_plan()
        assert text.count("fragment ") == 20
        assert "… and 5 more" in text

    @pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
    @pytest.mark.parametrize("fault", [FailBefore(), LoseReply()])
    @pytest.mark.parametrize("path", ["data/*", "_deletions/*"])
    def test_a_task_that_fails_leaves_no_file(self, mode: str, fault: Fault, path: str) -> None:
        dataset = tw.write_dataset(numbers(60), f"memory://{uuid.uuid4()}", max_rows_per_file=20)
        store = dataset._world.store
        before = {found.path for found in store.list("")}
        plan = self.plan(dataset, {"x": "1"}, "id % 2 = 0", mode)
        found = found_rows(plan, [run_match_task(task, dataset._world) for task in plan.search.scan.tasks])
        decision = decide_update(plan, found)
        world = seeded_world(FaultyStore(store, on_call(fault, method="put", path=path, nth=0)))
        if mode == "rewrite_rows":
            (task,) = rows_tasks(plan, found, decision)
            with pytest.raises(StorageError):
                run_update_rows(task, world)
        elif path == "data/*":
            with pytest.raises(StorageError):
                run_update_columns(columns_tasks(plan, found, decision)[0], world)
        assert_soon(lambda: {found.path for found in store.list("")} == before)


def files(dataset: tw.LanceDataset) -> list[Path]:
    return sorted(path for path in Path(dataset.uri).rglob("*") if path.is_file())


WRONG: list[tuple[Any, Any, str]] = [
    ({}, None, "No updates provided"),
    ({"q": "1"}, None, 'Column "q" does not exist'),
    ({"idd": "1"}, None, "Did you mean 'id'"),
    ({"st.q": "1"}, None, 'Column "st.q" does not exist'),
    ({"x.y": "1"}, None, 'Column "x.y" does not exist'),
    ({"": "1"}, None, "does not exist"),
    ({"_rowid": "1"}, None, "system column"),
    ({"_rowaddr": "1"}, None, "system column"),
    ({"x": "nope + 1"}, None, "No field named nope"),
    ({"x": ""}, None, "is empty"),
    ({"x": "1 2"}, None, "Invalid user input"),
    ({"x": "sum(x)"}, None, "aggregate"),
    ({"x": "st"}, None, "CAST"),
    ({"x": "'abc'"}, None, "Cannot cast string 'abc'"),
    ({"small": "300"}, None, "Can't cast value 300 to type Int8"),
    ({"need": "NULL"}, None, "non-nullable"),
    ({"x": "1", "X": "2"}, None, "both"),
    ({"st": "NULL", "st.a": "1"}, None, "both"),
    ({"st.b.c": "'a'", "ST.B": "NULL"}, None, "both"),
    ({"x": "1"}, "x", "does not return a boolean"),
    ({"x": "1"}, "nope = 1", "No field named nope"),
    ({"x": "1"}, pc.field("id"), "does not return a boolean"),
    # known only when the rows are there
    ({"small": "id * 10"}, "id = 50", "Can't cast value 500 to type Int8"),
    ({"need": "x"}, "id = 10", "non-nullable"),
    ({"x": "s"}, "id = 1", "Cannot cast string 'row 1'"),
    ({"x": "1 / (id - id)"}, None, "Divide by zero"),
]


@pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
@pytest.mark.parametrize(("updates", "where", "words"), WRONG, ids=str)
def test_bad_input_changes_nothing(tmp_path: Path, updates: Any, where: Any, words: str, mode: str) -> None:
    data = numbers(60).append_column("small", pa.array([1] * 60, pa.int8()))
    data = data.append_column(pa.field("need", pa.int64(), nullable=False), pa.array(range(60)))
    dataset = tw.write_dataset(data, tmp_path / "t", max_rows_per_file=20)
    before = files(dataset)
    with pytest.raises(InvalidRequest, match=words.replace("(", r"\(")):
        dataset.update(updates, where, write_mode=mode)
    assert files(dataset) == before
    assert (dataset.version, dataset.latest_version) == (1, 1)


@pytest.mark.parametrize("wrong", ["x", None, 5, ["x"], {"x": 5}, {5: "x"}, {"x": None}])
def test_updates_of_a_wrong_type(table: tw.LanceDataset, wrong: Any) -> None:
    with pytest.raises(TypeError):
        table.update(wrong)
    assert table.latest_version == 2


def test_data_storage_version(table: tw.LanceDataset) -> None:
    assert table.update({"x": "1"}, "id = 1", data_storage_version="2.2") == {"num_rows_updated": 1}
    with pytest.raises(InvalidRequest, match="Unknown data_storage_version"):
        table.update({"x": "1"}, data_storage_version="x")
    with pytest.raises(UnsupportedFeature, match="mix"):
        table.update({"x": "1"}, data_storage_version="2.0")


class TestValuesThatAreNoSql:
    """A Python value, or a text without its quotes: the error says what to write, and that works."""

    @pytest.mark.parametrize(
        ("column", "value", "written"),
        [
            ("id", 5, "5"),
            ("id", np.int32(5), "5"),
            ("x", 2.5, "2.5"),
            ("x", None, "null"),
            ("b", True, "true"),
            ("b", np.bool_(False), "false"),
            ("day", dt.date(2026, 1, 2), "date '2026-01-02'"),
            ("ts", dt.datetime(2026, 1, 2, 3, 4, 5), "timestamp '2026-01-02 03:04:05'"),
            ("tags", ["a", "it's"], "['a', 'it''s']"),
            ("name", "zed", "'zed'"),
            ("name", "hello world", "'hello world'"),
            ("name", "a-b@c.de", "'a-b@c.de'"),
        ],
    )
    def test_the_hint_works(self, column: str, value: Any, written: str) -> None:
        row = {"id": 1, "x": 0.5, "b": True, "day": dt.date(2000, 1, 1), "ts": dt.datetime(2000, 1, 1)}
        ds = tw.write_dataset([{**row, "tags": ["z"], "name": "n"}], f"memory://{uuid.uuid4()}")
        with pytest.raises(InvalidRequest) as caught:
            ds.update({column: value})
        assert f"write {{{column!r}: {written!r}}}." in str(caught.value).replace("Write", "write")
        ds.update({column: written})
        expected = value.item() if isinstance(value, np.generic) else value
        assert ds.to_table()[column].to_pylist() == [expected]

    def test_a_misspelt_column_of_numbers_gets_no_such_hint(self) -> None:
        ds = tw.write_dataset({"id": [1]}, f"memory://{uuid.uuid4()}")
        with pytest.raises(InvalidRequest, match="Did you mean 'id'") as caught:
            ds.update({"id": "idd + 1"})
        assert "For the text" not in str(caught.value)


@pytest.mark.parametrize(
    ("sql", "value"),
    [("7", 7), ("- 7", -7), ("'8'", 8), ("null", None), ("NULL", None), ("7.9", 7), ("3 + 4", 7)],
)
def test_literals_are_cast_as_other_values_are(tmp_path: Path, sql: str, value: int | None) -> None:
    ds = tw.write_dataset({"id": [1, 2, 3], "n": [0, 0, 0], "s": ["a", "b", "c"]}, tmp_path / "t")
    ds.update({"n": sql, "s": sql}, where="id >= 2")
    rows = ds.to_table(order_by=["id"]).to_pylist()
    text = None if value is None else sql.replace(" ", "").strip("'").replace("3+4", "7")
    assert [row["n"] for row in rows] == [0, value, value]
    assert [row["s"] for row in rows] == ["a", text, text]


def test_random_values_differ_from_row_to_row(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": range(9), "x": [0.0] * 9}, tmp_path / "t")
    ds.update({"x": "random()"})
    assert len(set(ds.to_table()["x"].to_pylist())) > 1
