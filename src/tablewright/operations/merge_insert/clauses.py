"""What a merge does: with rows that match, with source rows that don't, with table rows that don't. And how.

A value is checked as a whole when it is made. The single checks serve the builder too, which fails as early as it can.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tablewright.checks import check_flag, check_text
from tablewright.errors import InvalidRequest
from tablewright.operations.merge_insert.limits import DEFAULT_MERGE_LIMITS, MergeLimits
from tablewright.operations.merge_insert.ordered import OrderedClauses
from tablewright.operations.rewrite.costs import REWRITE_COLUMNS, REWRITE_ROWS, WRITE_MODES
from tablewright.operations.write import asked_file_version

__all__ = ["Clauses", "InvalidMerge", "WhenMatched", "check_condition", "check_dedupe", "check_mode"]

WhenMatched = Literal["nothing", "update", "delete", "fail"]
_MATCHED = {"nothing": "DoNothing", "update": "UpdateAll", "delete": "Delete", "fail": "Fail"}
_DEDUPES = (None, "first", "last")


class InvalidMerge(InvalidRequest, OSError):
    """A merge that can't be done with these data. It is also an OSError, as pylance raises it."""


def check_condition(given: Any, name: str) -> str | None:
    """SQL text, or none."""
    return None if given is None else check_text(given, name)


def check_mode(given: Any) -> str:
    """One of the ways to write."""
    if given not in WRITE_MODES:
        raise InvalidRequest(f"Invalid write_mode: {given}. Expected one of {', '.join(map(repr, WRITE_MODES))}.")
    return str(given)


def check_dedupe(given: Any) -> str | None:
    """Which of several source rows with one key counts; ``None``: it is an error."""
    if given not in _DEDUPES:
        raise InvalidRequest(f'dedupe must be "first", "last" or None, got {given!r}.')
    return None if given is None else str(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clauses:
    """A merge in all but its data.

    ``condition`` belongs to ``when_matched="update"`` and may use ``source.`` and ``target.`` columns;
    ``by_source_condition`` belongs to ``delete_by_source`` and uses the table's columns. ``ordered`` takes the place of
    all these where clauses are several, or assign expressions. ``limits`` decide how it works, not what it does.

    >>> print(Clauses(when_matched="update", insert=True))
    when_matched=UpdateAll, when_not_matched=InsertAll, when_not_matched_by_source=Keep
    """

    when_matched: WhenMatched = "nothing"
    condition: str | None = None
    insert: bool = False
    delete_by_source: bool = False
    by_source_condition: str | None = None
    ordered: OrderedClauses | None = None
    dedupe: str | None = None
    use_index: bool = True
    write_mode: str = "auto"
    data_storage_version: str | None = None
    limits: MergeLimits = DEFAULT_MERGE_LIMITS

    def __post_init__(self) -> None:
        if self.when_matched not in _MATCHED:
            raise InvalidRequest(f"when_matched must be one of {', '.join(_MATCHED)}, got {self.when_matched!r}.")
        check_condition(self.condition, "the condition of when_matched_update_all")
        check_condition(self.by_source_condition, "the condition of when_not_matched_by_source_delete")
        check_mode(self.write_mode)
        check_dedupe(self.dedupe)
        for name in ("insert", "delete_by_source", "use_index"):
            check_flag(getattr(self, name), name)
        asked_file_version(self.data_storage_version)  # an unknown one raises
        if self.condition is not None and self.when_matched != "update":
            raise InvalidRequest("A condition on matched rows needs when_matched_update_all.")
        if self.by_source_condition is not None and not self.delete_by_source:
            raise InvalidRequest("A condition on rows without a source row needs when_not_matched_by_source_delete.")
        is_simple = self.when_matched != "nothing" or self.insert or self.delete_by_source
        if self.ordered is not None and is_simple:
            raise InvalidRequest("Clauses are either ordered or simple, not both.")
        if self.ordered in (None, OrderedClauses()) and not is_simple:
            raise InvalidRequest(
                "Invalid user input: The merge insert job is not configured to change the data in any way. Add "
                "when_matched_update_all, when_not_matched_insert_all or another clause."
            )

    @property
    def updates(self) -> bool:
        """Whether rows of the table get new values."""
        return self.when_matched == "update" if self.ordered is None else self.ordered.updates

    @property
    def inserts(self) -> bool:
        """Whether source rows that match nothing may become rows."""
        return self.insert or (self.ordered is not None and bool(self.ordered.not_matched))

    @property
    def changes_unmatched(self) -> bool:
        """Whether rows may change or go that no source row matches."""
        return self.delete_by_source or (self.ordered is not None and bool(self.ordered.by_source))

    @property
    def deletes(self) -> bool:
        """Whether rows may go."""
        simple = self.delete_by_source or self.when_matched == "delete"
        return simple or (self.ordered is not None and self.ordered.deletes)

    @property
    def kept_duplicate(self) -> str | None:
        """Which of several source rows with one key counts: ``dedupe``, or any where all say the same."""
        says_the_same = self.when_matched == "delete" and not self.insert
        if self.ordered is not None:
            says_the_same = self.ordered.only_deletes_matched
        return "first" if self.dedupe is None and says_the_same else self.dedupe

    @property
    def wants_columns(self) -> bool:
        """Whether the caller insists on columns in place."""
        return self.write_mode == REWRITE_COLUMNS

    @property
    def depends_on_keys(self) -> bool:
        """Whether another writer's row with one of our keys would have met a different fate, had it been there."""
        matches = self.when_matched != "nothing" or (self.ordered is not None and bool(self.ordered.matched))
        return self.inserts or matches

    @property
    def writes(self) -> str:
        """What is written for each clause, in words."""
        updates = {
            "auto": "updated rows move, or their columns change in place: decided after the match, by bytes, for each "
            "fragment",
            REWRITE_ROWS: "updated rows move to new fragments",
            REWRITE_COLUMNS: "columns of updated rows change in place",
        }
        parts = [updates[self.write_mode]] if self.updates else []
        parts += ["source rows that match nothing go to new fragments"] if self.inserts else []
        parts += ["deletion files for rows that go"] if self.deletes else []
        return "; ".join(parts) or "nothing"

    def __str__(self) -> str:
        if self.ordered is not None:
            return str(self.ordered)
        matched = _MATCHED[self.when_matched] if self.condition is None else f"UpdateIf({self.condition})"
        by_source = "Keep"
        if self.delete_by_source:
            by_source = "Delete" if self.by_source_condition is None else f"DeleteIf({self.by_source_condition})"
        inserts = "InsertAll" if self.insert else "DoNothing"
        return f"when_matched={matched}, when_not_matched={inserts}, when_not_matched_by_source={by_source}"
