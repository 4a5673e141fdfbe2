"""Small files of a distributed write are joined before the commit (:mod:`tablewright.operations.small_files`).

Few of them are joined by this process, many by tasks of the engine that wrote them. If it fails, all files of the
write are removed: nothing is committed yet.

Tests: ``tests/unit/operations/test_small_files.py``, ``tests/concurrency/test_faults.py``,
``tests/spark/test_small_files.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from tablewright.engine.base import Engine
from tablewright.engine.local import LocalEngine
from tablewright.format.fragment import Fragment
from tablewright.format.naming import data_paths
from tablewright.operations.small_files import plan_joins, run_join
from tablewright.operations.write import WritePlan
from tablewright.storage.subtree import delete_files
from tablewright.storage.uncommitted import removed_on_failure
from tablewright.world import World

__all__ = ["HERE_MAX", "join_small_files"]

HERE_MAX = 2
"""So many joined files are written by this process: a Spark job would take longer to start."""


def join_small_files(plan: WritePlan, fragments: Sequence[Fragment], world: World, engine: Engine) -> list[Fragment]:
    """The fragments of a write in their order, small ones joined."""
    tasks = plan_joins(plan, fragments)
    joins = [task for task in tasks if task.joins]
    if not joins:
        return list(fragments)
    where = LocalEngine() if len(joins) <= HERE_MAX else engine
    describe = f"Joining small files of {plan.uri}"
    with removed_on_failure(world.store) as files:
        files.add(data_paths(fragments))
        results = iter(
            where.map(run_join, joins, world, describe=describe, keep=lambda made: files.add(data_paths(made)))
        )
        files.release()
    # What can't be removed is left to cleanup.
    delete_files(world.store, data_paths([fragment for task in joins for fragment in task.fragments]))
    return [fragment for task in tasks for fragment in (next(results) if task.joins else task.fragments)]
