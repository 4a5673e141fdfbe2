"""Deleting files as tasks of an engine: in few requests where the store can, with nothing followed that is a link.

Tests: ``tests/unit/operations/cleanup/test_delete.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tablewright.storage.subtree import delete_files
from tablewright.world import World

__all__ = ["DeleteResult", "DeleteTask", "delete_paced", "plan_deletes", "run_delete"]

_FILES_PER_TASK = 1000


@dataclass(frozen=True, slots=True)
class DeleteTask:
    """Files to delete."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeleteResult:
    """The files that could not be deleted, with the text of the error."""

    failed: dict[str, str]


def plan_deletes(paths: Sequence[str], files_per_task: int = _FILES_PER_TASK) -> list[DeleteTask]:
    """Tasks that delete these files."""
    starts = range(0, len(paths), files_per_task)
    return [DeleteTask(tuple(paths[start : start + files_per_task])) for start in starts]


def run_delete(task: DeleteTask, world: World) -> DeleteResult:
    """On a worker: delete some files. Run twice, it finds them gone."""
    failed = delete_files(world.store, task.paths)
    return DeleteResult({path: str(error) for path, error in failed.items()})


def delete_paced(paths: Sequence[str], world: World, per_second: int) -> DeleteResult:
    """Delete files one after the other, at most ``per_second``."""
    failed: dict[str, str] = {}
    for task in plan_deletes(paths, min(per_second, _FILES_PER_TASK)):
        began = world.clock.monotonic()
        failed |= run_delete(task, world).failed
        wait = len(task.paths) / per_second - (world.clock.monotonic() - began)
        if wait > 0 and task.paths[-1] != paths[-1]:
            world.clock.sleep(wait)
    return DeleteResult(failed)
