"""An update by the functions of ``operations``, with limits of the test's own."""

from __future__ import annotations

from typing import Any

import tablewright as tw
from tablewright.operations.rewrite.limits import RewriteLimits
from tablewright.operations.update import (
    UpdateOptions,
    decide_update,
    finish_update,
    found_rows,
    plan_update,
    run_update_task,
    update_tasks,
)
from tablewright.reading.match import run_match_task
from tablewright.transaction.commit import commit


def update_rows(dataset: Any, updates: dict[str, str], where: str, limits: RewriteLimits) -> tw.LanceDataset:
    """Move the rows that match; the dataset at its new version."""
    snapshot, world = dataset._snapshot, dataset._world
    options = UpdateOptions(write_mode="rewrite_rows", limits=limits)
    plan = plan_update(snapshot, updates, where, options, world.clock.now_ns())
    found = found_rows(plan, [run_match_task(task, world) for task in plan.search.scan.tasks])
    tasks = update_tasks(plan, found, decide_update(plan, found))
    transaction, affected = finish_update(plan, [run_update_task(task, world) for task in tasks], world.ids.uuid())
    commit(world, transaction, base=snapshot, affected=affected)
    return tw.dataset(dataset.uri)
