"""A checkpoint of computed columns: whose it is, and what of it still counts."""

from __future__ import annotations

import re
import resource
import sqlite3
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from tests.unit.operations.columns.tables import small_table

import tablewright as tw
from tablewright.data.task_context import TaskContext
from tablewright.errors import InvalidRequest, StorageError
from tablewright.operations.columns.add import ByFunction
from tablewright.operations.columns.checkpoint import Checkpoint
from tablewright.operations.columns.plan import ColumnsPlan
from tablewright.operations.columns.read import live_windows


def test_a_checkpoint_belongs_to_one_table_and_one_result(tmp_path: Path) -> None:
    snapshot, path = small_table(tmp_path), tmp_path / "checkpoint"

    def plan(name: str, columns: tuple[str, ...] = ("id",)) -> ColumnsPlan:
        return ByFunction(lambda batch: batch, pa.schema({name: pa.int64()}), columns).plan(snapshot)

    Checkpoint(path, plan("a")).close()
    Checkpoint(path, plan("a")).close()
    for other in (plan("b"), plan("a", ("id", "s"))):
        with pytest.raises(InvalidRequest, match="another table or other columns"):
            Checkpoint(path, other)
    (tmp_path / "text").write_text("no database at all, just text that is long enough to be looked at" * 20)
    for unusable in (tmp_path / "text", tmp_path / "no" / "directory", tmp_path):
        with pytest.raises(InvalidRequest, match="can't be used"):
            Checkpoint(unusable, plan("a"))


@pytest.mark.parametrize("code", ["SQLITE_CANTOPEN", "SQLITE_READONLY_DIRECTORY", "SQLITE_PERM", "SQLITE_FULL"])
def test_a_place_that_refuses_a_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    def refused(*_: Any, **__: Any) -> NoReturn:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorname = code
        raise error

    plan = ByFunction(lambda batch: batch, pa.schema({"a": pa.int64()}), ("id",)).plan(small_table(tmp_path))
    monkeypatch.setattr(sqlite3, "connect", refused)
    with pytest.raises(StorageError, match=re.escape(str(tmp_path / "checkpoint"))):
        Checkpoint(tmp_path / "checkpoint", plan)


def test_a_checkpoint_whose_descriptors_are_used_up(tmp_path: Path) -> None:
    """What SQLite really says where it can't open a file."""
    plan = ByFunction(lambda batch: batch, pa.schema({"a": pa.int64()}), ("id",)).plan(small_table(tmp_path))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(StorageError, match="unable to open"):
            Checkpoint(tmp_path / "checkpoint", plan)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_known_windows_lose_deleted_rows(tmp_path: Path) -> None:
    ds = tw.write_dataset({"id": range(6)}, str(tmp_path / "t"))
    request = ByFunction(lambda batch: batch, pa.schema({"c": pa.int64()}), ("id",), 4)

    def windows() -> tuple[ColumnsPlan, list[Any]]:
        plan = request.plan(ds._snapshot)
        assert plan.work is not None
        return plan, list(live_windows(TaskContext(ds._world), plan.work, ds._snapshot.fragments[0]))

    plan, (first, second) = windows()
    checkpoint = Checkpoint(tmp_path / "checkpoint", plan)
    checkpoint.add_window(first, plan.inputs[0], pa.record_batch({"c": [10, 11, 12, 13]}))
    assert checkpoint.window(second, plan.inputs[0]) is None
    ds.delete("id in (0, 2)")
    plan, (first, _) = windows()
    assert checkpoint.window(first, plan.inputs[0])["c"].to_pylist() == [11, 13]
    ds.update({"id": "id + 1"}, write_mode="rewrite_columns")
    plan, (first, _) = windows()
    assert checkpoint.window(first, plan.inputs[0]) is None
    checkpoint.remove()
    assert not (tmp_path / "checkpoint").exists()
