"""The Python that Spark's workers run: the one that it should be, and an error that names it where it is not.

Our functions run in Spark's Python workers. They need the driver's minor version of Python, the driver's version of
tablewright (a task is a pickle of its values), and pyarrow. PySpark decides which Python that is when a session starts:
the environment variable ``PYSPARK_PYTHON``, otherwise ``python3`` on the path. In a virtual environment that was not
activated that is the system's Python, which has none of these.

1. *A session of ours* starts with this very Python (:mod:`.session`).
2. *A session of the user on this machine* (master ``local…``) for which no Python was chosen: each of our functions is
   sent with ``sys.executable`` as its Python, which PySpark stores per function. The user's own functions, the session
   and the environment stay as they are. Setting ``PYSPARK_PYTHON`` when tablewright is imported would be simpler, but
   would break sessions on clusters, whose machines do not have the driver's path.
3. *Everywhere else* (a Python that the user chose, a cluster, Spark Connect) one worker is asked once per session, by a
   Python function that needs nothing but Python. If it can't run our functions, :class:`InvalidRequest` says which
   Python it is, what it lacks and what to set. A question that fails for another reason stops nothing: the job itself
   reports that.

Other workers of a cluster may differ from the one that was asked, so each function compares versions again.
``spark.pyspark.python`` has an effect with ``spark-submit`` only, which translates it to ``PYSPARK_PYTHON``.

Tests: tests/spark/test_worker_python.py
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import pickle
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tablewright._version import __version__
from tablewright.engine.detect import is_connect
from tablewright.engine.spark.jobs import run_job
from tablewright.engine.spark.payload import dump
from tablewright.errors import InvalidRequest

__all__ = ["job_problem", "map_in_arrow", "our_workers", "require_same_tablewright"]

PYARROW_OLDEST = 18
DEFAULT = "python3"  # what PySpark takes where PYSPARK_PYTHON is not set
_MARKER = "[TABLEWRIGHT_WORKER]"
_MISMATCH = re.compile(r"PYTHON_VERSION_MISMATCH\] .*?different version: (\S+) than that in driver")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_NO_MODULE = re.compile(r"^ModuleNotFoundError: No module named '([^']+)'", re.MULTILINE)
_REPORT = re.compile(re.escape(_MARKER) + r" (\{.*\})")

_sending = threading.RLock()
_asked: set[tuple[str, str]] = set()

Batches = Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPython:
    """What a worker says about itself. ``missing`` is the text of an import that failed."""

    executable: str
    version: str
    tablewright: str | None = None
    pyarrow: str | None = None
    missing: str | None = None

    @property
    def problem(self) -> str | None:
        """Why it can't run our functions, as the end of a sentence about it."""
        if self.pyarrow is not None and int(self.pyarrow.split(".")[0]) < PYARROW_OLDEST:
            return f"has pyarrow {self.pyarrow}, and {PYARROW_OLDEST} is the oldest that tablewright runs with"
        if self.missing is not None:
            return f"can't import tablewright and what it needs ({self.missing})"
        if self.tablewright is not None and self.tablewright != __version__:
            return f"has tablewright {self.tablewright}, and the driver has {__version__}"
        return None

    def __str__(self) -> str:
        return f"{self.executable} ({self.version})"


# ----------------------------------------------------------------------------------------------------------- on the way
def map_in_arrow(frame: Any, body: Callable[[Batches], Batches], schema: Any) -> Any:
    """``frame.mapInArrow(body, schema)`` in workers that can run it."""
    with our_workers(frame.sparkSession):
        return frame.mapInArrow(_guarded(dump(body, "task function"), require_same_tablewright()), schema)


@contextlib.contextmanager
def our_workers(spark: Any) -> Iterator[None]:
    """Functions that are given to Spark inside are ours; :class:`InvalidRequest` if the workers can't run them."""
    if not _is_default_on_this_machine(spark):
        _check(spark)
        yield
        return
    context = spark.sparkContext
    with _sending:
        before, context.pythonExec = context.pythonExec, sys.executable
        try:
            yield
        finally:
            context.pythonExec = before


def require_same_tablewright() -> Callable[[], None]:
    """A function for workers that refuses to go on where tablewright is missing or another version."""
    wanted, marker = __version__, _MARKER

    # A nested function travels by value, so a worker without tablewright can still say that this is what it lacks.
    def require() -> None:
        import importlib
        import json
        import sys

        found = {"executable": sys.executable, "version": sys.version.split()[0]}
        try:
            package = importlib.import_module("tablewright")  # the worker's own, whatever it is
        except Exception as error:
            missing = f"{type(error).__name__}: {error}"
            raise RuntimeError(f"{marker} {json.dumps({**found, 'missing': missing})}") from error
        has = str(getattr(package, "__version__", "of an unknown version"))
        if has != wanted:
            raise RuntimeError(f"{marker} {json.dumps({**found, 'tablewright': has})}")

    return require


def _guarded(code: bytes, require: Callable[[], None]) -> Callable[[Batches], Batches]:
    """A function that unpickles another one, which needs our modules, after the worker is known to have them."""

    def run(batches: Batches) -> Batches:
        require()
        yield from pickle.loads(code)(batches)

    return run


def _is_default_on_this_machine(spark: Any) -> bool:
    """Whether driver and workers share a machine, and no one chose the workers' Python."""
    if is_connect(spark) or not sys.executable or "PYSPARK_PYTHON" in os.environ:
        return False
    return _is_local(spark) and spark.sparkContext.pythonExec == DEFAULT


def _is_local(spark: Any) -> bool:
    return not is_connect(spark) and str(spark.sparkContext.master).startswith("local")


# ------------------------------------------------------------------------------------------------------------- checking
def _check(spark: Any) -> None:
    """Ask a worker, once per session, unless it is known to be this Python."""
    key = _key(spark)
    if key in _asked or (_is_local(spark) and _is_this_python(spark.sparkContext.pythonExec)):
        return
    problem = _ask(spark)
    if problem is not None:
        raise problem
    _asked.add(key)


def _key(spark: Any) -> tuple[str, str]:
    if is_connect(spark):
        return "connect", str(spark.session_id)
    return str(spark.sparkContext.applicationId), str(spark.sparkContext.pythonExec)


def _is_this_python(name: str) -> bool:
    """Whether a command is this Python in this environment: the binaries of several environments may be one file."""
    found = shutil.which(name)
    if found is None or not sys.executable:
        return False
    here = os.path.abspath(sys.executable)
    same_folder = os.path.realpath(os.path.dirname(os.path.abspath(found))) == os.path.realpath(os.path.dirname(here))
    return same_folder and os.path.realpath(found) == os.path.realpath(here)


def _ask(spark: Any) -> InvalidRequest | None:
    from pyspark.sql.functions import udf

    look = udf(_look(), "string", useArrow=False)
    question = spark.range(0, 1, 1, 1).select(look("id").alias("found"))
    try:
        row = run_job(spark, question.first)
    except Exception as error:
        return job_problem(spark, str(error))
    found = WorkerPython(**json.loads(row["found"]))
    return None if found.problem is None else _cannot(spark, str(found), found.problem)


def _look() -> Callable[[Any], str]:
    def look(_: Any) -> str:
        import importlib
        import json
        import sys

        found = {"executable": sys.executable, "version": sys.version.split()[0]}
        try:
            found["pyarrow"] = importlib.import_module("pyarrow").__version__
            package = importlib.import_module("tablewright")
            found["tablewright"] = str(getattr(package, "__version__", "of an unknown version"))
        except Exception as error:  # a package that is broken, or does not fit the others, raises anything
            found["missing"] = f"{type(error).__name__}: {error}"
        return json.dumps(found)

    return look


def job_problem(spark: Any, text: str) -> InvalidRequest | None:
    """The error for a job that failed because of the workers' Python, from what Spark said; ``None`` for others."""
    if report := _REPORT.search(text):
        found = WorkerPython(**json.loads(report[1]))
        return _cannot(spark, str(found), found.problem or "can't run them")
    if mismatch := _MISMATCH.search(text):
        driver = ".".join(map(str, sys.version_info[:2]))
        return _cannot(spark, _named(spark), f"is Python {mismatch[1]}, and the driver's is {driver}")
    program = _NO_PROGRAM.search(text)
    if program and _is_python(program[1]):
        return _cannot(spark, program[1], "can't be started")
    missing = _NO_MODULE.findall(text)
    if missing and _is_installed(missing[-1]):
        return _cannot(spark, _named(spark), f"has no module named {missing[-1]!r}, which the driver has")
    return None


def _is_installed(module: str) -> bool:
    """Whether this process can import a module."""
    try:
        return importlib.util.find_spec(module.split(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def _is_python(program: str) -> bool:
    return "python" in os.path.basename(program).lower()


def _named(spark: Any) -> str:
    """The workers' Python as far as the driver knows it."""
    if is_connect(spark):
        return "the one that the Spark Connect server names"
    name = str(spark.sparkContext.pythonExec)
    return (shutil.which(name) or name) if _is_local(spark) else name


def _cannot(spark: Any, which: str, problem: str) -> InvalidRequest:
    version = ".".join(map(str, sys.version_info[:2]))
    suitable = f"a Python {version} that has tablewright {__version__}"
    if is_connect(spark):
        advice = (
            f"Set the environment variable PYSPARK_PYTHON of the Spark Connect server, before it starts, to {suitable}."
        )
    elif _is_local(spark):
        advice = f"Set the environment variable PYSPARK_PYTHON={sys.executable} before the Spark session starts."
    else:
        advice = (
            "Before the Spark session starts, set the environment variable PYSPARK_PYTHON (or, with spark-submit, "
            f"spark.pyspark.python) to the path that {suitable} has on every worker."
        )
    return InvalidRequest(
        f"Spark's Python workers can't run this: their Python, {which}, {problem}. "
        f"The driver's Python is {sys.executable} ({sys.version.split()[0]}). {advice}"
    )
