"""After other writers: has a row come meanwhile that has one of our keys? Then the merge has to look again.

What we found out about a key holds as long as no row with it comes or changes. Two manifests tell which fragments are
new or are not what they were; of those, the ones that are new, or whose key or condition columns were rewritten, are
matched against our keys. A row that we found, and for whose sake we insert nothing, has to be there still. Rows that
both writers touched are the business of the rebase.

A rewrite (compaction) makes new fragments of old rows. The version before it is checked, the rows that we found are
followed to their new addresses, and the version that it made is what is compared with from then on.

Tests: ``tests/concurrency/test_merge_meanwhile.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tablewright.errors import CommitConflict
from tablewright.format.fragment import Fragment
from tablewright.format.row_set import RowSet
from tablewright.operations.merge_insert.keys.key_table import KeyTable
from tablewright.operations.merge_insert.match.pairing import PairingTask, find_pairs
from tablewright.operations.merge_insert.match.strategy import Strategy
from tablewright.operations.merge_insert.plan import MergePlan
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.operations.merge_insert.source.shared import source_keys
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.crossing import Crossing
from tablewright.transaction.drift import Drift, drifts

__all__ = ["KeysStayedBehind", "Recheck", "new_key_hits"]


@dataclass(frozen=True, slots=True, eq=False)
class Recheck:
    """Asks before a commit on a newer version than ``base`` whether our keys are still what they were.

    ``keys`` is ``None`` if they did not fit into memory together: then they are read from the source again. ``found``
    are the rows, by fragment id, that have to be there still.
    """

    base: Snapshot
    plan: MergePlan
    strategy: Strategy
    source: KeptSource
    keys: KeyTable | None
    found: Mapping[int, RowSet]

    def __call__(self, newest: Snapshot) -> None:
        """Raise :class:`CommitConflict` if a row with one of our keys came, changed or went meanwhile."""
        if not self.plan.clauses.depends_on_keys:
            return
        if any(_is_gone(newest, drift, self.found[id]) for id, drift in self._drifts(newest)):
            raise _conflict(newest, "rows with keys of this merge went meanwhile")
        if self.keys is None and not self.source.num_rows:
            raise _conflict(newest, "the keys of this merge are no longer here to be compared with what is new")
        for rows in self.strategy.ranges:
            keys = self.keys or KeyTable(source_keys(self.source, self.plan.key, rows), rows[0])
            if new_key_hits(self.base, newest, keys, self.plan):
                raise _conflict(newest, "rows that came or changed meanwhile have keys of this merge")

    def past(self, crossing: Crossing) -> Recheck:
        """From the version on that a rewrite made: it brought no rows, and those that we found are somewhere else.

        Precondition: the version before it was checked, so all its rows are known.
        """
        if not self.plan.clauses.depends_on_keys:
            return replace(self, base=crossing.after)
        crossing.check(self.found)
        return replace(self, base=crossing.after, found=crossing.forward(self.found))

    def _drifts(self, newest: Snapshot) -> Iterable[tuple[int, Drift]]:
        return drifts(self.found, self.base.fragments, newest.fragments).items()

    def __reduce__(self) -> tuple[Any, ...]:
        return KeysStayedBehind, ()


def _is_gone(newest: Snapshot, drift: Drift, rows: RowSet) -> bool:
    if drift.after is None:
        return True
    deleted = newest.deletion_vector(drift.after)
    return deleted is not None and not deleted.isdisjoint(rows)


@dataclass(frozen=True, slots=True)
class KeysStayedBehind:
    """What becomes of a :class:`Recheck` in another process: without the keys, nothing newer can be passed."""

    def __call__(self, newest: Snapshot) -> None:
        """Raise :class:`CommitConflict`."""
        raise _conflict(newest, "the keys of this merge did not travel with its transaction")


def _conflict(newest: Snapshot, reason: str) -> CommitConflict:
    return CommitConflict("Update", "unknown", newest.version, reason=reason)


def new_key_hits(base: Snapshot, newest: Snapshot, keys: KeyTable, plan: MergePlan) -> bool:
    """Whether a fragment that is not what it was in ``base`` has a row with one of the keys."""
    if any(not newest.schema.has(id) for id in plan.key.ids):
        return True
    fragments = tuple(_to_look_at(base, newest, plan))
    if not fragments:
        return False
    scan = replace(
        plan.scan,
        version=newest.version,
        base_paths=newest.manifest.base_paths,
        fragments=fragments,
        first_rows=(0,) * len(fragments),
    )
    found = find_pairs(PairingTask(scan=scan, key=plan.key, keys=keys), newest, newest.world).found
    return any(len(each.pairs) for each in found)


def _to_look_at(base: Snapshot, newest: Snapshot, plan: MergePlan) -> Iterator[Fragment]:
    known = frozenset(base.fragments.raw)
    watched, fields = plan.reads, base.schema.ids
    for place, raw in enumerate(newest.fragments.raw):
        if raw in known:
            continue
        fragment = newest.fragments[place]
        if not base.fragments.has(fragment.id) or (
            (rewritten := Drift(base.fragments.by_id(fragment.id), fragment, fields).rewritten)
            and (watched is None or rewritten & watched)
        ):
            yield fragment
