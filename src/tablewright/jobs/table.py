"""A table as jobs see it: one version, and where the work on it runs.

Tests: ``tests/unit/jobs/test_table.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tablewright.engine.choose import Choice, choose_engine
from tablewright.snapshot.snapshot import Snapshot
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
    >>> table.snapshot.version, table.choose(10**12).why
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
        return replace(self, snapshot=snapshot)

    def choose(self, estimated_bytes: int, *, stays_here: str | None = None, tasks: int | None = None) -> Choice:
        """The engine for work that reads and writes this many bytes, in so many tasks if that is known.

        ``stays_here`` is the reason why the work can't be sent to another process.
        """
        location, spark = self.world.store.location, self.spark
        return choose_engine(
            estimated_bytes, self.engine, spark=spark, location=location, stays_here=stays_here, tasks=tasks
        )
