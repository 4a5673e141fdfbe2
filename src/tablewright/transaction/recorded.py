"""Which versions a call has committed: noted where they are committed, read where the call was made.

Automatic cleanup runs after a call, and depends on the numbers of the versions that the call made. A call may commit
several times, in several layers below, so these tell nothing upwards; they are noted here, per thread.

Tests: ``tests/unit/transaction/test_recorded.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tablewright.snapshot.snapshot import Snapshot

__all__ = ["record", "recorded_commits"]

_noted: ContextVar[list[Snapshot] | None] = ContextVar("_noted", default=None)


@contextmanager
def recorded_commits() -> Iterator[list[Snapshot]]:
    """The versions that are committed inside the block. A block inside another one gets none: the outer one has them.

    >>> with recorded_commits() as made:
    ...     pass
    >>> made
    []
    """
    if _noted.get() is not None:
        yield []
        return
    made: list[Snapshot] = []
    token = _noted.set(made)
    try:
        yield made
    finally:
        _noted.reset(token)


def record(snapshot: Snapshot) -> None:
    """Note a version that was committed, if anything asks for it."""
    noted = _noted.get()
    if noted is not None:
        noted.append(snapshot)
