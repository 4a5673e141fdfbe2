"""A single commit of an operation that needs no files, planned on the table's own version.

The commit passes what others did if the conflict table says so; otherwise the conflict is the caller's.

Tests: ``tests/unit/jobs/test_commit.py``.
"""

from __future__ import annotations

from tablewright.format.transaction import Operation, Restore, Transaction
from tablewright.jobs.table import Table
from tablewright.snapshot.snapshot import Snapshot
from tablewright.snapshot.standing import open_newest
from tablewright.transaction.commit import commit

__all__ = ["commit_operation", "restore"]


def commit_operation(table: Table, operation: Operation) -> Snapshot:
    """Commit an operation that was planned on the table's own version."""
    world, base = table.world, table.snapshot
    transaction = Transaction(read_version=base.version, uuid=str(world.ids.uuid()), operation=operation)
    return commit(world, transaction, base=base).snapshot


def restore(table: Table) -> Snapshot:
    """Make the table's version the newest again, as a new version."""
    latest = open_newest(table.snapshot)  # the number may belong to a version of another table by now
    return commit_operation(table.at(latest), Restore(version=table.snapshot.version))
