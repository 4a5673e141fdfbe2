"""The indices of one scan: planned with it, weighed when it is explained or run, and asked when it runs.

The weighing reads the small parts of indices that tell how many rows match, so it waits until somebody wants to know.

Tests: ``tests/unit/reading/test_index_use.py``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from pyroaring import FrozenBitMap

from tablewright.expressions.conditions import normal_form
from tablewright.expressions.filters import Predicate
from tablewright.expressions.queries import Between, IsIn
from tablewright.expressions.sql_conditions import conditions_of
from tablewright.format.schema import Schema
from tablewright.reading.index_costs import Decision, ScanCost, decide_use, rows_worth_taking
from tablewright.reading.index_filter import Asked, AskedTree, plan_index_query, scalar_indices
from tablewright.reading.index_rows import Answer, ask_few, ask_indices
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["IndexUse", "plan_index_use"]

_FEW_ROWS = 64


class IndexUse:
    """How a filter's rows are found by indices in some fragments of a version, or why not."""

    def __init__(self, snapshot: Snapshot, tree: AskedTree | str, within: FrozenBitMap, *, forced: bool) -> None:
        self._snapshot, self._tree, self.within, self._forced = snapshot, tree, within, forced
        self._decisions: dict[ScanCost, Decision] = {}

    @property
    def known(self) -> FrozenBitMap:
        """The fragments of the scan that indices know something about."""
        return FrozenBitMap() if isinstance(self._tree, str) else self._tree.known & self.within

    def decide(self, scan: ScanCost) -> Decision:
        """Whether the indices are asked."""
        if isinstance(self._tree, str):
            return Decision(tree=None, why=self._tree)
        if not self.known:
            return Decision(tree=None, why="its indices cover none of these fragments")
        if scan not in self._decisions:
            self._decisions[scan] = decide_use(self._snapshot, self._tree, scan, forced=self._forced)
        return self._decisions[scan]

    def ask(self, scan: ScanCost) -> Answer | None:
        """The rows that may match; ``None`` if no index is asked."""
        few = self._ask_few(scan)
        if few is not None:
            return few
        tree = self.decide(scan).tree
        return None if tree is None else ask_indices(self._snapshot, tree, self.within)

    def _ask_few(self, scan: ScanCost) -> Answer | None:
        """The rows, where one index knows them all and they are few: then the decision needs no estimate."""
        tree = self._tree
        if (
            not isinstance(tree, Asked)
            or not isinstance(tree.leaf.query, IsIn | Between)
            or scan.rows_wanted is not None
        ):
            return None
        rows_max = _FEW_ROWS if self._forced else min(_FEW_ROWS, rows_worth_taking(tree, scan.rows, scan.nbytes))
        return ask_few(self._snapshot, tree, self.within, rows_max) if rows_max else None

    def explain(self, scan: ScanCost) -> str:
        """One line: the query, the coverage and the reason, or why no index is asked."""
        decision = self.decide(scan)
        if decision.tree is None:
            return f"Index: not used, as {decision.why}"
        known, exact = decision.tree.known & self.within, decision.tree.exact & self.within
        recheck = "" if exact >= known else f", rechecked_fragments={len(known - exact)}"
        return (
            f"ScalarIndexQuery: query={decision.tree}, covered_fragments={len(known)}, "
            f"scanned_fragments={len(self.within - known)}{recheck}, reason: {decision.why}"
        )


def plan_index_use(
    snapshot: Snapshot,
    predicate: Predicate | None,
    schema: Schema,
    fragment_ids: Iterable[int] | np.ndarray,
    use_scalar_index: bool | None = None,
) -> IndexUse | None:
    """The indices that could find a filter's rows; ``None`` without a filter, without indices, or if not wanted."""
    if predicate is None or use_scalar_index is False or not scalar_indices(snapshot):
        return None
    tree = normal_form(conditions_of(predicate, schema))
    within = FrozenBitMap(np.asarray(fragment_ids, np.uint32).tolist())
    return IndexUse(snapshot, plan_index_query(tree, snapshot, schema), within, forced=bool(use_scalar_index))
