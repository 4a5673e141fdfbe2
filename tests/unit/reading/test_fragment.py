"""Two-step reads: whatever the matches look like, the rows are those of a plain scan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tablewright as tw
from tablewright.data.read import Rows, no_columns
from tablewright.operations.scan import ScanOptions, ScanPlan, count_rows, plan_scan, scan_batches, scan_table
from tablewright.reading import fragment as scan_fragment
from tablewright.reading.fragment import FragmentScan, ReadPlan, TakeLimits
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

ROWS = 30_000


@pytest.fixture(scope="module", params=["whole", "deleted"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Snapshot, list[int]]:
    path = tmp_path_factory.mktemp("scan") / "t.lance"
    numbers = np.arange(ROWS)
    rows = pa.table(
        {
            "a": numbers,
            "s": [f"row {i}" for i in numbers],
            "v": pa.FixedSizeListArray.from_arrays(numbers.repeat(64).astype(np.float32), 64),
        }
    )
    dataset = tw.write_dataset(rows, path, max_rows_per_file=13_000)
    live = numbers
    if request.param == "deleted":
        dataset.delete("a % 11 = 4 or (a > 5000 and a < 9000)")
        live = numbers[~((numbers % 11 == 4) | ((numbers > 5000) & (numbers < 9000)))]
    return open_snapshot(World(store=open_store(str(path)))), live.tolist()


MATCHES: dict[str, Any] = {
    "a >= 0": lambda a: True,
    "a < 0": lambda a: False,
    "a % 2 = 0": lambda a: a % 2 == 0,
    "a % 997 = 3": lambda a: a % 997 == 3,
    "a between 9000 and 9100": lambda a: 9000 <= a <= 9100,
    "a < 3000 or a % 1000 = 1 or a > 29990": lambda a: a < 3000 or a % 1000 == 1 or a > 29990,
    "a = 29999": lambda a: a == 29999,
}


@pytest.mark.parametrize("filter", MATCHES)
@pytest.mark.parametrize("late", [None, True, False])
def test_matches(table: tuple[Snapshot, list[int]], filter: str, late: bool | None, monkeypatch: Any) -> None:
    monkeypatch.setattr("tablewright.data.sizes._BATCH_BYTES", 100_000)
    snapshot, live = table
    expected = [a for a in live if MATCHES[filter](a)]
    options = ScanOptions(filter=filter, late_materialization=late, with_row_address=True)
    plan = _in_small_windows(plan_scan(snapshot, options))
    found = scan_table(plan, snapshot)
    assert found["a"].to_pylist() == expected
    assert found["s"].to_pylist() == [f"row {a}" for a in expected]
    assert [vector[63] for vector in found["v"].to_pylist()] == expected
    assert found["_rowaddr"].to_pylist() == [a // 13_000 << 32 | a % 13_000 for a in expected]
    assert count_rows(plan, snapshot) == len(expected)
    options = ScanOptions(columns=["s"], filter=filter, late_materialization=late)
    only = scan_table(_in_small_windows(plan_scan(snapshot, options)), snapshot)
    assert only["s"].to_pylist() == found["s"].to_pylist()


def _in_small_windows(plan: ScanPlan) -> ScanPlan:
    reads = replace(plan.whole.reads, take=TakeLimits(window_rows=256))
    return replace(plan, whole=replace(plan.whole, reads=reads))


def test_plain_scans_in_many_pieces(table: tuple[Snapshot, list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablewright.data.sizes._BATCH_BYTES", 50_000)
    snapshot, live = table
    found = scan_table(plan_scan(snapshot, ScanOptions(columns=["v", "a", "_rowoffset"])), snapshot)
    assert found["a"].to_pylist() == live
    assert found["_rowoffset"].to_pylist() == list(range(len(live)))
    for skip, take in ((0, 10), (4990, 30), (12_000, 2000), (len(live) - 3, 100), (7, None)):
        plan = plan_scan(snapshot, ScanOptions(columns=["a"], offset=skip, limit=take))
        part = scan_table(plan, snapshot)["a"].to_pylist()
        assert part == live[skip : None if take is None else skip + take]
        assert count_rows(plan, snapshot) == len(part)
    sizes = [b.num_rows for b in scan_batches(plan_scan(snapshot, ScanOptions(strict_batch_size=True)), snapshot)]
    assert set(sizes[:-1]) == {8192} and sum(sizes) == len(live)


@given(st.sets(st.integers(0, 12_999)), st.integers(1, 3000), st.integers(1, 600), st.sampled_from([1 / 200, 1 / 12]))
def test_runs_cover_all_matches_once(offsets: set[int], limit: int, window: int, dense: float) -> None:
    rows = Rows(no_columns(len(offsets)), chosen=np.array(sorted(offsets), np.int64))
    if not offsets:
        return
    runs = list(_scan_without_files(limit, dense, window).windows(rows))
    assert [offset for run in runs for offset in run.offsets.tolist()] == sorted(offsets)
    for run in runs:
        span = int(run.offsets[-1] - run.offsets[0]) + 1
        assert len(run) == run.batch.num_rows
        assert span <= limit or len(run) <= limit


def test_rows_that_lie_scattered_are_not_cut_by_chance() -> None:
    offsets = np.sort(np.random.default_rng(3).choice(500_000, 10_000, replace=False))
    runs = list(_scan_without_files(500_000, 1 / 50, 8192).windows(Rows(no_columns(10_000), chosen=offsets)))
    assert [len(run) for run in runs] in ([10_000], [5000, 5000])


def test_dense_and_sparse_rows_are_read_apart() -> None:
    first = 24 * 8192
    parts = np.arange(0, first, 3000), np.arange(first, first + 20_000), np.arange(300_000, 400_000, 3000)
    offsets = np.concatenate(parts)
    runs = list(_scan_without_files(500_000, 1 / 50, 8192).windows(Rows(no_columns(len(offsets)), chosen=offsets)))
    assert [run.offsets.tolist() for run in runs] == [part.tolist() for part in parts]


def _scan_without_files(limit: int, dense: float, window: int) -> FragmentScan:
    class Sizes:
        def rows_per_piece(self, fragment: Any) -> int:
            return limit

    class Layout:
        names = ("s",)

    scan = FragmentScan.__new__(FragmentScan)
    scan.plan, scan._rest, scan.fragment = (  # type: ignore[assignment]
        SimpleNamespace(rest=Layout(), take=TakeLimits(window_rows=window)),
        SimpleNamespace(sizes=Sizes()),
        None,
    )
    scan._dense = dense
    return scan


def test_reads_are_split(table: tuple[Snapshot, list[int]]) -> None:
    snapshot = table[0]

    def split(columns: Any, filter: str | None, late: bool | None = True) -> tuple[tuple[str, ...], tuple[str, ...]]:
        options = ScanOptions(columns=columns, filter=filter, late_materialization=late)
        plan: ReadPlan = plan_scan(snapshot, options).whole.reads
        return plan.first.names, plan.rest.names

    assert split(["s"], None) == (("s",), ())
    assert split(["s", "a"], "a > 1") == (("a",), ("s",))
    assert split(["a"], "a > 1") == (("a",), ())
    assert split(["a", "_rowid"], "_rowid > 1") == (("_rowid",), ("a",))
    assert split(["v", "a"], "a > 1", late=None) == (("a",), ("v",))
    assert split(["s"], "a > 1", late=None) == (("a", "s"), ())
    assert split(["v"], "a > 1", late=False) == (("a", "v"), ())
    assert split({"z": "a + 1"}, "s = 'x' and a < 3") == (("a", "s"), ())


def test_counting_reads_the_columns_of_the_filter_only(table: tuple[Snapshot, list[int]]) -> None:
    snapshot, live = table
    plan = plan_scan(snapshot, ScanOptions(filter="a < 100", order_by=["a"]))
    counting = plan.for_counting()
    assert counting.whole.reads.first.names == ("a",) and counting.whole.reads.rest.names == ()
    assert counting.estimated_bytes * 10 < plan.estimated_bytes
    assert count_rows(plan, snapshot) == count_rows(counting, snapshot) == sum(a < 100 for a in live)
    assert sum(batch.num_rows for batch in scan_batches(counting, snapshot)) == sum(a < 100 for a in live)


def test_readers_are_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tw.write_dataset(pa.table({"a": range(50_000)}), tmp_path / "t")
    snapshot = open_snapshot(World(store=open_store(str(tmp_path / "t"))))
    monkeypatch.setattr("tablewright.data.sizes._BATCH_BYTES", 800)
    opened: list[Any] = []
    real = scan_fragment.FragmentReader
    monkeypatch.setattr(scan_fragment, "FragmentReader", lambda *given: opened.append(given) or real(*given))
    assert scan_table(plan_scan(snapshot, ScanOptions()), snapshot).num_rows == 50_000
    assert 1 <= len(opened) <= 17


@pytest.mark.parametrize(("processors", "piece_rows"), [(1, 1 << 20), (2, 1 << 20), (8, 1 << 18)])
def test_threads_share_a_fragment_where_a_piece_leaves_processors_idle(
    table: tuple[Snapshot, list[int]], processors: int, piece_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan_fragment, "processors", lambda: processors)
    snapshot, _ = table
    for filter, rows in ((None, 1 << 20), ("a > 3", piece_rows)):
        plan = plan_scan(snapshot, ScanOptions(columns=["a"], filter=filter)).whole.reads
        assert plan.shapes()[0].sizes.rows_per_piece(snapshot.fragments[0]) == rows
