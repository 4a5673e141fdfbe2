"""engine/costs.py: what work takes on each engine, by the figures of its plan."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tablewright.engine.costs import Cores, Costs, Workload, seconds_for

PLAIN = Costs(
    read_bytes_per_second=100,
    written_bytes_per_second=50,
    row_seconds=0.5,
    file_seconds=2,
    start_seconds=10,
    job_seconds=1,
    task_seconds=0.25,
    spark_factor=2,
    shipped_bytes_per_second=20,
    prepared_row_seconds=3,
    shuffled_row_seconds=4,
)
TWO = Cores(here=2, spark=4)


def both(work: Workload, cores: Cores = TWO) -> tuple[float, float]:
    seconds = seconds_for(work, cores, PLAIN)
    return seconds.here, seconds.spark


@pytest.mark.parametrize(
    ("work", "here", "spark"),
    [
        (Workload(bytes_read=800, tasks=8), 4.0, 1 + 2 * 0.25 + 2 * 8 / 4),
        (Workload(bytes_written=400, tasks=8), 4.0, 1 + 2 * 0.25 + 2 * 8 / 4),
        (Workload(rows=16, tasks=8), 4.0, 1 + 2 * 0.25 + 2 * 8 / 4),
        (Workload(files=4, tasks=8), 4.0, 1 + 2 * 0.25 + 2 * 8 / 4),
        (Workload(bytes_read=800, tasks=1), 8.0, 1 + 0.25 + 2 * 8),
        (Workload(bytes_read=800, tasks=1, uses_threads=True), 4.0, 1 + 0.25 + 2 * 8 / 2),
        (Workload(bytes_read=800, tasks=8, threads_max=1), 8.0, 1 + 2 * 0.25 + 2 * 8 / 4),
        (Workload(tasks=4, shipped_bytes=100), 0.0, 1 + 0.25 + 5),
        (Workload(tasks=4, prepared_rows=2), 0.0, 1 + 0.25 + 6),
        (Workload(tasks=4, shuffled_rows=8), 0.0, 1 + 0.25 + 8),
        (Workload(bytes_read=800, tasks=8, turns=3), 12.0, 1 + 2 * 0.25 + 2 * 8 / 4),
    ],
)
def test_seconds(work: Workload, here: float, spark: float) -> None:
    assert both(work) == (here, spark)
    started = both(work, replace(TWO, starts=True))
    assert started == (here, spark + 10)


def test_tasks_that_are_not_known_have_64_mib_each() -> None:
    assert Workload().task_count == 1
    assert Workload(bytes_read=64 << 20, bytes_written=1).task_count == 2
    assert Workload(bytes_read=1 << 40, tasks=0).task_count == 1


def test_more_cores_never_cost_more() -> None:
    work = Workload(bytes_read=10**10, bytes_written=10**9, rows=10**6, tasks=50, shuffled_rows=10**6)
    taken = [seconds_for(work, Cores(here=cores, spark=cores)) for cores in (1, 2, 4, 64, 1000)]
    assert [each.here for each in taken] == sorted((each.here for each in taken), reverse=True)
    assert [each.spark for each in taken] == sorted((each.spark for each in taken), reverse=True)
