"""What is pinned to one version of a table: the part of ``LanceDataset`` that its verbs work with.

Verbs take something pinned, run a job on its table, and move it to the version that the job made. So they need not know
the class ``LanceDataset``, which is made of them.

Tests: ``tests/unit/api/test_pinned.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from tablewright.api.locate import open_world
from tablewright.jobs.attempt import Job, run_job
from tablewright.jobs.report import Report
from tablewright.jobs.table import Table
from tablewright.snapshot.snapshot import Snapshot
from tablewright.world import World

__all__ = ["Pinned", "move", "place_of", "run_on", "scan_defaults", "table_of"]

R = TypeVar("R")


class Pinned:
    """An object that shows one version of a table. Changes through it move it to the version that they made."""

    _table: Table
    _default_scan_options: dict[str, Any]

    def _pin(self, table: Table) -> None:
        """Show this version from now on."""
        self._table = table


def table_of(pinned: Pinned) -> Table:
    """The table at the version that is shown."""
    return pinned._table


def place_of(
    target: str | Path | World | Pinned, storage_options: Mapping[str, str] | None = None
) -> tuple[Table | None, World]:
    """The table that is pinned, and its world; without one, the world at an address."""
    if isinstance(target, Pinned):
        return target._table, target._table.world
    return None, open_world(target, storage_options)


def scan_defaults(pinned: Pinned) -> Mapping[str, Any]:
    """The scan options that hold where a call gives no others."""
    return pinned._default_scan_options


def move(pinned: Pinned, snapshot: Snapshot) -> None:
    """Show another version of the same table."""
    pinned._pin(pinned._table.at(snapshot))


def run_on(pinned: Pinned, job: Job[Any, Any, R], report: Report | None = None, *, plan: Any = None) -> R:
    """Run a job on the table, move to the version that it made, and return its result.

    ``plan`` is the one for the version that is shown, if it was made before.
    """
    done = run_job(job, pinned._table, report, plan=plan)
    move(pinned, done.snapshot)
    return done.result
