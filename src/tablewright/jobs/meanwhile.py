"""What the versions since a group was read say: which fragments other rewrites took, which files they brought.

Results of a compaction may be committed again after a lost reply, by the same caller or by another process. Files of
such results belong to the table then, and must not be removed together with the group.

Tests: ``tests/unit/jobs/test_meanwhile.py``, ``tests/concurrency/test_compaction_meanwhile.py``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tablewright.errors import CommitConflict, VersionNotFound
from tablewright.format.naming import data_paths
from tablewright.format.transaction import Overwrite, Restore, Rewrite
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.snapshot.standing import open_newest
from tablewright.transaction.history import operations_between
from tablewright.transaction.touched import removed_fragments

__all__ = ["Meanwhile", "look_back", "newest_of_table"]


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """``taken`` are fragments that rewrites replaced, ``old_files`` their data files, ``files`` those that came.

    They are incomplete unless ``complete``: then some version was cleaned up, or does not say what it changed.
    ``replaced`` is the conflict with a version that replaced the rows of the whole table.
    """

    taken: frozenset[int] = frozenset()
    old_files: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    complete: bool = True
    replaced: CommitConflict | None = None

    @property
    def rewritten(self) -> frozenset[int] | None:
        """The fragments that rewrites replaced; ``None`` if that is not known of all."""
        return self.taken if self.complete else None

    def unused(self, paths: Collection[str]) -> set[str]:
        """Those of some files that are certainly in no version."""
        return set(paths) - self.files if self.complete else set()


def look_back(since: int, newest: Snapshot) -> Meanwhile:
    """What was committed after the version ``since``, up to ``newest``."""
    operations = operations_between(since, newest)
    rewrites = [operation for operation in operations.values() if isinstance(operation, Rewrite)]
    groups = [group for rewrite in rewrites for group in rewrite.groups]
    replaced = next(((v, op) for v, op in operations.items() if isinstance(op, Overwrite | Restore)), None)
    return Meanwhile(
        taken=frozenset().union(*map(removed_fragments, rewrites)),
        old_files=frozenset(data_paths(fragment for group in groups for fragment in group.old_fragments)),
        files=frozenset(data_paths(fragment for group in groups for fragment in group.new_fragments)),
        complete=None not in operations.values(),
        replaced=None if replaced is None else _conflict(replaced[0], type(replaced[1]).__name__),
    )


def _conflict(version: int, theirs: str) -> CommitConflict:
    return CommitConflict("Rewrite", theirs, version, retryable=False, reason="the rows are others now")


def newest_of_table(known: Snapshot) -> Snapshot:
    """The latest version of the table that ``known`` is a version of, also where all its files were rewritten.

    Then ``known`` may have been cleaned up, and no file is in both; but the rewrite says which files it replaced, and
    their names are random.
    """
    try:
        return open_newest(known)
    except VersionNotFound:
        newest = open_snapshot(known.world)
        if newest.branch == known.branch and not look_back(known.version, newest).old_files.isdisjoint(
            data_paths(known.fragments)
        ):
            return newest
        raise
