"""Where the column files of a job come from: tasks on an engine, tasks with a checkpoint, or a stream of values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tablewright.api.execute import choose_for, run_tasks
from tablewright.engine.choose import Choice
from tablewright.engine.local import LocalEngine
from tablewright.errors import InvalidRequest
from tablewright.format.fragment import DataFile, Fragment
from tablewright.operations.columns.checkpoint import Checkpoint, CheckpointedWork
from tablewright.operations.columns.keep import Kept
from tablewright.operations.columns.plan import ColumnsPlan, ColumnsResult, ColumnsTask, ColumnsWork
from tablewright.operations.columns.stream import RowStream, why_moved
from tablewright.snapshot.snapshot import Snapshot
from tablewright.world import World

if TYPE_CHECKING:
    from tablewright.api.dataset import LanceDataset

__all__ = ["FromCheckpoint", "FromStream", "FromTasks", "Record", "Source"]

Work = Callable[[ColumnsTask, World], ColumnsResult]

Record = Callable[[Fragment, ColumnsResult], None]
"""Called with every column file as soon as it is there."""


class Source(Protocol):
    """Gives column files for the fragments of a plan."""

    def begin(self) -> None:
        """A job starts. :class:`InvalidRequest` if there can't be another one."""

    def choose(self, dataset: LanceDataset, plan: ColumnsPlan) -> Choice:
        """Where the work is done, and why."""

    def write(self, dataset: LanceDataset, plan: ColumnsPlan, done: Collection[int], record: Record) -> None:
        """Write the files of fragments that are not done."""

    def loses(self, plan: ColumnsPlan, base: Snapshot, newest: Snapshot, kept: Mapping[int, Kept]) -> str | None:
        """Why going on from the newest version would lose values; ``None`` if it would not."""

    def leave(self, files: Sequence[DataFile], *, committed: bool) -> Sequence[DataFile]:
        """The job is over; returns those of its files that can be removed if no version uses them."""


class FromTasks:
    """Files that tasks compute.

    ``in_turn``: functions of the user's own are called here by one thread, in the order of the fragments, because
    nobody knows what they share; on Spark every worker has its own copy, if they can travel.
    """

    def __init__(self, describe: str, *, in_turn: bool = False, stays_here: str | None = None) -> None:
        self._describe, self._in_turn, self._stays_here = describe, in_turn, stays_here

    def begin(self) -> None:
        """As often as you like."""

    def choose(self, dataset: LanceDataset, plan: ColumnsPlan) -> Choice:
        """By the bytes that are read and written."""
        engine, why = choose_for(
            dataset._world, plan.estimated_bytes, dataset._engine, dataset._spark, stays_here=self._stays_here
        )
        if engine.name != "local" and self._in_turn and dataset._engine is None:
            reason = _why_it_cannot_travel(plan.work)
            engine, why = (engine, why) if reason is None else (LocalEngine(), reason)
        if self._in_turn and engine.name == "local":
            engine = LocalEngine(threads=1)
        return Choice(engine, why)

    def write(self, dataset: LanceDataset, plan: ColumnsPlan, done: Collection[int], record: Record) -> None:
        """All that are missing, side by side."""
        tasks = plan.tasks(done)
        if not tasks or plan.work is None:
            return
        missing = plan.of_fragments(task.fragment for task in tasks) if done else plan
        work, engine = self._work(plan, plan.work), self.choose(dataset, missing).engine
        by_id = {task.fragment.id: task.fragment for task in tasks}

        def here(task: ColumnsTask, world: World) -> ColumnsResult:
            made = work(task, world)
            record(task.fragment, made)
            return made

        def keep(made: Iterable[ColumnsResult]) -> None:
            for result in made:
                record(by_id[result.fragment_id], result)

        local = engine.name == "local"
        made = run_tasks(
            engine,
            here if local else work,
            tasks,
            dataset._world,
            describe=self._describe,
            discard=None if local else keep,
        )
        if not local:
            keep(made)

    def loses(self, plan: ColumnsPlan, base: Snapshot, newest: Snapshot, kept: Mapping[int, Kept]) -> str | None:
        """Nothing: what is missing can be computed."""
        return None

    def leave(self, files: Sequence[DataFile], *, committed: bool) -> Sequence[DataFile]:
        """All of them."""
        return files

    def _work(self, plan: ColumnsPlan, work: ColumnsWork) -> Work:
        return work


class FromCheckpoint(FromTasks):
    """Files that tasks compute here, one after the other, and that a checkpoint remembers until they are committed."""

    def __init__(self, describe: str, path: str | Path) -> None:
        super().__init__(describe, in_turn=True, stays_here="the checkpoint file is on this machine")
        self._path = path
        self._checkpoint: Checkpoint | None = None
        self._reused: set[str] = set()

    def leave(self, files: Sequence[DataFile], *, committed: bool) -> Sequence[DataFile]:
        """None if it failed: the next run needs them. Files of an earlier run may be in use, nobody knows."""
        checkpoint, self._checkpoint = self._checkpoint, None
        if checkpoint is not None and committed:
            checkpoint.remove()
        elif checkpoint is not None:
            checkpoint.close()
        return [file for file in files if file.path not in self._reused] if committed else []

    def _work(self, plan: ColumnsPlan, work: ColumnsWork) -> Work:
        self._checkpoint = self._checkpoint or Checkpoint(self._path, plan)
        return CheckpointedWork(work, self._checkpoint, plan.inputs, self._reused)


class FromStream(FromTasks):
    """Files with the values of a stream, which this process reads once."""

    def __init__(self, stream: RowStream) -> None:
        super().__init__("Adding columns", in_turn=True, stays_here="the values come from a stream in this process")
        self._stream: RowStream | None = stream
        self._has_begun = False

    def begin(self) -> None:
        """Once."""
        if self._has_begun:
            raise InvalidRequest("The stream of values has been read: prepare the columns again with another one.")
        self._has_begun = True

    def write(self, dataset: LanceDataset, plan: ColumnsPlan, done: Collection[int], record: Record) -> None:
        """The files of all fragments, the first time; those that come later read as null."""
        stream, self._stream = self._stream, None
        if stream is not None:
            super().write(dataset, plan, done, record)
            stream.end()

    def loses(self, plan: ColumnsPlan, base: Snapshot, newest: Snapshot, kept: Mapping[int, Kept]) -> str | None:
        """Values of rows that were moved or rewritten, and those of new rows where they may not be null."""
        inputs = plan.inputs
        new = [fragment.id for fragment in plan.fragments if fragment.id not in kept]
        if new and not all(field.nullable for field in plan.written.top_level):
            return f"fragments {new} are new, the stream has no values for them, and the columns may not be null"
        known = [fragment for fragment in plan.fragments if fragment.id in kept]
        rewritten = [f.id for f in known if not kept[f.id].fits(f, inputs[f.id], plan.written)]
        if rewritten:
            return f"columns of fragments {rewritten} were rewritten, and the stream can't be read again"
        return why_moved(base, newest, kept)


def _why_it_cannot_travel(work: ColumnsWork | None) -> str | None:
    from tablewright.engine.spark.tasks import dump

    try:
        dump(work, "function")
    except InvalidRequest as error:
        return str(error)
    return None
