"""What a change did: stages that are measured, and totals over all of them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tablewright.jobs.report import Report
from tablewright.storage.requests import count_request


@dataclass(frozen=True)
class Read:
    rows_read: int = 5
    bytes_read: int = 7
    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wrote(Read):
    paths: tuple[str, ...] = ("a", "b")
    bytes_written: int = 9


def test_stages_and_totals() -> None:
    report = Report(attempts=2, fragments=3, notes=["decided"])
    with report.stage("Matching", tasks=4) as stage:
        stage.add([Read(), Read()])
        count_request()
    with report.stage("Writing", tasks=1) as stage:
        stage.add([Wrote()])
    lines = list(report.lines({"num_rows": 1}))
    assert lines[0] == "decided"
    assert lines[1].startswith(
        "  metrics=[num_rows=1, attempts=2, fragments=3, rows_read=15, bytes_read=21, bytes_written=9, "
        "num_files_written=2, iops="
    )
    assert lines[1].endswith("tasks=5]")
    assert lines[2].startswith("  Matching: seconds=0.") and "rows_read=10, bytes_read=14, iops=1, tasks=4" in lines[2]
    assert "num_files_written=2, bytes_written=9" in lines[3]


def test_a_result_with_attempts_of_its_own() -> None:
    (line,) = Report(attempts=7).lines({"num_attempts": 2})
    assert "num_attempts=2" in line and " attempts=" not in line.replace("num_attempts", "")


def test_a_stage_that_fails_is_measured_too() -> None:
    report = Report()
    with pytest.raises(ValueError, match="wrong"), report.stage("Writing"):
        raise ValueError("wrong")
    assert report.stages[0].seconds > 0
