"""What the log says of commits: the version that was made, past whom, and races that were lost.

Tests: tests/unit/test_log.py
"""

from __future__ import annotations

from tablewright.errors import CommitConflict
from tablewright.format.transaction import Transaction
from tablewright.log import Log
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.passed import Passed

__all__ = ["log_commit", "log_conflict", "log_lost_race"]

_log = Log("commit")


def log_commit(
    snapshot: Snapshot, transaction: Transaction, base: Snapshot | None, attempts: int, seconds: float, passed: Passed
) -> None:
    """A version was made; before that, what the transaction was rebased past."""
    table, operation, version = snapshot.location.uri, type(transaction.operation).__name__, snapshot.version
    if base is not None and version > base.version + 1:
        text = "rebased %(operation)s on %(table)s from version %(base)d onto %(onto)d"
        facts = {"operation": operation, "table": table, "base": base.version, "onto": version - 1}
        _log.info("rebase", f"{text}; %(passed)s" if passed else text, **facts, passed=passed or None)
    _log.info(
        "commit",
        "committed version %(version)d of %(table)s: %(operation)s, attempts=%(attempts)d, seconds=%(seconds).3f",
        version=version,
        table=table,
        operation=operation,
        attempts=attempts,
        seconds=seconds,
    )


def log_lost_race(table: str, transaction: Transaction, version: int, attempts: int) -> None:
    """Another writer took the name of the version that we wrote."""
    _log.info(
        "race",
        "version %(version)d of %(table)s is another writer's: %(operation)s is put after it, attempts=%(attempts)d",
        version=version,
        table=table,
        operation=type(transaction.operation).__name__,
        attempts=attempts,
    )


def log_conflict(table: str, conflict: CommitConflict, attempt: int, then: str) -> None:
    """A conflict that the commit can't solve, and what is done next."""
    text = "attempt %(attempt)d of %(operation)s on %(table)s conflicts with %(theirs)s, version %(version)d"
    _log.info(
        "conflict",
        f"{text}: %(reason)s; %(then)s" if conflict.reason else f"{text}; %(then)s",
        attempt=attempt + 1,
        table=table,
        operation=conflict.ours,
        theirs=conflict.theirs,
        version=conflict.version,
        reason=conflict.reason,
        then=then,
    )
