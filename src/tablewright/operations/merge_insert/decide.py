"""What becomes of every row, once the matches are known. Pure.

Each fragment with updated rows is decided alone, by bytes (:mod:`tablewright.operations.rewrite.costs`): its rows move,
or its columns change in place. Rows that are deleted are hidden along with it. Source rows that met nothing are
inserted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tablewright.format.fragment import Fragment
from tablewright.format.row_set import RowSet
from tablewright.operations.merge_insert.clauses import InvalidMerge
from tablewright.operations.merge_insert.keys.key_table import Positions
from tablewright.operations.merge_insert.match.pairs import FragmentMatches, Pairs
from tablewright.operations.merge_insert.plan import MergePlan
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.operations.rewrite.costs import REWRITE_ROWS, Decision, decide
from tablewright.operations.rewrite.lineage_bytes import LineageBytes, lineage_bytes

__all__ = ["Actions", "check_no_match", "decide_merge"]


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
    """Decide what is updated, deleted and inserted, and how it is written. ``dropped`` source rows do not count."""
    clauses = plan.clauses
    updated = {id: each.pairs for id, each in matches.items() if clauses.updates and len(each.pairs)}
    deleted = {id: gone for id, each in matches.items() if len(gone := _deleted(plan, each))}
    return Actions(
        updated=updated,
        deleted=deleted,
        found={id: left for id, each in matches.items() if len(left := _found(plan, each))},
        inserted=_unmet(matches, source_rows, dropped) if clauses.insert else np.zeros(0, np.int64),
        decision=_decision(plan, updated),
    )


def _deleted(plan: MergePlan, matches: FragmentMatches) -> RowSet:
    unmatched = RowSet() if matches.unmatched is None else matches.unmatched
    return RowSet.of(matches.pairs.offsets) | unmatched if plan.clauses.when_matched == "delete" else unmatched


def _found(plan: MergePlan, matches: FragmentMatches) -> RowSet:
    if not plan.clauses.insert:
        return RowSet()
    return RowSet.of((matches.passed_over if plan.clauses.updates else matches.pairs).offsets)


def _unmet(matches: Mapping[int, FragmentMatches], source_rows: int, dropped: Positions) -> Positions:
    is_new = np.ones(source_rows, np.bool_)
    is_new[dropped] = False
    for each in matches.values():
        is_new[each.pairs.positions] = False
        is_new[each.passed_over.positions] = False
    return np.flatnonzero(is_new)


def _decision(plan: MergePlan, updated: Mapping[int, Pairs]) -> Decision:
    fragments = [plan.fragments.by_id(id) for id in updated]
    counts = {id: len(pairs) for id, pairs in updated.items()}

    def weigh(fragment: Fragment) -> LineageBytes:
        return lineage_bytes(fragment, RowSet.of(updated[fragment.id].offsets), plan.version + 1)

    decision = decide(plan.table, fragments, counts, plan.changed_columns, plan.clauses.write_mode, weigh)
    if plan.changed_columns:
        return decision
    return Decision(tuple(replace(choice, mode=REWRITE_ROWS) for choice in decision.choices))
