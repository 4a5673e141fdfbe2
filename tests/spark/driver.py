"""A Spark driver in a process of its own, which runs changes for a test and says how they end.

A process has one Spark session, and that of the tests tries each task once. This one tries it as often as its master
says, is on another master, or is killed. It ends with the ``with`` block, by its process id, and the JVM with it.
"""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.spark.faults import Faults, under_faults

__all__ = ["PROFILE", "SMALLER", "Driver", "driver", "run_pytest"]

ROOT = Path(__file__).parents[2]
PATIENCE_SECONDS = 900.0
PROFILE = (
    "tests/spark/test_every_kind.py",
    "tests/spark/test_merge_clauses.py",
    "tests/spark/test_changes.py::test_any_history_on_spark_reads_like_the_model",
    "tests/spark/test_index_histories.py::test_every_way_to_an_answer_gives_the_same_on_spark[0]",
    "tests/spark/test_profile.py::test_data_source",
    "tests/spark/test_profile.py::test_sql",
    "tests/spark/test_profile.py::test_the_handle",
)
"""Tests for a session that is expensive, of which each driver runs a part: ``SMALLER`` times their numbers."""
SMALLER = 0.1


@dataclass(frozen=True)
class Driver:
    """The test's end of the process."""

    process: BaseProcess
    connection: Connection

    def run(self, verb: str, uri: str, faults: Faults) -> str | None:
        """How the change ends: ``None``, or the name of the error with its message; ``EOFError`` if the driver dies."""
        return self._ask("run", verb, uri, faults)

    def pytest(self, *arguments: str) -> tuple[int, str]:
        """Run tests in the driver's session, which ends with them: pytest's status, and what it printed."""
        return self._ask("pytest", *arguments)

    @property
    def id(self) -> int:
        """Its process."""
        assert self.process.pid is not None
        return self.process.pid

    def processes(self) -> list[int]:
        """The processes of its session that run: itself, its JVM, the Python workers."""
        listed = subprocess.run(["ps", "-A", "-o", "pid=,sess=,stat="], capture_output=True, check=True, text=True)
        lines = (line.split() for line in listed.stdout.splitlines())
        return [int(pid) for pid, session, state in lines if session == str(self.id) and not state.startswith("Z")]

    def wait_for_the_end(self) -> None:
        """Until all its processes have ended."""
        self.process.join(PATIENCE_SECONDS)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.1)

    def _ask(self, *question: Any) -> Any:
        self.connection.send(question)
        if not self.connection.poll(PATIENCE_SECONDS):
            raise TimeoutError(f"The driver did not answer within {PATIENCE_SECONDS:g} s: {question}")
        return self.connection.recv()


@contextmanager
def driver(
    master: str, settings: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[Driver]:
    """A driver with a session on ``master``."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=serve, args=(there, master, dict(settings or {}), dict(environment or {})))
    process.start()
    there.close()
    try:
        yield Driver(process, here)
    finally:
        here.close()  # it ends when nobody asks any more
        process.join(60)
        for each in Driver(process, here).processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        process.join()


def serve(connection: Connection, master: str, settings: dict[str, str], environment: dict[str, str]) -> None:
    """The driver: answers until the test has closed its end. All its processes are of one session."""
    os.setsid()
    paths = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ.update({"PYTHONPATH": os.pathsep.join(paths), **environment})  # workers find the tests, too
    sys.path[:0] = paths
    spark = _session(master, {"spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"], **settings})
    while True:
        try:
            command, *given = connection.recv()
        except EOFError:
            break
        connection.send(run_pytest(given) if command == "pytest" else _run(spark, *given))
    with contextlib.suppress(Exception):  # pytest has stopped it
        spark.stop()


def _session(master: str, settings: dict[str, str]) -> Any:
    from tablewright.engine.spark.session import embedded_session

    return embedded_session(master, {"spark.sql.shuffle.partitions": "2", **settings}, brief=True)


def _run(spark: Any, verb: str, uri: str, faults: Faults) -> str | None:
    from tests.spark.verbs import OTHERS, VERBS

    try:
        with under_faults(faults):
            {**VERBS, **OTHERS}[verb](uri, spark)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return None


def run_pytest(arguments: Sequence[str]) -> tuple[int, str]:
    """Run tests in this process and its Spark session: pytest's status, and what it printed."""
    import pytest

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = pytest.main(["-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider", *arguments])
    return int(status), printed.getvalue()
