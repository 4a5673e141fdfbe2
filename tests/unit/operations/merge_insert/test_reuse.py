"""After a conflict a merge repeats only what is new: fragments that stayed as they were are not matched again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.concurrency.leftovers import unreferenced
from tests.unit.operations.merge_insert.merge_model import builder

import tablewright as tw
from tablewright.jobs.merge import job as merge_job
from tablewright.operations.merge_insert.limits import MergeLimits
from tablewright.operations.merge_insert.write.tasks import InsertTask, MergeColumnsTask, MergeRowsTask
from tablewright.operations.rewrite.limits import RewriteLimits


class _Watched:
    """The fragments that were matched, and the tasks that wrote, since it was last asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.matched: list[int] = []
        self.written: list[Any] = []
        match, write = merge_job.run_pairing_task, merge_job.run_merge_write

        def matching(task: Any, world: Any) -> Any:
            self.matched += [fragment.id for fragment in task.scan.fragments]
            return match(task, world)

        def writing(task: Any, world: Any) -> Any:
            self.written.append(task)
            return write(task, world)

        monkeypatch.setattr(merge_job, "run_pairing_task", matching)
        monkeypatch.setattr(merge_job, "run_merge_write", writing)

    def patched(self) -> list[int]:
        """The fragments whose columns were written, in order."""
        return [task.part.fragment.id for task in self.written if isinstance(task, MergeColumnsTask)]


def _table(folder: Path, stable: bool = False) -> str:
    uri = str(folder / "t.lance")
    rows = pa.table({"k": range(40), "x": [0] * 40, "y": ["old"] * 40})
    tw.write_dataset(rows, uri, max_rows_per_file=10, enable_stable_row_ids=stable)
    return uri


def _rows(keys: list[int], x: int) -> pa.Table:
    return pa.table({"k": keys, "x": [x] * len(keys), "y": ["new"] * len(keys)})


def _upsert(dataset: Any, mode: str, limits: MergeLimits | None = None) -> Any:
    return builder(dataset, "k", limits).when_matched_update_all().when_not_matched_insert_all().write_mode(mode)


def _check(uri: str, expected: dict[int, int]) -> None:
    dataset = tw.dataset(uri)
    table = dataset.to_table()
    assert sorted(zip(table["k"].to_pylist(), table["x"].to_pylist(), strict=True)) == sorted(expected.items())
    dataset.validate()
    paths = [str(path.relative_to(uri)) for path in Path(uri).rglob("*") if path.is_file()]
    assert not unreferenced(dataset, paths)


@pytest.mark.parametrize("stable", [False, True], ids=["address", "stable"])
def test_only_what_is_new_is_matched_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stable: bool) -> None:
    uri = _table(tmp_path, stable)
    mine = tw.dataset(uri)
    tw.write_dataset(_rows([100, 101], 7), uri, mode="append")
    watched = _Watched(monkeypatch)
    result = _upsert(mine, "rewrite_columns").execute(_rows([1, 11, 21, 31, 101, 102], 1))
    assert (result["num_updated_rows"], result["num_inserted_rows"], result["num_attempts"]) == (5, 1, 2)
    assert watched.matched == [0, 1, 2, 3, 4]
    assert watched.patched() == [0, 1, 2, 3, 4]
    assert sum(isinstance(task, InsertTask) for task in watched.written) == 2
    _check(uri, dict.fromkeys(range(40), 0) | dict.fromkeys((1, 11, 21, 31, 101, 102), 1) | {100: 7})


def test_a_fragment_that_changed_is_matched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They delete a row that we update: it becomes an insert; three of four column files serve again."""
    uri = _table(tmp_path)
    mine = tw.dataset(uri)
    tw.dataset(uri).delete("k in (11, 12)")
    watched = _Watched(monkeypatch)
    result = _upsert(mine, "rewrite_columns").execute(_rows([1, 11, 19, 21, 31], 1))
    assert (result["num_updated_rows"], result["num_inserted_rows"], result["num_attempts"]) == (4, 1, 2)
    assert watched.matched == [0, 1, 2, 3, 1] and watched.patched() == [0, 1, 2, 3, 1]
    _check(uri, {k: 0 for k in range(40) if k != 12} | dict.fromkeys((1, 11, 19, 21, 31), 1))


def test_moved_rows_serve_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = _table(tmp_path)
    mine = tw.dataset(uri)
    tw.write_dataset(_rows([100], 7), uri, mode="append")
    alone = MergeLimits(rewrite=RewriteLimits(rows_per_group=1))
    watched = _Watched(monkeypatch)
    result = _upsert(mine, "rewrite_rows", alone).execute(_rows([1, 11, 100], 1))
    assert (result["num_updated_rows"], result["num_inserted_rows"], result["num_attempts"]) == (3, 0, 2)
    moved = [[part.fragment.id for part in task.parts] for task in watched.written if isinstance(task, MergeRowsTask)]
    assert moved == [[0], [1], [4]]
    _check(uri, dict.fromkeys(range(40), 0) | {1: 1, 11: 1, 100: 1})


def test_parts_of_inserted_rows_serve_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = _table(tmp_path)
    mine = tw.dataset(uri)
    tw.write_dataset(_rows([130], 7), uri, mode="append")
    small = MergeLimits(rewrite=RewriteLimits(rows_per_file=10))
    watched = _Watched(monkeypatch)
    _upsert(mine, "auto", small).execute(_rows(list(range(100, 150)), 1))
    inserts = [task.positions.tolist() for task in watched.written if isinstance(task, InsertTask)]
    assert inserts == [list(range(begin, begin + 10)) for begin in range(0, 50, 10)] + [list(range(31, 40))]
    _check(uri, dict.fromkeys(range(40), 0) | dict.fromkeys(range(100, 150), 1))


def test_a_table_with_other_columns_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = _table(tmp_path)
    mine = tw.dataset(uri)
    tw.dataset(uri).add_columns({"z": "k + 1"})
    watched = _Watched(monkeypatch)
    result = _upsert(mine, "auto").execute(_rows([1, 100], 1))
    assert (result["num_updated_rows"], result["num_inserted_rows"]) == (1, 1)
    assert watched.matched == [0, 1, 2, 3] * result["num_attempts"]
    _check(uri, dict.fromkeys(range(40), 0) | {1: 1, 100: 1})
    assert tw.dataset(uri).to_table(filter="k = 1").to_pylist() == [{"k": 1, "x": 1, "y": "new", "z": 2}]


@pytest.mark.parametrize("fails", ["conflict", "error"])
def test_what_was_written_in_vain_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    uri = _table(tmp_path)
    mine = tw.dataset(uri)
    tw.write_dataset(_rows([100], 7), uri, mode="append")
    merge = _upsert(mine, "rewrite_columns")
    if fails == "conflict":
        with pytest.raises(OSError, match="Retryable commit conflict"):
            merge.conflict_retries(0).execute(_rows([1, 11, 100], 1))
    else:
        write = merge_job.run_merge_write

        def broken(task: Any, world: Any) -> Any:
            if isinstance(task, MergeColumnsTask) and task.part.fragment.id == 4:
                raise MemoryError("no more")
            return write(task, world)

        monkeypatch.setattr(merge_job, "run_merge_write", broken)
        with pytest.raises(MemoryError):
            merge.execute(_rows([1, 11, 100], 1))
    _check(uri, dict.fromkeys(range(40), 0) | {100: 7})


@pytest.mark.parametrize("condition", [None, "source.x > target.x + 100"])
def test_a_row_that_was_found_has_to_be_there_still(tmp_path: Path, condition: str | None) -> None:
    """They delete a row for whose sake we insert nothing: then there is nothing, and we insert."""
    uri = _table(tmp_path)
    mine = tw.dataset(uri)
    tw.dataset(uri).delete("k = 11 or (k >= 30 and k < 40)")
    merge = mine.merge_insert("k").when_not_matched_insert_all()
    if condition is not None:
        merge = merge.when_matched_update_all(condition)
    result = merge.execute(_rows([1, 11, 33], 1))
    assert (result["num_inserted_rows"], result["num_updated_rows"], result["num_attempts"]) == (2, 0, 2)
    _check(uri, dict.fromkeys(range(30), 0) | {11: 1, 33: 1})
