from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.cache import process_cache
from tablewright.operations.scan import ScanOptions, plan_scan
from tablewright.reading.match import find_matches, plan_match
from tablewright.reading.run import count_matches, joined_runs, parts_of, run_reads
from tablewright.reading.small import SmallRun
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import identity, open_store
from tablewright.world import World

BUDGETS = {"off": 0, "tiny": 3000, "large": 1 << 24}


@pytest.fixture(params=BUDGETS)
def budget(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(identity, "SETTLED_NS", 0)
    before = process_cache().bytes_max
    process_cache().resize(BUDGETS[request.param])
    yield BUDGETS[request.param]
    process_cache().resize(before)


def _rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table(
        {
            "a": pa.array(numbers, pa.int64()),
            "s": pa.array([None if number % 5 == 0 else f"text {number}" for number in numbers]),
            "v": pa.array([[number, number + 0.5] for number in numbers], pa.list_(pa.float32(), 2)),
            "l": pa.array([[number] * (number % 3) or None for number in numbers], pa.list_(pa.int32())),
            "st": pa.array([{"x": number, "y": f"{number}"} for number in numbers]),
        }
    )


@pytest.fixture(scope="module", params=["addresses", "stable"])
def snapshot(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Snapshot:
    tmp_path = tmp_path_factory.mktemp("small")
    stable = request.param == "stable"
    options: dict[str, Any] = {"max_rows_per_file": 7, "enable_stable_row_ids": stable}
    ds = tw.write_dataset(_rows(0, 100), tmp_path / "t", **options)
    ds = tw.write_dataset(_rows(1000, 4000), tmp_path / "t", mode="append")
    ds = tw.write_dataset(_rows(200, 230), tmp_path / "t", mode="append", max_rows_per_file=5)
    ds.delete("a % 11 = 3 or a between 21 and 34")
    ds.add_columns({"new": "a * 2"})
    return open_snapshot(World(open_store(str(tmp_path / "t"))))


SCANS: dict[str, dict[str, Any]] = {
    "all": {},
    "one column": {"columns": ["a"]},
    "no column": {"columns": [], "with_row_id": True},
    "system": {"columns": ["a", "_rowoffset", "_rowaddr", "_row_created_at_version"], "with_row_id": True},
    "member": {"columns": ["st.y", "new"]},
    "filter": {"filter": "a % 3 = 0 and s is not null"},
    "filter on addresses": {"filter": "_rowaddr > 12884901890 and a < 230", "columns": ["a"]},
    "filter, late": {"filter": "a % 3 = 0", "late_materialization": True, "with_row_id": True},
    "filter with nulls": {"filter": "s > 'text 15'", "columns": ["s", "l"]},
    "no match": {"filter": "a < 0"},
    "expressions": {"columns": {"z": "a + 1", "u": "upper(s)"}, "filter": "new > 20"},
}


@pytest.mark.parametrize("options", SCANS.values(), ids=SCANS)
def test_reads_as_fragment_by_fragment(snapshot: Snapshot, options: dict[str, Any], budget: int) -> None:
    whole = plan_scan(snapshot, ScanOptions(**options)).whole
    assert any(
        isinstance(part, SmallRun) for part in parts_of(snapshot, whole.reads, whole.fragments, whole.first_rows)
    )
    one_by_one = run_reads(snapshot, whole.reads, tuple(whole.fragments), whole.first_rows)
    expected = pa.Table.from_batches(one_by_one, whole.schema)
    for _ in range(2):
        found = pa.Table.from_batches(run_reads(snapshot, whole.reads, whole.fragments, whole.first_rows), whole.schema)
        found.validate(full=True)
        assert found.equals(expected)
        if whole.reads.predicate is not None:
            counted = count_matches(snapshot, whole.reads.counting(), whole.fragments, whole.first_rows)
            assert counted == expected.num_rows


@pytest.mark.parametrize("predicate", ["a % 3 = 0", "s > 'text 15'", "a < 0", "_rowid % 2 = 1", "a = 43"])
def test_matches_as_fragment_by_fragment(snapshot: Snapshot, predicate: str, budget: int) -> None:
    task = plan_match(snapshot, predicate)
    expected = find_matches(replace(task, fragments=tuple(task.fragments)), snapshot)
    for _ in range(2):
        assert find_matches(task, snapshot).rows == expected.rows
    assert find_matches(task, snapshot).rows_read == expected.rows_read


def test_deleted_rows_are_shown_where_asked(snapshot: Snapshot, budget: int) -> None:
    plan = plan_scan(snapshot, ScanOptions(with_row_id=True, include_deleted_rows=True)).whole
    rows = sum(batch.num_rows for batch in run_reads(snapshot, plan.reads, plan.fragments, plan.first_rows))
    assert rows == int(snapshot.fragments.physical_rows.sum())


def test_runs_that_follow_on_each_other_are_one(snapshot: Snapshot, budget: int) -> None:
    task = plan_match(snapshot, "a >= 0")
    parts = list(parts_of(snapshot, task.reads, task.fragments, task.first_rows))
    found = joined_runs(parts)
    runs = [part for part in parts if isinstance(part, SmallRun)]
    joined = [part for part in found if isinstance(part, SmallRun)]
    assert len(parts) - len(found) == len(runs) - len(joined) > 0
    assert sum(run.stop - run.start for run in joined) == sum(run.stop - run.start for run in runs)
    assert joined_runs(runs[::-1]) == runs[::-1]
    for _ in range(2):
        rows = pa.concat_tables([pa.Table.from_batches([run.read().batch]) for run in runs])
        at_once = pa.concat_tables([pa.Table.from_batches([run.read().batch]) for run in joined])
        assert at_once.equals(rows)


def test_runs_in_the_cache_are_one(snapshot: Snapshot, budget: int) -> None:
    task = plan_match(snapshot, "a >= 0")

    def runs(**options: bool) -> list[SmallRun]:
        parts = parts_of(snapshot, task.reads, task.fragments, task.first_rows, **options)
        return [part for part in parts if isinstance(part, SmallRun)]

    before = runs(all_wanted=True)
    rows = pa.concat_tables([pa.Table.from_batches([run.read().batch]) for run in before])
    joined = runs(all_wanted=True)
    assert (len(joined) < len(before)) == (budget == BUDGETS["large"])
    assert sum(run.stop - run.start for run in joined) == sum(run.stop - run.start for run in before)
    for found in (joined, runs()):
        assert pa.concat_tables([pa.Table.from_batches([run.read().batch]) for run in found]).equals(rows)


def test_equal_values_are_read_in_pieces(tmp_path: Path) -> None:
    """Each file has some hundred bytes, and more rows than a batch may have."""
    for mode in ("create", *["append"] * 7):
        tw.write_dataset(pa.table({"s": pa.repeat("x" * 20, 200_000)}), tmp_path / "t", mode=mode)
    snapshot = open_snapshot(World(open_store(str(tmp_path / "t"))))
    plan = plan_scan(snapshot, ScanOptions()).whole
    batches = list(run_reads(snapshot, plan.reads, plan.fragments, plan.first_rows))
    assert sum(batch.num_rows for batch in batches) == 1_600_000
    assert max(batch.num_rows for batch in batches) <= 1 << 16
