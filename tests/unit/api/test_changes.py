"""Prepared deletes and updates: what they show, execute, leave uncommitted, and clean up."""

from __future__ import annotations

import re
import threading
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablewright as tw
from tablewright.engine.local import LocalEngine
from tablewright.errors import CommitConflict, CommitUnknown, InvalidRequest, StorageError, WrongType
from tablewright.testing.faulty_store import FailBefore, FaultyStore, LoseReply, first_of, on_call
from tablewright.testing.worlds import seeded_world
from tablewright.world import World


def numbers(rows: int) -> pa.Table:
    return pa.table(
        {"id": pa.array(range(rows), pa.int64()), "x": [0.0] * rows, "s": [f"row {i}" for i in range(rows)]}
    )


@pytest.fixture
def ds() -> tw.LanceDataset:
    return tw.write_dataset(numbers(400), f"memory://{uuid.uuid4()}", max_rows_per_file=100)


def paths(ds: tw.LanceDataset) -> set[str]:
    return {found.path for found in ds._world.store.list("")}


def xs(ds: tw.LanceDataset) -> dict[int, float]:
    rows = ds.to_table(columns=["id", "x"]).to_pylist()
    return {row["id"]: row["x"] for row in rows}


class TestExplain:
    def test_delete(self, ds: tw.LanceDataset) -> None:
        before = paths(ds)
        text = ds.prepare_delete("id > 5 and s is not null").explain_plan()
        assert "Delete: write deletion files, predicate=id > 5 and s is not null" in text
        assert "projection=[id, s], num_fragments=4" in text
        assert "engine=local: the table lives in this process" in text
        assert "tasks=1" in ds.prepare_delete("id > 5").explain_plan(verbose=True)
        assert paths(ds) == before

    def test_delete_of_everything(self, ds: tw.LanceDataset) -> None:
        text = ds.prepare_delete("true").explain_plan()
        assert "drop every fragment" in text
        assert "engine=none" in text

    def test_update_shows_both_costs(self, ds: tw.LanceDataset) -> None:
        before = paths(ds)
        text = ds.prepare_update({"x": "id + 1"}, where="id < 100 or id = 150").explain_plan(verbose=True)
        assert "set x = id + 1" in text
        assert re.search(r"fragment 0: matched_rows=100, bytes_rows=\d+, bytes_columns=800 -> rewrite_columns", text)
        assert re.search(r"fragment 1: matched_rows=1, bytes_rows=\d+, bytes_columns=800 -> rewrite_rows", text)
        assert "matched_rows=101 in 2 fragments" in text
        assert "match: engine=local" in text
        assert "write: engine=local" in text
        assert (paths(ds), ds.version) == (before, 1)

    def test_update_of_all(self, ds: tw.LanceDataset) -> None:
        text = ds.prepare_update({"x": "1"}, write_mode="rewrite_rows").explain_plan()
        assert "match: engine=none: all live rows match" in text
        assert text.count("-> rewrite_rows") == 4

    def test_an_update_on_bytes_that_are_many_would_go_to_spark(self, tmp_path: Path) -> None:
        ds = tw.write_dataset(numbers(10), tmp_path / "t", engine="local")
        assert 'engine=local: engine="local" was asked for' in ds.prepare_delete("id = 1").explain_plan()


class TestAnalyze:
    def test_delete(self, ds: tw.LanceDataset) -> None:
        text = ds.prepare_delete("id in (1, 2, 111)").analyze_plan()
        assert ds.count_rows() == 397
        for words in (
            "num_deleted_rows=3",
            "attempts=1",
            "fragments=2",
            "rows_read=400",
            "num_files_written=2",
            "tasks=1",
        ):
            assert words in text
        assert re.search(r"Deleting: seconds=\d+\.\d+, .*tasks=1, engine=local", text)
        assert re.search(r"Commit: seconds=\d", text)

    def test_update(self, ds: tw.LanceDataset) -> None:
        text = ds.prepare_update({"x": "1"}, where="id < 100 or id = 150").analyze_plan()
        assert sum(xs(ds).values()) == 101
        assert "num_rows_updated=101" in text
        assert "num_files_written=3" in text  # a column file, a new fragment, a deletion file
        assert re.search(r"bytes_written=[1-9]", text)
        for stage in ("Matching", "Updating", "Commit"):
            assert f"{stage}: seconds=" in text
        assert "-> rewrite_columns" in text


class TestUncommitted:
    def test_delete(self, ds: tw.LanceDataset) -> None:
        transaction, stats = ds.prepare_delete("id in (1, 2)").execute_uncommitted()
        assert (stats, ds.version, ds.latest_version) == ({"num_deleted_rows": 2}, 1, 1)
        made = tw.CommitBuilder(ds).execute(transaction)
        assert (made.version, made.count_rows()) == (2, 398)

    def test_update(self, ds: tw.LanceDataset) -> None:
        transaction, stats = ds.prepare_update({"x": "1"}, "id < 15").execute_uncommitted()
        assert stats == {"num_rows_updated": 15}
        made = tw.LanceDataset.commit(ds, transaction)
        assert [id for id, x in xs(made).items() if x] == list(range(15))

    @pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
    def test_it_is_rebased_row_by_row(self, ds: tw.LanceDataset, mode: str) -> None:
        deletion, _ = ds.prepare_delete("id = 1").execute_uncommitted()
        update, _ = ds.prepare_update({"x": "1"}, "id in (2, 3)", write_mode=mode).execute_uncommitted()
        other = tw.dataset(ds.uri)
        other.delete("id in (4, 5)")
        tw.CommitBuilder(ds).execute(deletion)
        made = tw.CommitBuilder(ds).execute(update)
        assert [id for id in sorted(xs(made)) if id < 10] == [0, 2, 3, 6, 7, 8, 9]
        assert [id for id, x in xs(made).items() if x] == [2, 3]


class TestOtherWriters:
    def test_the_handle_moves(self, ds: tw.LanceDataset) -> None:
        prepared = ds.prepare_delete("id = 3")
        assert prepared.execute() == {"num_deleted_rows": 1}
        assert prepared.execute() == {"num_deleted_rows": 0}
        assert ds.version == 3

    def test_stale_handles(self, ds: tw.LanceDataset) -> None:
        stale = [tw.dataset(ds.uri) for _ in range(4)]
        assert ds.delete("id in (1, 2)") == {"num_deleted_rows": 2}
        assert stale[0].delete("id in (2, 3)") == {"num_deleted_rows": 1}
        assert stale[1].update({"x": "1"}, "id in (3, 4)", write_mode="rewrite_rows") == {"num_rows_updated": 1}
        assert stale[2].update({"x": "x + 1"}, "id in (4, 5)", write_mode="rewrite_columns") == {"num_rows_updated": 2}
        assert stale[3].update({"x": "x + 1"}, "id = 5") == {"num_rows_updated": 1}
        assert stale[3].version == 6
        found = xs(stale[3])
        assert (found[4], found[5], sorted(found)[:4]) == (2.0, 2.0, [0, 4, 5, 6])

    def test_a_true_conflict_runs_again_on_the_newest(self, ds: tw.LanceDataset) -> None:
        other = tw.dataset(ds.uri)
        other.update({"x": "10"}, "id < 10", write_mode="rewrite_rows")
        before = paths(ds)
        text = ds.prepare_update({"x": "x + 1"}, "id in (0, 200)", write_mode="rewrite_rows").analyze_plan()
        assert "attempts=2" in text
        assert (xs(ds)[0], xs(ds)[200]) == (11.0, 1.0)
        new = {path for path in paths(ds) - before if path.startswith(("data/", "_deletions/"))}
        assert sum(path.startswith("data/") for path in new) == 1  # those of the first attempt are gone

    def test_no_retries(self, ds: tw.LanceDataset) -> None:
        other = tw.dataset(ds.uri)
        other.update({"x": "10"}, "id < 10", write_mode="rewrite_rows")
        before = paths(ds)
        with pytest.raises(CommitConflict):
            ds.update({"x": "x + 1"}, "id = 0", conflict_retries=0)
        assert (paths(ds), ds.version) == (before, 1)


class _Interrupted(LocalEngine):
    """An engine whose user presses Ctrl-C when the first task has ended."""

    def map(self, run: Any, tasks: Any, world: World, *, keep: Any = None, **options: Any) -> Any:
        made = []
        for task in tasks:
            made.append(run(task, world))
            keep(made[-1])
            if getattr(made[0], "paths", ()):
                raise KeyboardInterrupt
        return made


class TestLeftovers:
    @pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
    def test_an_interrupt_removes_what_was_written(
        self, ds: tw.LanceDataset, mode: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = paths(ds)
        monkeypatch.setattr("tablewright.engine.choose.LocalEngine", _Interrupted)
        delete, update = ds.prepare_delete("id % 2 = 0"), ds.prepare_update({"x": "1"}, "id % 2 = 0", write_mode=mode)
        with pytest.raises(KeyboardInterrupt):
            delete.execute()
        with pytest.raises(KeyboardInterrupt):
            update.execute()
        assert paths(ds) == before

    @pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
    @pytest.mark.parametrize("path", ["data/*", "_deletions/*", "_transactions/*"])
    @pytest.mark.parametrize("fault", [FailBefore(), LoseReply()], ids=lambda fault: type(fault).__name__)
    def test_a_failure_removes_what_was_written(self, ds: tw.LanceDataset, mode: str, path: str, fault: Any) -> None:
        if mode == "rewrite_columns" and path == "_deletions/*":
            return
        before = paths(ds)
        faulty = FaultyStore(ds._world.store, on_call(fault, method="put", path=path, nth=0))
        handle = tw.dataset(seeded_world(faulty))
        with pytest.raises(StorageError):
            handle.update({"x": "1"}, "id % 2 = 0", write_mode=mode)
        assert _settled(ds) == before
        assert handle.version == 1

    def test_an_unknown_outcome_keeps_them(self, ds: tw.LanceDataset) -> None:
        before = paths(ds)
        plan = first_of(
            on_call(LoseReply(), method="put_if_absent", path="_versions/*"),
            on_call(FailBefore(), method="get", path="_versions/18446744073709551613.manifest"),
        )
        handle = tw.dataset(seeded_world(FaultyStore(ds._world.store)))
        handle._world.store.plan = plan  # type: ignore[attr-defined]
        with pytest.raises(CommitUnknown):
            handle.delete("id = 1")
        assert any(path.startswith("_deletions/") for path in paths(ds) - before)
        ds.checkout_latest()
        assert (ds.version, ds.count_rows()) == (2, 399)


def _settled(ds: tw.LanceDataset) -> set[str]:
    """The files, once threads that were under way have ended."""
    for thread in threading.enumerate():
        if thread.name.startswith("tablewright-") and not thread.name.startswith("tablewright-read"):
            thread.join(5)
    return paths(ds)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"conflict_retries": -1}, InvalidRequest),
        ({"conflict_retries": "many"}, WrongType),
        ({"conflict_retries": 1.5}, WrongType),
        ({"retry_timeout": 5}, WrongType),
        ({"retry_timeout": timedelta(seconds=-1)}, InvalidRequest),
    ],
    ids=str,
)
def test_wrong_options(ds: tw.LanceDataset, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        ds.delete("id = 1", **options)
    with pytest.raises(error):
        ds.update({"x": "1"}, **options)
    assert ds.latest_version == 1


@pytest.mark.parametrize("wrong", [None, 5, True, b"id = 1", ["id = 1"]])
def test_what_is_no_filter(ds: tw.LanceDataset, wrong: Any) -> None:
    with pytest.raises(TypeError):
        ds.delete(wrong)
    if wrong is not None:
        with pytest.raises(TypeError):
            ds.update({"x": "1"}, wrong)


def test_an_unknown_write_mode(ds: tw.LanceDataset) -> None:
    with pytest.raises(InvalidRequest, match="write_mode"):
        ds.update({"x": "1"}, write_mode="fast")


def test_arrow_expressions_travel(ds: tw.LanceDataset) -> None:
    assert ds.prepare_delete(pc.field("id").isin([1, 2]))._job().stays_here is None
    assert ds.delete(pc.field("id").isin([1, 2])) == {"num_deleted_rows": 2}


def test_on_a_branch(tmp_path: Path) -> None:
    main = tw.write_dataset(numbers(20), tmp_path / "t", max_rows_per_file=10)
    main.delete("id = 0")
    branch = main.create_branch("try")
    branch.delete("id = 1")
    branch.update({"x": "1"}, "id in (2, 3)", write_mode="rewrite_rows")
    branch.update({"x": "2"}, "id > 5", write_mode="rewrite_columns")
    assert (branch.count_rows(), branch.count_rows("x = 1"), branch.count_rows("x = 2")) == (18, 2, 14)
    assert (main.count_rows(), main.count_rows("x = 0")) == (19, 19)
    branch.validate()
