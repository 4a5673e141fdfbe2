"""A table as jobs see it: one version, and where the work on it runs.

Tests: ``tests/unit/jobs/test_table.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tablewright.engine.choose import Choice, choose_engine
from tablewright.engine.costs import Workload
from tablewright.snapshot.snapshot import Snapshot
from tablewright.values import evolve
from tablewright.world import World

__all__ = ["Table"]


@dataclass(frozen=True, slots=True)
class Table:
    """One version of a table. ``engine`` and ``spark`` are the caller's wishes, as ``choose_engine`` takes them.

    >>> from tablewright.snapshot.snapshot import open_snapshot
    >>> import tablewright as tw
    >>> from tablewright.storage import open_store
    >>> _ = tw.write_dataset({"id": [1]}, "memory://table-example")
    >>> table = Table(open_snapshot(World(store=open_store("memory://table-example"))))
    >>> table.snapshot.version, table.choose(Workload(bytes_read=10**12)).why
    (1, 'the table lives in this process')
    """

    snapshot: Snapshot
    engine: Any = None
    spark: Any = None

    @property
    def world(self) -> World:
        """The world that the version was read from."""
        return self.snapshot.world

    def at(self, snapshot: Snapshot) -> Table:
        """The same table at another version."""
        return evolve(self, snapshot=snapshot)

    def choose(self, work: Workload, *, stays_here: str | None = None) -> Choice:
        """The engine for some work. ``stays_here`` is the reason why it can't be sent to another process."""
        location = self.world.store.location
        return choose_engine(work, self.engine, spark=self.spark, location=location, stays_here=stays_here)
