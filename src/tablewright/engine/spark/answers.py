"""The answers of Spark's workers: rows of number, success, requests made, and a pickled result or error.

A large result may be in a file of this machine instead (:mod:`.spool`).

An error of ours is an answer too: it comes back with its type and facts, and Spark does not repeat what would fail
again. Any other exception, or a worker that dies, is a failed Spark task: Spark repeats it as often as it is set to,
then the job ends with the worker's traceback, or with what died (:mod:`.deaths`).

Tests: tests/spark/test_tasks.py
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NoReturn

import pyarrow as pa

from tablewright.engine.base import Outcome
from tablewright.engine.detect import is_connect
from tablewright.engine.spark.deaths import what_died
from tablewright.engine.spark.jobs import run_job
from tablewright.engine.spark.python import job_problem
from tablewright.engine.spark.spool import Spooled
from tablewright.errors import InternalError, JobCancelled, TablewrightError, WorkerLost
from tablewright.storage.requests import add_requests

__all__ = ["ANSWER", "collect_table", "run_answers"]

ANSWER = "number long, ok boolean, requests long, result binary"
TRACEBACK_CHARACTERS_MAX = 10_000
_CANCELLED = re.compile(r"\[(?:SPARK_JOB_CANCELLED|OPERATION_CANCELED)\] (.*)")


def run_answers(spark: Any, job: Any, *, describe: str, show: bool | None = None) -> list[Outcome[Any]]:
    """Run a DataFrame of :data:`ANSWER` rows; their outcomes, by number. Requests of the workers are counted here."""
    outcomes = []
    for _, ok, requests, result in sorted(_collect(spark, job, describe, show)):
        add_requests(requests)
        value = pickle.loads(result)
        if isinstance(value, Spooled):
            value = pickle.loads(value.read())
        outcomes.append(Outcome(result=value) if ok else Outcome(error=value))
    return outcomes


def collect_table(spark: Any, job: Any, *, describe: str, show: bool | None = None) -> pa.Table:
    """All rows of a DataFrame. If it fails, the error says what the worker said."""
    try:
        table: pa.Table = run_job(spark, job.toArrow, describe=describe, show=show)
    except TablewrightError:
        raise
    except Exception as error:
        _raise_job_error(spark, error, describe)
    return table


def _collect(spark: Any, job: Any, describe: str, show: bool | None) -> Iterator[tuple[int, bool, int, bytes]]:
    table = collect_table(spark, job, describe=describe, show=show)
    columns = (table.column(name).to_pylist() for name in ("number", "ok", "requests", "result"))
    return zip(*columns, strict=True)


def _raise_job_error(spark: Any, error: Exception, describe: str) -> NoReturn:
    """Turn a failed job into our own error that keeps what the worker said."""
    of_python = job_problem(spark, str(error))
    if of_python is not None:
        raise of_python from error
    what = describe or "Spark job"
    why = _why_cancelled(spark, str(error))
    if why is not None:
        raise JobCancelled(f"{what}: {why}. Nothing of it is visible; run it again when you want it.") from error
    died = what_died(str(error))
    if died is not None:
        raise WorkerLost(what, *died) from error
    raise InternalError(f"{what} failed on a Spark worker:\n{_worker_traceback(str(error))}") from error


def _why_cancelled(spark: Any, text: str) -> str | None:
    """Who ended a job that did not fail by itself; ``None`` where it did."""
    if not is_connect(spark) and _is_stopped(spark.sparkContext):
        return "the Spark session was stopped while the job ran"
    cancelled = _CANCELLED.search(text)
    return None if cancelled is None else f"the Spark job was cancelled ({cancelled[1].strip().rstrip('.')})"


def _is_stopped(context: Any) -> bool:
    """Whether a context was stopped, or is being stopped: PySpark forgets the JVM's only when that has ended."""
    java = getattr(context, "_jsc", None)
    if java is None:
        return True
    with suppress(Exception):  # the JVM is gone, or says something else
        return bool(java.sc().isStopped())
    return False


def _worker_traceback(text: str) -> str:
    """The Python part of Spark's message, without the JVM's stack; if there is none, the cause that the JVM names."""
    starts = (text.find("Traceback (most recent call last)"), text.find("Caused by: "))
    text = text[next((start for start in starts if start >= 0), 0) :]
    for end in ("\n\tat ", "\nDriver stacktrace", "\n\nJVM stacktrace", "\nSQLSTATE"):
        text = text.split(end)[0]
    return text.strip()[-TRACEBACK_CHARACTERS_MAX:]
