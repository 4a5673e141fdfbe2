"""What a commit asks before it is put on a newer version than the one it was planned on.

A recheck is any callable that takes the newer version and raises :class:`~tablewright.errors.CommitConflict` if the
operation has to run again because of what is new there. One that :class:`FollowsRewrites` is asked about the version
before each rewrite, and followed through it: so a rewrite, which changes no row, does not look like a change to it.

Tests: ``tests/unit/transaction/test_isolation.py``, ``tests/concurrency/test_past_compaction.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias, runtime_checkable

from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.crossing import Crossing

__all__ = ["FollowsRewrites", "Recheck", "past_rewrite"]

Recheck: TypeAlias = Callable[[Snapshot], None]


@runtime_checkable
class FollowsRewrites(Protocol):
    """A recheck that can be moved past a rewrite."""

    def __call__(self, newest: Snapshot) -> None: ...

    def past(self, crossing: Crossing) -> Recheck:
        """The same recheck from the version on that the rewrite made; the version before it was checked."""


def past_rewrite(recheck: Recheck, crossing: Crossing) -> Recheck:
    """The recheck after a rewrite; one that does not follow rewrites stays as it is."""
    return recheck.past(crossing) if isinstance(recheck, FollowsRewrites) else recheck
