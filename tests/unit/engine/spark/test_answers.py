"""How a failed job is told: by what ended it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tablewright.engine.spark import answers
from tablewright.engine.spark.answers import collect_table
from tablewright.errors import InternalError, JobCancelled

FAILED = "Job 3 cancelled because SparkContext was shut down"


def _fails(monkeypatch: pytest.MonkeyPatch, java: Any) -> None:
    """A job of a session with this Java context fails."""

    def run_job(*given: object, **options: object) -> None:
        raise RuntimeError(FAILED)

    monkeypatch.setattr(answers, "run_job", run_job)
    spark = SimpleNamespace(sparkContext=SimpleNamespace(_jsc=java))
    collect_table(spark, SimpleNamespace(toArrow=None), describe="Writing")


def _java(stopped: bool) -> Any:
    return SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: stopped))


@pytest.mark.parametrize("java", [None, _java(True)], ids=["forgotten", "being stopped"])
def test_a_session_that_is_stopped(monkeypatch: pytest.MonkeyPatch, java: Any) -> None:
    with pytest.raises(JobCancelled, match="the Spark session was stopped while the job ran"):
        _fails(monkeypatch, java)


@pytest.mark.parametrize("java", [_java(False), SimpleNamespace()], ids=["running", "no answer"])
def test_a_session_that_runs(monkeypatch: pytest.MonkeyPatch, java: Any) -> None:
    with pytest.raises(InternalError, match=FAILED):
        _fails(monkeypatch, java)
