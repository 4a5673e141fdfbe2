"""The attempt loop: what it makes, on which version, and what it removes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

import tablewright as tw
from tablewright.errors import CommitConflict, CommitUnknown, StorageError
from tablewright.format.transaction import MapUpdate, Transaction, UpdateConfig
from tablewright.jobs.attempt import Done, GiveUp, Job, Made, attempts, make, run_job
from tablewright.jobs.report import Report
from tablewright.jobs.table import Table
from tablewright.jobs.work import Work
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.testing import memory_world
from tablewright.transaction.commit import Committed
from tablewright.transaction.retry import RetryOptions
from tablewright.world import World


@pytest.fixture
def table() -> Table:
    world = memory_world(seed=1)
    tw.write_dataset({"id": [1]}, world)
    return Table(open_snapshot(world))


def conflict(version: int = 1, **facts: Any) -> CommitConflict:
    return CommitConflict("Update", "Delete", version, **facts)


@dataclass
class Recorded(Job[str, Made, str]):
    """Writes one file per run, sets a config key, and fails as often as it is told."""

    errors: list[Exception] = field(default_factory=list)
    moves: bool = False
    nothing: bool = False
    retries: RetryOptions = field(default_factory=RetryOptions)
    log: list[Any] = field(default_factory=list)

    def plan(self, snapshot: Snapshot, now_ns: int) -> str:
        self.log.append(("plan", snapshot.version))
        return f"plan {snapshot.version}"

    def run(self, plan: str, snapshot: Snapshot, work: Work) -> Made | Done[str]:
        self.log.append(("run", plan))
        if self.nothing:
            return Done(snapshot, "nothing to do")
        name = f"data/{work.report.attempts}.lance"
        work.world.store.put(name, b"rows")
        work.files.add([name])
        return self._made(snapshot, work)

    def _made(self, snapshot: Snapshot, work: Work) -> Made:
        operation = UpdateConfig(config_updates=MapUpdate(entries={"k": "v"}))
        uuid = str(work.world.ids.uuid())
        transaction = Transaction(read_version=snapshot.version, uuid=uuid, operation=operation)
        return Made(base=snapshot, transaction=transaction, files=work.files)

    def rebase(self, made: Made, newest: Snapshot, work: Work) -> Made | None:
        self.log.append(("rebase", made.base.version, newest.version))
        return self._made(newest, work) if self.moves else None

    def lost(self, made: Made) -> None:
        self.log.append("lost")
        if not self.moves:
            super().lost(made)

    def commit(self, made: Made, attempt: int) -> Committed:
        if self.errors:
            raise self.errors.pop(0)
        return super().commit(made, attempt)

    def result(self, made: Made, committed: Committed | None) -> str:
        return "uncommitted" if committed is None else f"version {committed.snapshot.version}"

    def close(self, error: BaseException | None) -> None:
        self.log.append(("close", type(error).__name__))


def files(world: World) -> list[str]:
    return sorted(info.path for info in world.store.list("data/") if len(info.path) < 20)


def test_one_attempt_on_the_callers_version(table: Table) -> None:
    job, report = Recorded(), Report()
    tw.dataset(table.world).update_config({"other": "writer"})
    done = run_job(job, table, report)
    assert (done.result, done.snapshot.version, report.attempts) == ("version 3", 3, 1)
    assert job.log == [("plan", 1), ("run", "plan 1"), ("close", "NoneType")]
    assert files(table.world) == ["data/1.lance"]
    assert [stage.name for stage in report.stages] == ["Commit"]


def test_a_plan_that_was_made_before_is_used_for_its_version_only(table: Table) -> None:
    job = Recorded(errors=[conflict()])
    run_job(job, table, plan="mine")
    assert [entry for entry in job.log if entry[0] in ("plan", "run")] == [
        ("run", "mine"),
        ("plan", 1),
        ("run", "plan 1"),
    ]


def test_after_a_conflict_files_go_and_the_newest_version_is_planned(table: Table) -> None:
    job = Recorded(errors=[conflict()])
    tw.dataset(table.world).update_config({"other": "writer"})
    run_job(job, table)
    assert job.log[2:6] == ["lost", ("rebase", 1, 2), ("plan", 2), ("run", "plan 2")]
    assert files(table.world) == ["data/2.lance"]


def test_what_was_made_can_be_moved_onto_the_newest_version(table: Table) -> None:
    job = Recorded(errors=[conflict(), conflict()], moves=True)
    done = run_job(job, table)
    assert [entry[0] for entry in job.log if entry != "lost"] == ["plan", "run", "rebase", "rebase", "close"]
    assert (done.result, files(table.world)) == ("version 2", ["data/1.lance"])


def test_nothing_to_commit(table: Table) -> None:
    done = run_job(Recorded(nothing=True), table)
    assert (done.result, done.snapshot) == ("nothing to do", table.snapshot)


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (conflict(retryable=False), []),
        (StorageError("no room"), []),
        (CommitUnknown("memory://x", 2, "u", "no reply"), ["data/1.lance"]),
        (KeyboardInterrupt(), ["data/1.lance"]),
    ],
    ids=["final conflict", "certain failure", "unknown", "interrupt in the commit"],
)
def test_files_of_a_failed_commit(table: Table, error: Any, left: list[str]) -> None:
    job = Recorded(errors=[error])
    with pytest.raises(type(error)):
        run_job(job, table)
    assert files(table.world) == left
    assert job.log[-1] == ("close", type(error).__name__)


def test_a_failed_run_removes_its_files(table: Table) -> None:
    class Fails(Recorded):
        def run(self, plan: str, snapshot: Snapshot, work: Work) -> Made | Done[str]:
            super().run(plan, snapshot, work)
            raise StorageError("lost a task")

    with pytest.raises(StorageError, match="lost a task"):
        run_job(Fails(), table)
    assert files(table.world) == []


def test_a_result_that_fails_removes_nothing_that_was_committed(table: Table) -> None:
    class Fails(Recorded):
        def result(self, made: Made, committed: Committed | None) -> str:
            raise StorageError("after the commit")

    with pytest.raises(StorageError, match="after the commit"):
        run_job(Fails(), table)
    assert files(table.world) == ["data/1.lance"]


def test_retries_end(table: Table) -> None:
    job = Recorded(errors=[conflict() for _ in range(9)], retries=RetryOptions(conflict_retries=2))
    with pytest.raises(CommitConflict, match="Attempted 2 retries"):
        run_job(job, table)
    assert files(table.world) == []


def test_made_without_a_commit(table: Table) -> None:
    job = Recorded()
    made = make(job, table)
    assert isinstance(made, Made)
    assert job.result(made, None) == "uncommitted"
    assert (files(table.world), open_snapshot(table.world).version) == (["data/1.lance"], 1)
    made.files.remove()
    assert files(table.world) == []


def test_giving_up_is_a_conflict_for_the_caller_and_no_further_attempt() -> None:
    tries = []

    def give_up(number: int) -> None:
        tries.append(number)
        raise GiveUp(conflict(reason="values would be lost"))

    with pytest.raises(CommitConflict, match="values would be lost") as caught:
        attempts(memory_world(seed=1), give_up, lambda made, number: None, lambda made, error: None)
    assert (tries, caught.value.retryable) == ([0], True)
