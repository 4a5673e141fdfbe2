"""A stale writer of ours that commits past compactions and other writers, and what has to come out of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pytest
from tests.compactor import plan_compaction
from tests.concurrency.leftovers import unreferenced
from tests.property.row_model import Change, Model, assert_reads_as

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.jobs import attempt
from tablewright.optimize import Compaction
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

__all__ = ["WAYS", "Attempts", "Compact", "Planned", "Race", "counted", "judged", "newest"]

WAYS = ["pylance", "ours"]
"""Whose compaction."""


@dataclass(frozen=True)
class Compact:
    """Small fragments, and those with deleted rows, are written again."""

    way: str
    rows_per_file: int = 1000

    def run(self, library: Any, dataset: Any) -> None:
        asked = lance.dataset(dataset.uri) if self.way == "pylance" else newest_like(dataset)
        asked.optimize.compact_files(
            target_rows_per_fragment=self.rows_per_file, materialize_deletions_threshold=0.0, num_threads=1
        )

    def after(self, model: Model, version: int) -> Model:
        return model


@dataclass(frozen=True)
class Planned:
    """A compaction that is planned and has written its files; then another change is made; then it is committed.

    By ours, or by the plain one of the tests, which can be given the groups.
    """

    meanwhile: Change
    rows_per_file: int = 1000
    way: str = "ours"

    def run(self, library: Any, dataset: Any) -> None:
        if self.way == "plain":
            planned = plan_compaction(newest(dataset.uri), rows_per_file=self.rows_per_file)
            self.meanwhile.run(library, dataset)
            planned.commit()
            return
        options = {"target_rows_per_fragment": self.rows_per_file, "materialize_deletions_threshold": 0.0}
        ours = newest_like(dataset)
        results = [task.execute(ours) for task in Compaction.plan(ours, options).tasks]
        assert results, "there is something to compact"
        self.meanwhile.run(library, dataset)
        Compaction.commit(ours, results)

    def after(self, model: Model, version: int) -> Model:
        return self.meanwhile.after(model, version - 2)  # a version reserves fragment ids, the last one rewrites


def newest(uri: str) -> Any:
    """The newest version as plans take it."""
    return open_snapshot(World(open_store(uri)))


def newest_like(dataset: Any) -> tw.LanceDataset:
    """A handle of ours on the newest version, which works where ``dataset`` does if that is ours as well."""
    engine = table_of(dataset).engine if isinstance(dataset, tw.LanceDataset) else None
    return tw.dataset(dataset.uri, engine=engine)


class Attempts:
    """How often jobs planned, ran tasks and committed. ``meanwhile`` happens once, before the next commit."""

    def __init__(self) -> None:
        self.commits: list[int] = []
        self.conflicts: list[str] = []
        self.meanwhile: Callable[[], object] | None = None

    def forget(self) -> None:
        self.commits, self.conflicts = [], []


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Attempts]:
    """Count the attempts of jobs while this is open."""
    attempts = Attempts()
    made, commit, undo = attempt._Execution.made, attempt._Execution._commit, attempt._Execution._undo

    def counting(self: Any, number: int) -> Any:
        attempts.commits.append(number)
        return made(self, number)

    def committing(self: Any, made: Any, number: int) -> Any:
        action, attempts.meanwhile = attempts.meanwhile, None
        if action is not None:
            known = list(attempts.commits), list(attempts.conflicts)
            action()
            attempts.commits, attempts.conflicts = known
        return commit(self, made, number)

    def remembering(self: Any, made: Any, error: Exception) -> None:
        attempts.conflicts.append(str(error))
        undo(self, made, error)

    with monkeypatch.context() as patch:
        patch.setattr(attempt._Execution, "made", counting)
        patch.setattr(attempt._Execution, "_commit", committing)
        patch.setattr(attempt._Execution, "_undo", remembering)
        yield attempts


@dataclass
class Race:
    """A table, what a model says about it, and a handle of ours that stays at the version it was opened at.

    Writers of ours, and compactions of ours, work on ``engine``.
    """

    uri: str
    model: Model
    stable: bool
    attempts: Attempts
    engine: Any = None

    def __post_init__(self) -> None:
        self.stale = self.opened()
        self.stale_lance = lance.dataset(self.uri)

    def opened(self, version: int | None = None) -> tw.LanceDataset:
        """Ours on the newest version, or on an older one."""
        return tw.dataset(self.uri, version=version, engine=self.engine)

    def others(self, *changes: Change, library: Any = tw) -> Race:
        """Other writers commit first."""
        for change in changes:
            change.run(library, self.opened() if library is tw else library.dataset(self.uri))
            self.model = change.after(self.model, tw.dataset(self.uri).version)
        return self

    def ours(self, change: Change, attempts: int = 1) -> Any:
        """The stale writer commits."""
        self.attempts.forget()
        result = change.run(tw, self.stale)
        assert max(self.attempts.commits) + 1 == attempts, self.attempts.conflicts
        if hasattr(change, "count"):
            assert result == change.count(self.model)
        self.model = change.after(self.model, tw.dataset(self.uri).version)
        self.check()
        return result

    def check(self) -> None:
        """Both libraries read what the model says, and find nothing wrong. No file is left over."""
        judged(self.uri, self.model, stable=self.stable)


def judged(uri: str, model: Model, *, stable: bool) -> None:
    """Both libraries read what the model says, and find nothing wrong. No file is left over."""
    for library in (tw, lance):
        dataset = library.dataset(uri)
        dataset.validate()
        assert_reads_as(dataset, model, stable=stable)
        assert dataset.count_rows() == len(model.rows)
    left = unreferenced(tw.dataset(uri), _paths(Path(uri)))
    assert not left, f"files that no version uses: {sorted(left)}"


def _paths(root: Path) -> Sequence[str]:
    return [os.path.relpath(Path(folder) / name, root) for folder, _, names in os.walk(root) for name in names]
