"""Which versions a call has committed: noted where they are committed, read where the call was made.

Automatic cleanup runs after a call, and depends on the numbers of the versions that the call made. A call may commit
several times, in several layers below, so these tell nothing upwards; they are noted here, per thread.

Tests: ``tests/unit/transaction/test_recorded.py``.
"""

from __future__ import annotations

from contextvars import ContextVar

from tablewright.snapshot.snapshot import Snapshot

__all__ = ["record", "recorded_commits"]

_noted: ContextVar[list[Snapshot] | None] = ContextVar("_noted", default=None)


class recorded_commits:
    """The versions that are committed inside the block. A block inside another one gets none: the outer one has them.

    >>> with recorded_commits() as made:
    ...     pass
    >>> made
    []
    """

    __slots__ = ("_token",)

    def __enter__(self) -> list[Snapshot]:
        made: list[Snapshot] = []
        self._token = _noted.set(made) if _noted.get() is None else None
        return made

    def __exit__(self, *error: object) -> None:
        if self._token is not None:
            _noted.reset(self._token)


def record(snapshot: Snapshot) -> None:
    """Note a version that was committed, if anything asks for it."""
    noted = _noted.get()
    if noted is not None:
        noted.append(snapshot)
