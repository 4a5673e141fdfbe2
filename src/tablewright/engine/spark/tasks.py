"""Tasks on Spark: ``function`` over many letters, each in a Spark task of its own. Classic and Connect alike.

1. Function and letters are pickled with pyspark's ``cloudpickle``; the letters one by one, so a worker opens only its
   own.
2. ``spark.range(0, n, 1, n)`` makes *n* partitions of one number each; ``mapInArrow`` turns a number into the result
   of that letter. Many or large letters travel as a column instead of in the function, since every task would
   otherwise carry all of them; very many large ones in several jobs.
3. A worker answers ``(number, ok, pickled result)``. An error of ours is an answer too: it comes home with its type
   and facts, and Spark does not repeat what would fail again. Any other exception, or a worker that dies, is a failed
   Spark task: Spark repeats it as often as it is set to, then the job ends with the worker's traceback.
4. After its first task a reused worker freezes its heap once: the daemon collects garbage after every task, which
   costs more than a small task itself.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

import pyarrow as pa

from tablewright.engine.detect import is_connect
from tablewright.engine.spark.jobs import run_job
from tablewright.engine.spark.python import job_problem, map_in_arrow
from tablewright.errors import InternalError, InvalidRequest, JobCancelled, TablewrightError

__all__ = ["ANSWER", "answers", "dump", "post", "run_tasks"]

T = TypeVar("T")
R = TypeVar("R")

ANSWER = "number long, ok boolean, result binary"
CARRIED_BYTES_MAX = 1 << 20
JOB_BYTES_MAX = 1 << 27
TRACEBACK_CHARACTERS_MAX = 10_000
_CANCELLED = re.compile(r"\[(?:SPARK_JOB_CANCELLED|OPERATION_CANCELED)\] (.*)")


def run_tasks(
    spark: Any,
    function: Callable[[T], R],
    tasks: Sequence[T],
    *,
    describe: str = "",
    show: bool | None = None,
    discard: Callable[[list[R]], None] | None = None,
) -> list[R]:
    """``[function(task) for task in tasks]`` on the workers of ``spark``.

    If one fails with an error of ours, ``discard`` gets the results of the others.
    """
    code = dump(function, "task function")
    results: list[R] = []
    for letters in _jobs(dump(task, "task") for task in tasks):
        frame, carried = post(spark, letters)
        job = map_in_arrow(frame, _body(code, carried), ANSWER)
        try:
            rows = answers(spark, job, describe=describe, show=show, on_error=_unpickling(discard))
        except BaseException:
            if discard is not None and results:
                discard(results)
            raise
        if len(rows) != len(letters):
            raise InternalError(f"{describe or 'Spark job'}: {len(letters)} tasks gave {len(rows)} answers.")
        results += [pickle.loads(result) for _, _, result in rows]
    return results


def _jobs(letters: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Letters that travel together: they pass through the driver's JVM, which may have little memory."""
    together: list[bytes] = []
    size = 0
    for letter in letters:
        if together and size + len(letter) > JOB_BYTES_MAX:
            yield together
            together, size = [], 0
        together.append(letter)
        size += len(letter)
    if together:
        yield together


def _unpickling(discard: Callable[[list[R]], None] | None) -> Callable[[list[bytes]], None] | None:
    return None if discard is None else lambda made: discard([pickle.loads(result) for result in made])


def post(spark: Any, letters: Sequence[bytes]) -> tuple[Any, Sequence[bytes]]:
    """A DataFrame with one partition per letter, and the letters that the function has to carry to all of them.

    Few and small letters are carried; others travel as a second column, each to its own partition only.
    """
    if sum(map(len, letters)) <= CARRIED_BYTES_MAX:
        return spark.range(0, len(letters), 1, max(1, len(letters))), letters
    table = pa.table({"number": pa.array(range(len(letters)), pa.int64()), "letter": pa.array(letters, pa.binary())})
    frame = spark.createDataFrame(table)
    return frame.repartitionById(len(letters), frame["number"].cast("int")), ()


def answers(
    spark: Any,
    job: Any,
    *,
    describe: str,
    show: bool | None = None,
    on_error: Callable[[list[bytes]], None] | None = None,
) -> list[tuple[int, bool, bytes]]:
    """Run a DataFrame of :data:`ANSWER` rows; all of them by number, or the first error of ours among them.

    ``on_error`` gets the results that came home beside an error.
    """
    rows = sorted(_collect(spark, job, describe, show))
    errors = [result for _, ok, result in rows if not ok]
    if errors:
        if on_error is not None:
            on_error([result for _, ok, result in rows if ok])
        raise pickle.loads(errors[0])
    return rows


def dump(value: object, what: str) -> bytes:
    """Pickle for a worker, or say what can't travel."""
    from pyspark import cloudpickle

    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:
        raise InvalidRequest(
            f"A {what} can't be sent to a Spark worker: {error}. Letters hold addresses and plain values, "
            "no open files, clients, locks or sessions."
        ) from error


def _collect(spark: Any, job: Any, describe: str, show: bool | None) -> Iterator[tuple[int, bool, bytes]]:
    try:
        table: pa.Table = run_job(spark, job.toArrow, describe=describe, show=show)
    except TablewrightError:
        raise
    except Exception as error:
        _raise_job_error(spark, error, describe)
    columns = (table.column(name).to_pylist() for name in ("number", "ok", "result"))
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
    raise InternalError(f"{what} failed on a Spark worker:\n{_worker_traceback(str(error))}") from error


def _why_cancelled(spark: Any, text: str) -> str | None:
    """Who ended a job that did not fail by itself; ``None`` where it did."""
    if not is_connect(spark) and getattr(spark.sparkContext, "_jsc", None) is None:
        return "the Spark session was stopped while the job ran"
    cancelled = _CANCELLED.search(text)
    return None if cancelled is None else f"the Spark job was cancelled ({cancelled[1].strip().rstrip('.')})"


def _worker_traceback(text: str) -> str:
    """The Python part of Spark's message, without the JVM's stack; if there is none, the cause that the JVM names."""
    starts = (text.find("Traceback (most recent call last)"), text.find("Caused by: "))
    text = text[next((start for start in starts if start >= 0), 0) :]
    for end in ("\n\tat ", "\nDriver stacktrace", "\n\nJVM stacktrace", "\nSQLSTATE"):
        text = text.split(end)[0]
    return text.strip()[-TRACEBACK_CHARACTERS_MAX:]


def _body(code: bytes, letters: Sequence[bytes]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tablewright.engine.spark.worker import answer_all

        yield from answer_all(code, letters, batches)

    return body
