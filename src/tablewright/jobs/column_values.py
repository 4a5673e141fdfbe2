"""Where the column files of a job come from: tasks on an engine, tasks with a checkpoint, or a stream of values.

Tests: ``tests/unit/api/test_columns.py``, ``tests/differential/test_columns.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tablewright.engine.choose import Choice, why_not
from tablewright.engine.local import LocalEngine
from tablewright.errors import InvalidRequest
from tablewright.format.fragment import DataFile, Fragment
from tablewright.jobs.table import Table
from tablewright.jobs.workloads import columns_work
from tablewright.operations.columns.checkpoint import Checkpoint, CheckpointedWork
from tablewright.operations.columns.keep import Kept
from tablewright.operations.columns.plan import ColumnsPlan, ColumnsResult, ColumnsTask, ColumnsWork
from tablewright.operations.columns.stream import RowStream, why_moved
from tablewright.snapshot.snapshot import Snapshot
from tablewright.world import World

__all__ = ["CheckpointedValues", "ColumnValues", "ComputedValues", "Record", "StreamedValues"]

Record = Callable[[Fragment, ColumnsResult], None]
"""Called with every column file as soon as it is written."""


class ColumnValues(Protocol):
    """Writes column files for the fragments of a plan."""

    def begin(self) -> None:
        """A job starts. :class:`InvalidRequest` if the values can't be given again."""

    def choose(self, table: Table, plan: ColumnsPlan) -> Choice:
        """Where the work is done, and why."""

    def write(self, table: Table, plan: ColumnsPlan, done: Collection[int], record: Record) -> None:
        """Write the files of the fragments whose ids are not in ``done``."""

    def loses(self, plan: ColumnsPlan, base: Snapshot, newest: Snapshot, kept: Mapping[int, Kept]) -> str | None:
        """Why continuing on the newest version would lose values; ``None`` if it would not."""

    def leave(self, files: Sequence[DataFile], *, committed: bool) -> Sequence[DataFile]:
        """The job is over; returns those of its files that can be removed if no version uses them."""


class ComputedValues:
    """Files that tasks compute.

    ``in_turn``: functions of the user are called by one thread of this process, in the order of the fragments, since
    they may share state; on Spark every worker has its own copy, if they can be pickled.
    """

    def __init__(self, describe: str, *, in_turn: bool = False, stays_here: str | None = None) -> None:
        self._describe, self._in_turn, self._stays_here = describe, in_turn, stays_here

    def begin(self) -> None:
        """Tasks can run any number of times."""

    def choose(self, table: Table, plan: ColumnsPlan) -> Choice:
        """By what is read and written."""
        work = columns_work(plan, in_turn=self._in_turn)
        engine, why = table.choose(work, stays_here=self._stays_here)
        if not engine.in_process and self._in_turn and table.engine is None:
            reason = why_not(plan.work)
            engine, why = (engine, why) if reason is None else (LocalEngine(), reason)
        if self._in_turn and engine.in_process:
            engine = LocalEngine(threads=1)
        return Choice(engine, why)

    def write(self, table: Table, plan: ColumnsPlan, done: Collection[int], record: Record) -> None:
        """All files that are missing, in parallel."""
        tasks = plan.tasks(done)
        if not tasks or plan.work is None:
            return
        missing = plan.of_fragments(task.fragment for task in tasks) if done else plan
        by_id = {task.fragment.id: task.fragment for task in tasks}
        self.choose(table, missing).engine.map(
            self._work(plan, plan.work),
            tasks,
            table.world,
            describe=self._describe,
            keep=lambda made: record(by_id[made.fragment_id], made),
        )

    def loses(self, plan: ColumnsPlan, base: Snapshot, newest: Snapshot, kept: Mapping[int, Kept]) -> str | None:
        """Nothing: what is missing can be computed."""
        return None

    def leave(self, files: Sequence[DataFile], *, committed: bool) -> Sequence[DataFile]:
        """All of them."""
        return files

    def _work(self, plan: ColumnsPlan, work: ColumnsWork) -> Callable[[ColumnsTask, World], ColumnsResult]:
        return work


class CheckpointedValues(ComputedValues):
    """Files that tasks compute here, one after the other, and that a checkpoint remembers until they are committed."""

    def __init__(self, describe: str, path: str | Path) -> None:
        super().__init__(describe, in_turn=True, stays_here="the checkpoint file is on this machine")
        self._path = path
        self._checkpoint: Checkpoint | None = None
        self._reused: set[str] = set()

    def leave(self, files: Sequence[DataFile], *, committed: bool) -> Sequence[DataFile]:
        """None if the job failed: the next run needs them. Files of an earlier run may be part of a version."""
        checkpoint, self._checkpoint = self._checkpoint, None
        if checkpoint is not None and committed:
            checkpoint.remove()
        elif checkpoint is not None:
            checkpoint.close()
        return [file for file in files if file.path not in self._reused] if committed else []

    def _work(self, plan: ColumnsPlan, work: ColumnsWork) -> Callable[[ColumnsTask, World], ColumnsResult]:
        self._checkpoint = self._checkpoint or Checkpoint(self._path, plan)
        return CheckpointedWork(work, self._checkpoint, plan.inputs, self._reused)


class StreamedValues(ComputedValues):
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

    def write(self, table: Table, plan: ColumnsPlan, done: Collection[int], record: Record) -> None:
        """The files of all fragments, the first time; in fragments that come later the columns are null."""
        stream, self._stream = self._stream, None
        if stream is not None:
            super().write(table, plan, done, record)
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
