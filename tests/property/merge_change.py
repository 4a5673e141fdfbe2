"""Merge insert by `id` as one more change of a table: its call in either library, and its meaning on the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from tests.property.clause_model import Clause, ClauseMerge, Outcome, Sql
from tests.property.row_model import Model, Predicate, Row, Values, always, table_of
from tests.unit.operations.merge_insert.merge_model import builder

import tablewright as tw
from tablewright.operations.merge_insert.limits import MergeLimits

__all__ = ["CLAUSES", "COUNTS", "AnyMerge", "Counts", "MatchCondition", "Merge", "OrderedMerge", "newer"]

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

    @property
    def columns(self) -> frozenset[str]:
        """The table's columns that it can't do without."""
        return frozenset(self.rows[0])

    @property
    def leaves_new_rows(self) -> bool:
        """Whether rows that come meanwhile, with other keys, are left as they are (snapshot isolation)."""
        return self.by_source is not None

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


# ---------------------------------------------------------------------------------------------- clauses as SQL has them
@dataclass(frozen=True)
class OrderedMerge:
    """The same with ordered clauses. The source has the column `op` too, which the table lacks."""

    rows: tuple[Values, ...]
    model: Model = field(repr=False)
    clauses: ClauseMerge
    mode: str = "auto"
    retries: int = 10
    limits: MergeLimits | None = None
    isolation: str = "snapshot"

    def configured(self, dataset: Any) -> Any:
        """Our builder."""
        merge = builder(dataset, "id", self.limits).conflict_retries(self.retries).isolation(self.isolation)
        return self.clauses.configure(merge).write_mode(self.mode)

    @property
    def source(self) -> Any:
        """The rows as Arrow data; `op` only where a clause reads it."""
        table = table_of(self.model, list(self.rows))
        if not self.clauses.reads_op:
            return table
        return table.append_column("op", pa.array([row["op"] for row in self.rows], pa.string()))

    @property
    def columns(self) -> frozenset[str]:
        """The table's columns that it can't do without: the source's, those that get values, and those it reads."""
        clauses = self.clauses.all
        reads = {name for name in self.model.columns for clause in clauses if clause.reads_target(name)}
        assigned = {name for clause in clauses for name in clause.values or ()}
        return frozenset({*self.rows[0]} - {"op"} | reads | assigned)

    @property
    def leaves_new_rows(self) -> bool:
        """See :attr:`Merge.leaves_new_rows`."""
        return bool(self.clauses.by_source) and self.isolation == "snapshot"

    def run(self, library: Any, dataset: Any) -> Counts:
        result = self.configured(dataset).execute(self.source)
        return result["num_inserted_rows"], result["num_updated_rows"], result["num_deleted_rows"]

    def fails(self, model: Model) -> bool:
        return False

    def _outcome(self, model: Model) -> Outcome:
        return self.clauses.after([row.values for row in model.rows.values()], self.rows, tuple(model.columns))

    def count(self, model: Model) -> Counts:
        """What the call has to return."""
        counts = self._outcome(model).counts
        return counts["num_inserted_rows"], counts["num_updated_rows"], counts["num_deleted_rows"]

    def after(self, model: Model, version: int) -> Model:
        outcome, before = self._outcome(model), list(model.rows.items())
        rows = dict[int, Row]()
        for place, values in outcome.kept.items():
            id, row = before[place]
            rows[id] = row if values is row.values else replace(row, values=values, updated=version)
        for position, new in enumerate(outcome.inserted):
            rows[new["id"]] = Row(new, model.next_row_id + position, version, version)
        return replace(model, rows=rows, next_row_id=model.next_row_id + len(outcome.inserted))


AnyMerge = Merge | OrderedMerge


def _plus(left: Any, right: Any) -> Any:
    return None if left is None or right is None else left + right


_DELETE = Clause("delete", condition=Sql("source.op = 'd'", lambda s, t: s["op"] == "d"))
_SUM = {
    "a": Sql("source.a + length(target.b)", lambda s, t: _plus(s["a"], None if t["b"] is None else len(t["b"]))),
}
_ADDED = Sql("source.op = 'u'", lambda s, t: s["op"] == "u")
_INSERT = {
    "id": Sql("source.id", lambda s, t: s["id"]),
    "b": Sql("concat('new ', source.a)", lambda s, t: f"new {s['a']}"),
}
_EVEN = Sql("source.id % 2 = 0", lambda s, t: s["id"] % 2 == 0)
_TOLD = {"b": Sql("concat('low ', target.a)", lambda s, t: f"low {t['a']}")}
_LOW = Sql("target.a < 4", lambda s, t: None if t["a"] is None else t["a"] < 4)
_HIGH = Sql("target.a > 5", lambda s, t: None if t["a"] is None else t["a"] > 5)

_MATCHED = (_DELETE, Clause("update", _SUM, _ADDED), Clause("update"))
_INSERTS = (Clause("insert", _INSERT, _EVEN), Clause("insert"))
_BY_SOURCE = (Clause("update", _TOLD, _LOW), Clause("delete", condition=_HIGH))

CLAUSES = {
    "updates and deletes in order": ClauseMerge(_MATCHED, (), ()),
    "inserts in order": ClauseMerge((), _INSERTS, ()),
    "some inserts": ClauseMerge((_DELETE,), (Clause("insert", None, _EVEN),), ()),
    "of what the source lacks": ClauseMerge((), (), _BY_SOURCE),
    "of every kind": ClauseMerge(_MATCHED, _INSERTS, _BY_SOURCE),
}
"""Clauses by what they are about. Updates write one of the columns `a` and `b`, and read the other one."""
