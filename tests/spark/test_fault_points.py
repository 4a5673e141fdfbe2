"""Faults on Spark, at 27 points of every change: the old version or the new one, exactly once, and nothing left.

A worker is killed, fails once, twice or always, before or after a storage call of its first, middle or last task; tasks
run twice; the driver fails or crashes at its commit; the files of a shuffle are lost. Each time:

- a change that returned is there, once; one that failed is not there, and running it again works;
- pylance and we read the same;
- no file is left that no version names. Except: files of attempts that Spark repeated, if the change succeeded, and
  those of a crashed driver. Cleanup removes them;
- a batch of a stream is replayed in the same session, as Spark does after a crash: it is committed once.

One driver with three tries for each task serves all (``driver.py``). Its Python workers serve one task each, so that
calls are not answered by a cache that an earlier task filled.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import lance
import pytest
from tests.spark.driver import Driver, driver
from tests.spark.faults import ALWAYS, DriverFault, Faults, LogLine, TaskFault, read_log
from tests.spark.verbs import REPLAYED, VERBS, Seen, clean_up, make_table, orphans, seen

from tablewright.testing import CrashAfter, CrashBefore, FailBefore, LoseReply
from tablewright.testing.faulty_store import Fault

pytestmark = [pytest.mark.timeout(1800), pytest.mark.share(6)]
TRIES = 3
OURS = ("StorageError", "CompactionIncomplete")


@dataclass(frozen=True)
class Point:
    """A fault, where it happens, and the errors that the change may end with: ``""`` is none."""

    kind: str
    position: str = ""
    times: int = 1
    ends: tuple[str, ...] = ("",)
    driver: DriverFault | None = None  # at the last commit of the change: a compaction has two

    def __str__(self) -> str:
        often = {1: "", 2: "twice", ALWAYS: "always"}[self.times]
        return " ".join(filter(None, [self.kind, often, self.position]))


def _task_points() -> Iterator[Point]:
    for position in ("first", "middle", "last"):
        yield Point("kill", position)
        yield Point("kill after", position)
        yield Point("raise", position)
        yield Point("raise", position, times=2)
        yield Point("raise", position, times=ALWAYS, ends=("InternalError",))
        yield Point("kill", position, times=ALWAYS, ends=("WorkerLost",))


def _at(folder: str, fault: Fault) -> DriverFault:
    return DriverFault(fault, 0, "put_if_absent" if folder == "_versions" else "put", folder)


POINTS = (
    *_task_points(),
    Point("fail", "middle", ends=OURS),
    Point("lose reply", "last", ends=OURS),
    Point("delay", "last"),
    Point("twice"),
    Point("driver fails before its commit", ends=("StorageError",), driver=_at("_transactions", FailBefore())),
    Point("driver's commit fails, and is tried again", driver=_at("_versions", FailBefore())),
    Point("driver loses the reply to its commit", driver=_at("_versions", LoseReply())),
    Point("driver crashes before its commit", ends=("SimulatedCrash",), driver=_at("_versions", CrashBefore())),
    Point("driver crashes after its commit", ends=("SimulatedCrash",), driver=_at("_versions", CrashAfter())),
)


@dataclass(frozen=True)
class Scene:
    """A table before a change; what a reader sees before and after it; the calls of the change."""

    uri: str
    before: Seen
    after: Seen
    calls: tuple[LogLine, ...]

    def place(self, position: str) -> LogLine:
        """A storage call of a worker: the first one of the first task, the last one of the last, or one between."""
        tasks = sorted({(line.stage, line.partition) for line in self.calls if line.stage >= 0})
        task = {"first": tasks[0], "middle": tasks[len(tasks) // 2], "last": tasks[-1]}[position]
        calls = [line for line in self.calls if (line.stage, line.partition) == task]
        return {"first": calls[0], "middle": calls[len(calls) // 2], "last": calls[-1]}[position]

    @property
    def commits(self) -> int:
        """How many manifests the driver puts."""
        return sum(line.method == "put_if_absent" for line in self.calls if line.path.startswith("_versions/"))


@pytest.fixture(scope="module")
def local_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Spark has the files of its shuffles."""
    return tmp_path_factory.mktemp("blocks")


@pytest.fixture(scope="module")
def patient(local_dir: Path) -> Iterator[Driver]:
    """A driver whose session tries a task three times."""
    settings = {"spark.python.worker.reuse": "false", "spark.local.dir": str(local_dir)}
    with driver(f"local[2,{TRIES}]", settings) as made:
        yield made


@pytest.fixture(scope="module")
def scenes(patient: Driver, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Scene]:
    """One for each change, made when first asked for; Spark and the local engine make the same of the table."""
    return _Scenes(patient, tmp_path_factory.mktemp("scenes"))


class _Scenes(dict[str, Scene]):
    def __init__(self, made: Driver, folder: Path) -> None:
        self._driver, self._folder = made, folder
        self._table = make_table(folder / "table.lance")

    def __missing__(self, verb: str) -> Scene:
        here, there = (shutil.copytree(self._table, self._folder / f"{verb}-{name}.lance") for name in ("a", "b"))
        VERBS[verb](str(here), "local")
        log = str(self._folder / verb)
        assert self._driver.run(verb, str(there), Faults(log)) is None
        after = seen(str(there))
        assert after == seen(str(here)) != seen(self._table) and not orphans(str(there))
        self[verb] = scene = Scene(self._table, seen(self._table), after, tuple(read_log(log)))
        return scene


@pytest.mark.parametrize("point", POINTS, ids=str)
@pytest.mark.parametrize("verb", VERBS)
def test_a_fault_on_spark(patient: Driver, scenes: dict[str, Scene], tmp_path: Path, verb: str, point: Point) -> None:
    scene = scenes[verb]
    uri = str(shutil.copytree(scene.uri, tmp_path / "t.lance"))
    faults = _faults(scene, point, str(tmp_path / "log"))
    end = patient.run(verb, uri, faults)
    log = read_log(faults.log)
    assert _happened(faults, log), "the fault was not met"
    assert (end or "").partition(":")[0] in point.ends, end
    _judge(patient, scene, verb, uri, end, _lost(faults, log), killed=point.kind.startswith("kill"))


def test_files_of_a_shuffle_that_are_lost(
    patient: Driver, scenes: dict[str, Scene], tmp_path: Path, local_dir: Path
) -> None:
    """They go while a task that reads them is repeated: Spark makes them again, and the write happens once."""
    scene = scenes["write"]
    uri = str(shutil.copytree(scene.uri, tmp_path / "t.lance"))
    task = TaskFault("lose shuffle", 0, 0, call=1, folder=str(local_dir))
    faults = Faults(str(tmp_path / "log"), task)
    end = patient.run("write", uri, faults)
    assert Path(f"{faults.log}-once").exists()
    written = {line.path for line in read_log(faults.log) if line.stage >= 0 and line.method == "put"}
    assert end is None
    _judge(patient, scene, "write", uri, end, written)


def _faults(scene: Scene, point: Point, log: str) -> Faults:
    if point.driver is not None:
        return Faults(log, driver=replace(point.driver, nth=scene.commits - 1))
    if point.kind == "twice":
        return Faults(log, twice=True)
    line = scene.place(point.position)
    return Faults(log, TaskFault(point.kind, line.stage, line.partition, line.call, point.times))


def _happened(faults: Faults, log: list[LogLine]) -> bool:
    task = faults.task
    if task is None:
        at = faults.driver
        met = [line for line in log if at and line.method == at.method and line.path.startswith(f"{at.folder}/")]
        return faults.twice or (at is not None and len(met) > at.nth)
    met = [line for line in log if (line.stage, line.partition, line.call) == (task.stage, task.partition, task.call)]
    return len({line.attempt for line in met}) >= min(task.times, TRIES)


def _lost(faults: Faults, log: list[LogLine]) -> set[str]:
    """Files of attempts that did not count."""
    written = [line for line in log if line.stage >= 0 and line.method == "put"]
    task = faults.task
    if task is None:
        return {line.path for line in written} if faults.twice else set()
    attempts = [line for line in written if (line.stage, line.partition) == (task.stage, task.partition)]
    return {line.path for line in attempts if line.attempt < task.times}


def _judge(
    made: Driver, scene: Scene, verb: str, uri: str, end: str | None, lost: set[str], *, killed: bool = False
) -> None:
    """What may be there after a change that ended so; ``lost`` may be left if it succeeded.

    A worker that was killed while one of its threads wrote such a file may leave it unfinished, as ``path#number``.
    """
    found, left = seen(uri), orphans(uri)
    if end is None:
        assert found == scene.after
        assert {path.partition("#")[0] if killed else path for path in left} <= lost
    elif end.startswith("SimulatedCrash"):
        assert found in (scene.before, scene.after)
    else:
        in_part = "CompactionIncomplete" in end and found == replace(scene.before, fragments=found.fragments)
        assert found == scene.before or in_part
        assert left == set()
    if verb in REPLAYED:
        _replay(made, scene, verb, uri)
    elif found != scene.after:
        VERBS[verb](uri, "local")
    clean_up(uri)
    assert seen(uri) == scene.after
    assert orphans(uri) == set()


def _replay(made: Driver, scene: Scene, verb: str, uri: str) -> None:
    """Run a change twice more: it makes a version if the table does not have it yet, and no other."""
    for _ in range(2):
        version, is_there = lance.dataset(uri).version, seen(uri) == scene.after
        assert made.run(verb, uri, Faults(f"{uri}.replayed")) is None
        assert seen(uri) == scene.after
        assert lance.dataset(uri).version == (version if is_there else version + 1)
