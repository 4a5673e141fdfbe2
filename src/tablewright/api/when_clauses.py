"""The clauses that a builder was given, in the order of the calls, and what pylance's calls mean among them.

pylance has one clause for each kind of row, and a later call replaces an earlier one. So it is here, as long as these
calls are all there is, and the earlier one has no condition. A clause with a condition stays, and the next one is tried
where it does not hold, as in SQL.

Tests: ``tests/unit/api/test_merge_clauses.py``.
"""

from __future__ import annotations

from typing import Any

from tablewright.errors import InvalidRequest
from tablewright.operations.merge_insert.ordered import (
    DeleteClause,
    InsertClause,
    OrderedClauses,
    RowClause,
    UpdateClause,
)

__all__ = ["WhenClauses"]


class WhenClauses:
    """Clauses while they are collected. Mutable."""

    def __init__(self) -> None:
        self._matched: list[tuple[str, RowClause | None]] = []  # with the name of pylance's call, or ""
        self._inserts: list[InsertClause] = []
        self._by_source: list[RowClause] = []

    def matched(self, clause: RowClause) -> None:
        """One more clause on rows that match."""
        self._matched.append(("", clause))

    def matched_as_pylance(self, name: str, clause: RowClause | None) -> None:
        """A clause by a call that pylance has; ``None`` stands for *fail*."""
        if all(own for own, _ in self._matched):
            while self._matched and (name == "fail" or self._takes_all()):
                self._matched.pop()
        self._matched.append((name, clause))

    def _takes_all(self) -> bool:
        clause = self._matched[-1][1]
        return clause is None or clause.condition is None

    def insert(self, clause: InsertClause) -> None:
        """One more clause on source rows that match nothing; the same call again says nothing new."""
        if clause.values is not None or self._inserts != [clause]:
            self._inserts.append(clause)

    def by_source(self, clause: RowClause) -> None:
        """One more clause on rows that no source row matches."""
        self._by_source.append(clause)

    def delete_by_source(self, clause: DeleteClause) -> None:
        """The same, by a call that pylance has."""
        if self._by_source == [DeleteClause()]:
            self._by_source.clear()
        self._by_source.append(clause)

    def given(self) -> dict[str, Any]:
        """The arguments of :class:`~tablewright.operations.merge_insert.clauses.Clauses` that say the same."""
        simple = self._simple()
        if simple is not None:
            return simple
        if any(clause is None for _, clause in self._matched):
            raise InvalidRequest("Invalid user input: when_matched_fail stands alone: no other clause on matched rows.")
        matched = tuple(clause for _, clause in self._matched if clause is not None)
        ordered = OrderedClauses(matched=matched, not_matched=tuple(self._inserts), by_source=tuple(self._by_source))
        return {"ordered": ordered}

    def _simple(self) -> dict[str, Any] | None:
        """At most one clause of each kind, and all of them pylance's."""
        if len(self._matched) > 1 or self._inserts not in ([], [InsertClause()]) or len(self._by_source) > 1:
            return None
        given: dict[str, Any] = {"insert": bool(self._inserts)}
        for name, clause in self._matched:
            if not name:
                return None
            given["when_matched"] = name
            given["condition"] = clause.condition if isinstance(clause, UpdateClause) else None
        for clause in self._by_source:
            if not isinstance(clause, DeleteClause):
                return None
            given |= {"delete_by_source": True, "by_source_condition": clause.condition}
        return given
