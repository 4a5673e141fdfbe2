"""Merge insert by `id` as one more change of a table: its call in either library, and its meaning on the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.property.row_model import Model, Predicate, Row, Values, always, table_of
from tests.unit.operations.merge_insert.merge_model import builder

import tablewright as tw
from tablewright.operations.merge_insert.limits import MergeLimits

__all__ = ["COUNTS", "Counts", "MatchCondition", "Merge", "newer"]

Counts = tuple[int, int, int]
COUNTS = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")


@dataclass(frozen=True)
class MatchCondition:
    """Which matching rows are updated: as SQL, and as what it means for the source's row and the table's."""

    sql: str
    holds: Callable[[Values, Values], bool] = field(compare=False)


def newer(column: str) -> MatchCondition:
    """Where the source has the greater number."""

    def holds(source: Values, target: Values) -> bool:
        return source[column] is not None and target[column] is not None and source[column] > target[column]

    return MatchCondition(f"source.{column} > target.{column}", holds)


@dataclass(frozen=True)
class Merge:
    """Rows of a source meet those of the table that have their `id`. They may lack columns."""

    rows: tuple[Values, ...]
    model: Model = field(repr=False)
    matched: str = "update"  # nothing, update, delete, fail
    condition: MatchCondition | None = None
    inserts: bool = True
    by_source: Predicate | None = None
    mode: str = "auto"
    retries: int = 10
    limits: MergeLimits | None = None

    def configured(self, dataset: Any) -> Any:
        """The builder, in the library of the dataset."""
        merge = builder(dataset, "id", self.limits).conflict_retries(self.retries)
        match self.matched:
            case "update":
                merge = merge.when_matched_update_all(None if self.condition is None else self.condition.sql)
            case "delete":
                merge = merge.when_matched_delete()
            case "fail":
                merge = merge.when_matched_fail()
        if self.inserts:
            merge = merge.when_not_matched_insert_all()
        if self.by_source is not None:
            expression = None if self.by_source == always() else self.by_source.sql
            merge = merge.when_not_matched_by_source_delete(expression)
        return merge.write_mode(self.mode) if isinstance(dataset, tw.LanceDataset) else merge

    @property
    def source(self) -> Any:
        """The rows as Arrow data."""
        return table_of(self.model, list(self.rows))

    def run(self, library: Any, dataset: Any) -> Counts:
        result = self.configured(dataset).execute(self.source)
        return result["num_inserted_rows"], result["num_updated_rows"], result["num_deleted_rows"]

    def _updated(self, model: Model) -> dict[int, Values]:
        given = {row["id"]: row for row in self.rows if row["id"] in model.rows and self.matched == "update"}
        if self.condition is None:
            return given
        holds = self.condition.holds
        return {id: row for id, row in given.items() if holds(row, model.rows[id].values)}

    def _deleted(self, model: Model) -> set[int]:
        known = {row["id"] for row in self.rows}
        gone = known & model.rows.keys() if self.matched == "delete" else set()
        return gone | (set(model.matching(self.by_source)) - known if self.by_source is not None else set())

    def _inserted(self, model: Model) -> list[Values]:
        return [row for row in self.rows if row["id"] not in model.rows] if self.inserts else []

    def fails(self, model: Model) -> bool:
        """Whether a row that matches is an error."""
        return self.matched == "fail" and any(row["id"] in model.rows for row in self.rows)

    def count(self, model: Model) -> Counts:
        """What the call has to return."""
        return len(self._inserted(model)), len(self._updated(model)), len(self._deleted(model))

    def after(self, model: Model, version: int) -> Model:
        rows, gone = dict(model.rows), self._deleted(model)
        for id, new in self._updated(model).items():
            rows[id] = replace(rows[id], values={**rows[id].values, **new}, updated=version)
        added, empty = self._inserted(model), dict.fromkeys(model.columns)
        for position, new in enumerate(added):
            rows[new["id"]] = Row({**empty, **new}, model.next_row_id + position, version, version)
        kept = {id: row for id, row in rows.items() if id not in gone}
        return replace(model, rows=kept, next_row_id=model.next_row_id + len(added))
