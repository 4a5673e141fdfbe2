"""engine/spark/daemon.py: workers are forks of a process that has imported all they need, and has used none of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.engine.spark import daemon, session
from tablewright.engine.spark.engine import SparkEngine
from tablewright.errors import InvalidRequest
from tablewright.storage import open_store
from tablewright.world import World

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have PySpark's own daemon")

FORKS = """
import contextlib, io, os, sys, threading, warnings
import tablewright as tw
from tablewright.engine.spark import daemon

warnings.simplefilter("error")
daemon.preload()
loaded = set(sys.modules)
threads = {open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")}
assert threads <= {open("/proc/self/comm").read().strip(), "jemalloc_bg_thd"}, threads

def work(number):
    import numpy as np
    place = f"{sys.argv[1]}/{number}"
    ds = tw.write_dataset([{"id": number, "text": "a" * number}], place)
    ds.merge_insert("id").when_matched_update_all().execute([{"id": number, "text": "b"}])
    found = ds.to_table(filter="id > -1 and text = 'b'").num_rows, sorted(set(sys.modules) - loaded)
    return f"{found} {np.random.random()}"

# As PySpark's daemon forks: a fork in its module is one that the codec need not warn about.
fork = eval("lambda: os.fork()", {"__name__": "pyspark.daemon", "os": os})
children = []
for number in range(4):
    reading, writing = os.pipe()
    child = fork()
    if child == 0:
        try:
            answer = work(number)
        except BaseException as error:
            answer = repr(error)
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    children.append(reading)
for reading in children:
    with os.fdopen(reading) as pipe:
        print(pipe.read())
with contextlib.suppress(DeprecationWarning):
    os.fork() or os._exit(0)  # any other fork warns, in the daemon as elsewhere
"""


def test_forks_write_and_read_and_import_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS, str(tmp_path)], capture_output=True, text=True, timeout=200, check=False
    )
    answers = done.stdout.splitlines()
    assert [answer.rpartition(" ")[0] for answer in answers] == ["(1, [])"] * 4, done.stderr[-3000:]
    assert len({answer.rpartition(" ")[2] for answer in answers}) == 4, "workers share their random numbers"
    assert "lance is not fork-safe" in done.stderr
    assert [lance.dataset(tmp_path / str(n)).to_table()["id"].to_pylist() for n in range(4)] == [[0], [1], [2], [3]]


def parent(task: int, world: World) -> tuple[str, frozenset[str]]:
    import os

    command = Path(f"/proc/{os.getppid()}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return command, frozenset(sys.modules)


def remember(task: int, world: World) -> int:
    """Leave a note in the worker of which modules it has."""
    vars(sys).setdefault("_modules_before", frozenset(sys.modules))
    return task


def imported_since(task: int, world: World) -> list[str]:
    """Which modules were imported since the note, other than tests."""
    before = vars(sys).get("_modules_before", frozenset(sys.modules))
    return sorted(name for name in set(sys.modules) - before if not name.startswith("tests"))


def refuse(task: int, world: World) -> None:
    raise InvalidRequest(f"task {task} is refused.")


def test_verbs_import_nothing_in_a_fresh_worker(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment of its own gives these jobs a daemon of their own, whose workers no other test has used."""
    monkeypatch.setitem(spark.sparkContext.environment, "TABLEWRIGHT_TEST", "daemon")
    engine, world = SparkEngine(spark), World(open_store(tmp_path / "world"))
    assert engine.map(remember, [0, 1, 2, 3], world) == [0, 1, 2, 3]
    commands, modules = zip(*engine.map(parent, [0, 1], world), strict=True)
    assert all(f"-m {session.DAEMON} pyspark.worker" in command for command in commands)
    assert {"lance.file", "datafusion", "obstore.store", "pandas", "tablewright.api.dataset"} <= modules[0]

    rows = pa.table({"id": range(100), "score": [1.5] * 100})
    tw.write_dataset(spark.range(0, 100, 1, 2).selectExpr("id", "1.5D as score"), tmp_path / "table")
    ds = tw.dataset(tmp_path / "table", engine=spark)
    with pytest.raises(InvalidRequest, match="task 1 is refused"):
        engine.map(refuse, [1], world)
    ds.update({"score": "score * 2"}, where="id % 2 = 0")
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
    ds.optimize.compact_files()
    assert tw.dataset(tmp_path / "table").to_table().sort_by("id").equals(rows)
    assert engine.map(imported_since, [0, 1, 2, 3], world) == [[]] * 4


def test_without_tablewright_in_the_workers_the_daemon_is_pysparks(monkeypatch: pytest.MonkeyPatch) -> None:
    assert session.embedded_settings()["spark.python.daemon.module"] == session.DAEMON
    monkeypatch.setenv("PYSPARK_PYTHON", "/no/such/python")
    assert "spark.python.daemon.module" not in session.embedded_settings()


def test_a_connection_that_spark_has_closed_is_not_printed() -> None:
    def ends(error: type[BaseException]) -> int:
        raise error("closed")

    assert daemon._quiet(lambda code: code, 0) == 0
    assert daemon._quiet(ends, BrokenPipeError) == 1
    with pytest.raises(SystemExit):
        daemon._quiet(ends, SystemExit)
