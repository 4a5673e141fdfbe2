"""Clauses as SQL has them: lists of updates, deletes and inserts, tried in order, with conditions and expressions.

The first clause of a list whose condition is true takes the row; a row that none takes stays as it is, a source row
that none takes is not inserted. Values are SQL expressions that see the old row. A clause after one without a condition
could never be reached, and is refused.

Names in conditions and expressions are found as :mod:`.match.sides` says.

Tests: ``tests/unit/api/test_merge_clauses.py``, ``tests/property/test_merge_clauses.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tablewright.checks import check_text
from tablewright.errors import InvalidRequest, WrongType

__all__ = [
    "DeleteClause",
    "InsertClause",
    "OrderedClauses",
    "RowClause",
    "UpdateClause",
    "Values",
    "check_values",
]

Values: TypeAlias = tuple[tuple[str, str], ...]
"""Columns and the expressions for their values, in order."""

_CLAUSES_MAX = 60


def check_values(given: Any, clause: str) -> Values:
    """``{column: SQL}`` as a value. What the names and texts mean is looked at when the merge is planned."""
    if not isinstance(given, Mapping):
        raise WrongType(f"Invalid user input: {clause} takes a dict of column to SQL text, got {given!r}.")
    if not given:
        raise InvalidRequest(f"Invalid user input: {clause} needs at least one column and its expression.")
    for name, sql in given.items():
        check_text(name, f"a column's name in {clause}")
        if not isinstance(sql, str):
            raise WrongType(
                f"Invalid user input: the value of column {name!r} in {clause} must be SQL text, got {sql!r} of type "
                f"{type(sql).__name__}."
            )
    return tuple(given.items())


@dataclass(frozen=True, slots=True)
class UpdateClause:
    """Rows get new values: of these expressions, or (``None``) those of the source's columns.

    >>> print(UpdateClause((("v", "source.v + 1"),), "target.v > 3"))
    Update(v = source.v + 1) if target.v > 3
    """

    values: Values | None = None
    condition: str | None = None

    def __str__(self) -> str:
        return _text("UpdateAll" if self.values is None else f"Update({_assigned(self.values)})", self.condition)


@dataclass(frozen=True, slots=True)
class DeleteClause:
    """Rows go."""

    condition: str | None = None

    def __str__(self) -> str:
        return _text("Delete", self.condition)


@dataclass(frozen=True, slots=True)
class InsertClause:
    """Source rows become new rows: with these values, null in all other columns, or (``None``) as they are."""

    values: Values | None = None
    condition: str | None = None

    def __str__(self) -> str:
        return _text("InsertAll" if self.values is None else f"Insert({_assigned(self.values)})", self.condition)


RowClause: TypeAlias = UpdateClause | DeleteClause


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedClauses:
    """What becomes of rows that match, of source rows that don't, and of table rows that don't."""

    matched: tuple[RowClause, ...] = ()
    not_matched: tuple[InsertClause, ...] = ()
    by_source: tuple[RowClause, ...] = ()

    def __post_init__(self) -> None:
        for name, clauses in self._lists.items():
            for clause in clauses[:-1]:
                if clause.condition is None:
                    raise InvalidRequest(
                        f"Invalid user input: a {name} clause follows {clause}, which has no condition and takes every "
                        f"row. Give that one a condition, or make it the last {name} clause."
                    )
        if sum(map(len, self._lists.values())) > _CLAUSES_MAX:
            raise InvalidRequest(f"Invalid user input: a merge has at most {_CLAUSES_MAX} clauses.")
        if any(isinstance(clause, UpdateClause) and clause.values is None for clause in self.by_source):
            raise InvalidRequest(
                "Invalid user input: rows that no source row matches can't be updated from the source: give values."
            )

    @property
    def _lists(self) -> dict[str, Sequence[RowClause | InsertClause]]:
        return {
            "when_matched": self.matched,
            "when_not_matched": self.not_matched,
            "when_not_matched_by_source": self.by_source,
        }

    @property
    def row_clauses(self) -> tuple[RowClause, ...]:
        """Those on rows of the table, by their numbers: on rows that match first, then on rows that don't."""
        return (*self.matched, *self.by_source)

    @property
    def updates(self) -> bool:
        """Whether rows of the table get new values."""
        return any(isinstance(clause, UpdateClause) for clause in self.row_clauses)

    @property
    def deletes(self) -> bool:
        """Whether rows go."""
        return any(isinstance(clause, DeleteClause) for clause in self.row_clauses)

    @property
    def updates_all(self) -> bool:
        """Whether matched rows get the source's columns as they are."""
        return any(isinstance(clause, UpdateClause) and clause.values is None for clause in self.matched)

    @property
    def inserts_all(self) -> bool:
        """Whether source rows become rows as they are."""
        return any(clause.values is None for clause in self.not_matched)

    @property
    def only_deletes_matched(self) -> bool:
        """Whether several source rows with one key say the same: that its rows go."""
        return self.matched == (DeleteClause(),) and not self.not_matched

    def __str__(self) -> str:
        return ", ".join(f"{name}=[{'; '.join(map(str, clauses))}]" for name, clauses in self._lists.items() if clauses)


def _assigned(values: Values) -> str:
    return ", ".join(f"{name} = {sql}" for name, sql in values)


def _text(what: str, condition: str | None) -> str:
    return what if condition is None else f"{what} if {condition}"
