"""Isolation levels of changes: snapshot isolation by default, serializable on request.

*Snapshot*: an operation reads one version, and conflicts with others where both write one row, or where others rewrote
a column that its rows were computed from. What others *insert* meanwhile does not concern it, so two operations may
each miss the other's rows (write skew): a delete of all expired rows leaves one that was inserted after it looked.

*Serializable*: the operation commits only if the rows and the schema are still those that it read; otherwise it runs
again on the newest version. The result is that of some serial order of all operations that ask for it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from tablewright.errors import CommitConflict, InvalidRequest
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.crossing import Crossing
from tablewright.transaction.recheck import Recheck, past_rewrite

__all__ = ["ISOLATIONS", "Both", "Unchanged", "check_isolation", "unchanged_if"]

ISOLATIONS = ("snapshot", "serializable")


def check_isolation(level: object) -> str:
    """A level by its name.

    >>> check_isolation("serializable")
    'serializable'
    """
    if not isinstance(level, str) or level not in ISOLATIONS:
        raise InvalidRequest(f"isolation must be one of {', '.join(ISOLATIONS)}, not {level!r}.")
    return level


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A recheck for the commit loop: fragments and schema have to be those of ``version``. Picklable.

    Settings, indices and other metadata may have changed.
    """

    operation: str
    version: int
    digest: bytes

    @classmethod
    def since(cls, base: Snapshot, operation: str) -> Unchanged:
        """For an operation that read ``base``."""
        return cls(operation, base.version, _digest(base))

    def __call__(self, newest: Snapshot) -> None:
        """Raise :class:`CommitConflict` if rows or columns changed."""
        if _digest(newest) != self.digest:
            reason = f"rows or columns changed since version {self.version}, and isolation is serializable"
            raise CommitConflict(self.operation, "unknown", newest.version, reason=reason)

    def past(self, crossing: Crossing) -> Unchanged:
        """A rewrite changes no row: what it made is what has to stay."""
        return replace(self, digest=_digest(crossing.after))


@dataclass(frozen=True, slots=True)
class Both:
    """Two rechecks, one after the other."""

    first: Recheck
    second: Recheck

    def __call__(self, newest: Snapshot) -> None:
        """Raise what the first of them raises."""
        self.first(newest)
        self.second(newest)

    def past(self, crossing: Crossing) -> Both:
        """Both of them after a rewrite."""
        return Both(past_rewrite(self.first, crossing), past_rewrite(self.second, crossing))


def unchanged_if(isolation: str, base: Snapshot, operation: str) -> Unchanged | None:
    """The recheck that an isolation level asks for, for an operation that read ``base``."""
    return Unchanged.since(base, operation) if isolation == "serializable" else None


def _digest(snapshot: Snapshot) -> bytes:
    digest = hashlib.sha256()
    for raw in snapshot.fragments.raw:
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    for field in snapshot.schema.fields:
        digest.update(repr((field.id, field.parent_id, field.name, field.logical_type, field.nullable)).encode())
    return digest.digest()
