"""What becomes of every row, once the matches are known. Pure.

Each fragment with updated rows is decided alone, by bytes (:mod:`tablewright.operations.rewrite.costs`): its rows move,
or its columns change in place. Rows that are deleted are hidden along with it. Source rows that met nothing are
inserted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tablewright.format.fragment import Fragment
from tablewright.format.row_set import RowSet
from tablewright.operations.merge_insert.changes import Changes
from tablewright.operations.merge_insert.clauses import InvalidMerge
from tablewright.operations.merge_insert.keys.key_table import Positions
from tablewright.operations.merge_insert.match.pairs import FragmentMatches, Pairs
from tablewright.operations.merge_insert.plan import MergePlan
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.operations.rewrite.costs import REWRITE_ROWS, Decision, FragmentChoice, decide
from tablewright.operations.rewrite.lineage_bytes import LineageBytes, lineage_bytes

__all__ = ["Actions", "changed_in", "check_no_match", "decide_merge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Actions:
    """Updated rows and deleted rows by fragment id, the source rows that are inserted, and rows or columns.

    ``found`` are rows because of which nothing is inserted, and which stay as they are.
    """

    updated: Mapping[int, Pairs]
    deleted: Mapping[int, RowSet]
    found: Mapping[int, RowSet]
    inserted: Positions
    decision: Decision

    @property
    def num_updated_rows(self) -> int:
        """How many rows get new values."""
        return sum(map(len, self.updated.values()))

    @property
    def num_deleted_rows(self) -> int:
        """How many rows go."""
        return sum(map(len, self.deleted.values()))

    @property
    def num_inserted_rows(self) -> int:
        """How many rows come."""
        return len(self.inserted)

    @property
    def touched(self) -> list[int]:
        """The fragments that change."""
        return sorted(self.updated.keys() | self.deleted.keys())


def check_no_match(plan: MergePlan, matches: Mapping[int, FragmentMatches], source: KeptSource) -> None:
    """``when_matched_fail``: the first match is an error."""
    found = next((each.pairs for each in matches.values() if len(each.pairs)), None)
    if plan.clauses.when_matched == "fail" and found is not None:
        key = plan.key.described(source.take(found.positions[:1], plan.key.columns))
        raise InvalidMerge(f"Merge insert failed: found matching row with key values: {key}")


def decide_merge(
    plan: MergePlan, matches: Mapping[int, FragmentMatches], source_rows: int, dropped: Positions
) -> Actions:
    """Decide what is updated, deleted and inserted, and how it is written. ``dropped`` source rows do not count.

    Inserted are all source rows that met nothing; where clauses have conditions, some of them.
    """
    fates = {id: _fate(plan, each) for id, each in matches.items()}
    updated = {id: fate.updated for id, fate in fates.items() if len(fate.updated)}
    inserts = plan.clauses.inserts
    return Actions(
        updated=updated,
        deleted={id: fate.deleted for id, fate in fates.items() if len(fate.deleted)},
        found={id: fate.found for id, fate in fates.items() if inserts and len(fate.found)},
        inserted=_unmet(matches, source_rows, dropped) if inserts else np.zeros(0, np.int64),
        decision=_decision(plan, updated),
    )


@dataclass(frozen=True, slots=True)
class _Fate:
    """What becomes of the rows of a fragment; those that are ``found`` stay as they are."""

    updated: Pairs
    deleted: RowSet
    found: RowSet


def _fate(plan: MergePlan, matches: FragmentMatches) -> _Fate:
    if plan.changes is not None:
        return _ordered_fate(plan.changes, matches)
    updates, deletes = plan.clauses.updates, plan.clauses.when_matched == "delete"
    deleted = RowSet() if matches.unmatched is None else matches.unmatched[0]
    return _Fate(
        matches.pairs if updates else Pairs(),
        RowSet.of(matches.pairs.offsets) | deleted if deletes else deleted,
        RowSet.of((matches.passed_over if updates else matches.pairs).offsets),
    )


def _ordered_fate(changes: Changes, matches: FragmentMatches) -> _Fate:
    if not changes.matched:  # no clause is about rows that match
        taken, found = Pairs(), Pairs.joined((matches.pairs, matches.passed_over))
    else:
        taken, found = matches.pairs, matches.passed_over
    updates = np.array([change is not None for change in changes.rows], np.bool_)
    is_updated = updates[taken.numbers]
    deleted, parts = RowSet.of(taken.offsets[~is_updated]), [_numbered(taken.where(is_updated))]
    for number, rows in enumerate(matches.unmatched or (), changes.matched):
        if updates[number]:
            parts.append(_unmatched_pairs(rows, number))
        else:
            deleted |= rows
    return _Fate(Pairs.joined(parts), deleted, RowSet.of(found.offsets))


def _numbered(pairs: Pairs) -> Pairs:
    return Pairs(pairs.offsets, pairs.positions, pairs.numbers)


def _unmatched_pairs(rows: RowSet, number: int) -> Pairs:
    offsets = rows.to_numpy().astype(np.uint32)
    count = len(offsets)
    return Pairs(offsets, np.full(count, -1, np.int64), np.full(count, number, np.int8))


def _unmet(matches: Mapping[int, FragmentMatches], source_rows: int, dropped: Positions) -> Positions:
    is_new = np.ones(source_rows, np.bool_)
    is_new[dropped] = False
    for each in matches.values():
        is_new[each.pairs.positions] = False
        is_new[each.passed_over.positions] = False
    return np.flatnonzero(is_new)


def _decision(plan: MergePlan, updated: Mapping[int, Pairs]) -> Decision:
    """Rows or columns, for each fragment with updated rows, by the columns that change in it."""
    by_columns: dict[tuple[str, ...], dict[int, Pairs]] = {}
    for id, pairs in updated.items():
        by_columns.setdefault(changed_in(plan, pairs), {})[id] = pairs
    choices = [choice for columns, some in by_columns.items() for choice in _choices(plan, columns, some)]
    return Decision(tuple(sorted(choices, key=lambda choice: choice.fragment_id)))


def changed_in(plan: MergePlan, pairs: Pairs) -> tuple[str, ...]:
    """The columns that change in a fragment with these updated rows."""
    if plan.changes is None:
        return plan.changed_columns
    return plan.changes.columns_of(plan.table, np.unique(pairs.numbers).tolist())


def _choices(plan: MergePlan, columns: tuple[str, ...], updated: Mapping[int, Pairs]) -> Sequence[FragmentChoice]:
    fragments = [plan.fragments.by_id(id) for id in updated]
    counts = {id: len(pairs) for id, pairs in updated.items()}

    def weigh(fragment: Fragment) -> LineageBytes:
        return lineage_bytes(fragment, RowSet.of(updated[fragment.id].offsets), plan.version + 1)

    choices = decide(plan.table, fragments, counts, columns, plan.clauses.write_mode, weigh).choices
    return choices if columns else [replace(choice, mode=REWRITE_ROWS) for choice in choices]
