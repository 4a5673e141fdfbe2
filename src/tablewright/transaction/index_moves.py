"""A new index whose table was compacted while it was built: what it covers now, and where its rows are.

The index was built on the fragments of ``base``. Versions since are followed one by one, as a commit would pass them:

- a rewrite of fragments that it covers: where it names rows by address, its entries have to be translated through the
  groups (:class:`~tablewright.indices.translation.Translation`), and coverage moves with them. Groups that it covers in
  part leave its coverage. Where it names rows by row id, coverage alone moves;
- columns that were rewritten in place leave its coverage;
- a drop or cast of its column, another index of its name, or a version that does not say what it changed: the index has
  to be built again (:class:`~tablewright.transaction.crossing.NotFollowed` says why).

A rewrite is checked before it is trusted: rows of both sides are compared.

Tests: ``tests/concurrency/test_compaction_indices.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyroaring import FrozenBitMap

from tablewright.format.address_map import AddressMap
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import stores_row_ids
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import CreateIndex, Rewrite
from tablewright.indices.translation import Translation
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.transaction.conflicts import Outcome, judge
from tablewright.transaction.crossing import Crossing, NotFollowed, missing_files_end_it
from tablewright.transaction.history import operations_between
from tablewright.transaction.rebase import past

__all__ = ["MovedIndex", "moved_index"]


@dataclass(frozen=True, slots=True)
class MovedIndex:
    """``index`` with the coverage that it has on the newest version, once its files went through ``steps``.

    No steps: its files stay as they are.
    """

    index: IndexMetadata
    steps: Translation


def moved_index(
    base: Snapshot, newest: Snapshot, index: IndexMetadata, removed: Iterable[IndexMetadata] = ()
) -> MovedIndex:
    """An index that was built on ``base``, for ``newest``. ``removed`` are those that it replaces.

    :class:`NotFollowed` if it has to be built again.
    """
    steps: list[tuple[AddressMap, ...]] = []
    gone = tuple(removed)
    for version, theirs in operations_between(base.version, newest).items():
        if theirs is None:
            raise NotFollowed(f"version {version} was cleaned up, or does not say what it changed")
        ours = CreateIndex(new_indices=(index,), removed_indices=gone)
        verdict = judge(ours, theirs)
        if verdict.outcome in (Outcome.RETRY, Outcome.INCOMPATIBLE):
            raise NotFollowed(verdict.reason or f"version {version} made it out of date")
        stable = base.manifest.stable_row_ids
        if isinstance(theirs, Rewrite) and not (stable and stores_row_ids(index)):
            groups = _groups(newest, version, theirs, index)
            steps += [groups] if groups else []
            index = index.with_coverage(Translation.of([groups]).coverage(index.coverage or ()) - _old(theirs))
        else:
            (index,) = _new_indices(past(ours, theirs, stable_row_ids=stable))
    return MovedIndex(index, Translation(tuple(steps)))


def _old(rewrite: Rewrite) -> FrozenBitMap:
    return FrozenBitMap(fragment.id for group in rewrite.groups for fragment in group.old_fragments)


def _new_indices(operation: object) -> tuple[IndexMetadata, ...]:
    assert isinstance(operation, CreateIndex)
    return operation.new_indices


def _groups(newest: Snapshot, version: int, rewrite: Rewrite, index: IndexMetadata) -> tuple[AddressMap, ...]:
    """The groups that the index covers completely, compared with the table."""
    covered = index.coverage or FrozenBitMap()
    whole = [group for group in rewrite.groups if FrozenBitMap(f.id for f in group.old_fragments) <= covered]
    ids = [fragment.id for group in whole for fragment in group.old_fragments]
    if not ids:
        return ()
    with missing_files_end_it():
        before, after = open_snapshot(newest.world, version - 1), open_snapshot(newest.world, version)
        crossing = Crossing(before, after, rewrite)
        groups = tuple(group.map for group in crossing.groups_of(ids))
        there = [id for id in ids if before.fragments.has(id)]
        crossing.check(crossing.live({id: RowSet.full(before.fragments.by_id(id).physical_rows) for id in there}))
    return groups
