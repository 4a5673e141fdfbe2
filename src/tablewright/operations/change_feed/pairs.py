"""What happened to the rows between two versions, from their metadata alone.

Fragments that are byte for byte in both are left out (:mod:`.touched`). Of the others rows are compared by id, and by
the version that they were last updated in (:mod:`.runs`): both are in the manifest. Deletion files are read, data is
not.

Tests: ``tests/unit/operations/change_feed/test_task.py``, ``tests/differential/test_change_feed.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tablewright.data.prefetch import spread
from tablewright.errors import InvalidRequest
from tablewright.format.fragment import Fragment, FragmentList
from tablewright.format.row_id_ranges import row_id_ranges
from tablewright.format.row_ids import VersionSequence, decode_versions
from tablewright.format.uniform_versions import uniform_versions
from tablewright.operations.change_feed.limits import DEFAULT_FEED_LIMITS, FeedLimits
from tablewright.operations.change_feed.runs import (
    DELETE,
    INSERT,
    UPDATE_POSTIMAGE,
    Numbers,
    Picks,
    Runs,
    compare,
    runs_of_fragment,
)
from tablewright.operations.change_feed.touched import Positions, touched
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["PairChanges", "compare_versions", "deleted_row_ids"]

_SILENT = np.uint64(2**64 - 1)
_NO_FRAGMENTS = FragmentList()


@dataclass(frozen=True, slots=True, kw_only=True)
class PairChanges:
    """What happened to the rows between two versions. ``before`` and ``after`` tell what is read of each.

    Fragments are known by their position in their version; ``totals`` tells how many the versions have.
    """

    commit_version: int
    before: Picks
    after: Picks
    totals: tuple[int, int]

    @property
    def counts(self) -> dict[str, int]:
        """How many rows were inserted, updated and deleted."""
        return {
            "inserted": self.after.rows(INSERT),
            "updated": self.after.rows(UPDATE_POSTIMAGE),
            "deleted": self.before.rows(DELETE),
        }

    def __str__(self) -> str:
        if not any(self.counts.values()):
            return f"version {self.commit_version}: no rows changed"
        rows = ", ".join(f"{count} {what}" for what, count in self.counts.items() if count)
        read = len(np.unique(self.before.fragments)), len(np.unique(self.after.fragments))
        return (
            f"version {self.commit_version}: {rows}; reads rows of {read[0]} of {self.totals[0]} fragments before it, "
            f"{read[1]} of {self.totals[1]} after"
        )


def compare_versions(before: Snapshot | None, after: Snapshot, limits: FeedLimits = DEFAULT_FEED_LIMITS) -> PairChanges:
    """What happened to the rows from one version to another. Reads deletion files of fragments that differ."""
    earlier = _NO_FRAGMENTS if before is None else before.fragments
    fragments = touched(earlier, after.fragments, _shared_fields(before, after))
    left = Runs.joined([]) if before is None else _runs(before, fragments.before, frozenset(), limits.few_fragments)
    old, new = compare(left, _runs(after, fragments.after, fragments.silent, limits.few_fragments))
    return PairChanges(
        commit_version=after.version,
        before=old,
        after=new,
        totals=(len(earlier), len(after.fragments)),
    )


def deleted_row_ids(before: Snapshot | None, after: Snapshot) -> Numbers:
    """The ids of the rows that are in the first version and not in the second, ascending."""
    return compare_versions(before, after).before.of_kind(DELETE).row_ids()


def _runs(snapshot: Snapshot, positions: Positions, silent: frozenset[int], few_fragments: int) -> Runs:
    """The runs of the fragments at ``positions``. Those of many plain fragments are read from their bytes at once."""
    plain = Runs.joined([])
    if len(positions) > few_fragments:
        plain, positions = _plain_runs(snapshot.fragments, positions, silent)

    def one(position: int) -> Runs:
        fragment = snapshot.fragments[position]
        ids = snapshot.row_ids(fragment)
        if ids is None:
            raise InvalidRequest(
                f"Fragment {fragment.id} in version {snapshot.version} has no row ids, so its rows can't be followed."
            )
        runs = runs_of_fragment(ids, _updated(fragment), snapshot.deletion_vector(fragment), position)
        return replace(runs, versions=np.full(len(runs.ids), _SILENT)) if position in silent else runs

    return Runs.joined([plain, *spread(one, positions.tolist())])


def _plain_runs(fragments: FragmentList, positions: Positions, silent: frozenset[int]) -> tuple[Runs, Positions]:
    """The runs of fragments with ranges of ids, one version and no deletions; and the positions of the others."""
    raw = [fragments.raw[position] for position in positions.tolist()]
    ranges = row_id_ranges(raw)
    versions, is_plain = uniform_versions(raw)
    is_plain = is_plain & ~fragments.facts.has_deletion[positions]
    is_plain[ranges.others] = False
    is_plain[np.isin(positions, list(silent))] = False
    kept = is_plain[ranges.rows]
    rows, firsts = ranges.rows[kept], ranges.firsts[kept]
    counts = (ranges.lasts[kept] - firsts).astype(np.int64) + 1
    runs = Runs(firsts, counts, versions[rows], positions[rows], ranges.offsets[kept])
    return runs, positions[~is_plain]


def _shared_fields(before: Snapshot | None, after: Snapshot) -> frozenset[int]:
    """The ids of fields that both versions have, under one name."""
    names = {} if before is None else {node.id: node.name for node in before.schema.fields}
    return frozenset(node.id for node in after.schema.fields if names.get(node.id) == node.name)


def _updated(fragment: Fragment) -> VersionSequence:
    rows = fragment.physical_rows
    if fragment.last_updated_at is None:
        return VersionSequence.constant(rows, 1)
    return decode_versions(fragment.last_updated_at, f"fragment {fragment.id}", rows)
