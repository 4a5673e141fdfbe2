"""What ordered clauses do, compiled: conditions, the values that rows get, and what has to be read for both.

Types: the value of an expression becomes the column's type where no value can be lost (an int32 in an int64 column),
whole numbers also become narrower ones, or floats, if each value fits exactly, and constants are read as the column's
type. All else is refused by name before anything is read: write a cast.

Tests: ``tests/unit/api/test_merge_clauses.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.types as at

from tablewright.data.conform import conform
from tablewright.data.fit_types import fits
from tablewright.data.read import no_columns
from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.expressions.casts import lance_name
from tablewright.expressions.filters import Predicate
from tablewright.expressions.scope import with_system_columns
from tablewright.format.blobs import as_descriptions
from tablewright.format.field import is_blob_v2
from tablewright.format.schema import Schema
from tablewright.operations.blob_checks import refuse_blob_targets
from tablewright.operations.merge_insert.clauses import InvalidMerge
from tablewright.operations.merge_insert.keys.key_columns import KeyColumns
from tablewright.operations.merge_insert.match.condition import (
    MatchCondition,
    MatchConditions,
    compile_condition,
    compile_over_both,
    compile_over_one,
    compile_side_condition,
    rows_of_both,
)
from tablewright.operations.merge_insert.ordered import InsertClause, OrderedClauses, RowClause, UpdateClause, Values
from tablewright.operations.merge_insert.source.fit import (
    FittedSchema,
    check_insertable,
    fit_read_columns,
    types_once_fitted,
)
from tablewright.operations.merge_insert.write.values import merged_values
from tablewright.operations.update_values import Assignment, Assignments, Compile, compile_assignments
from tablewright.reading.projection import Path

__all__ = ["Changes", "CompiledClauses", "Inserts", "RowChange", "compile_changes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """What an update clause makes of rows: ``columns`` of the table get the values of expressions.

    Without ``assignments`` they get the source's columns. ``of_match``: expressions see both sides.
    """

    columns: tuple[str, ...]
    assignments: Assignments | None
    of_match: bool

    @property
    def source_columns(self) -> tuple[str, ...]:
        """The columns of the source that it reads."""
        if self.assignments is None:
            return self.columns
        paths = self.assignments.paths if self.of_match else ()
        return tuple(dict.fromkeys(path[1] for path in paths if path[0] == "source"))

    @property
    def target_paths(self) -> tuple[Path, ...]:
        """The fields of the table that its expressions read."""
        if self.assignments is None:
            return ()
        paths = self.assignments.paths
        return tuple(path[1:] for path in paths if path[0] == "target") if self.of_match else paths

    def kept(self, fitted: FittedSchema) -> tuple[str, ...]:
        """The changed columns of which something is kept."""
        if self.assignments is not None:
            return self.assignments.kept_in_part
        return tuple(name for name in self.columns if name in fitted.in_part)

    def values(self, fitted: FittedSchema, source: pa.RecordBatch, target: pa.RecordBatch) -> dict[str, pa.Array]:
        """The new values, in the table's types. ``target`` has the columns that are read or kept."""
        if self.assignments is None:
            schema = fitted.rows.to_arrow()
            new = {name: merged_values(fitted, name, source, target) for name in self.columns}
            return {name: _fitting(array, schema.field(name)) for name, array in new.items()}
        rows = target
        if self.of_match:
            used = tuple(dict.fromkeys(name for item in self.assignments.items for name in item.expression.columns))
            rows = rows_of_both(used, source, target)
        return self.assignments.changed(rows, target)


def _fitting(array: pa.Array, field: pa.Field) -> pa.Array:
    return conform(pa.RecordBatch.from_arrays([array], names=[field.name]), pa.schema([field])).column(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserts:
    """What source rows become that match nothing: the first clause whose condition holds says it.

    ``items`` are assignments, or ``None`` for rows as they are; ``columns`` those of the table that some clause gives.
    """

    conditions: tuple[Predicate | None, ...]
    items: tuple[Assignments | None, ...]
    columns: tuple[str, ...]

    @property
    def source_columns(self) -> tuple[str, ...] | None:
        """The columns that are read; ``None``: all that are kept."""
        if any(item is None for item in self.items):
            return None
        read = [path[0] for item in self.items if item is not None for path in item.paths]
        asked = [path[0] for condition in self.conditions if condition is not None for path in condition.paths]
        return tuple(dict.fromkeys([*read, *asked])) or None

    def values(self, number: int, fitted: FittedSchema, source: pa.RecordBatch) -> pa.RecordBatch:
        """All ``columns`` of rows that a clause takes, in the table's types."""
        item, rows = self.items[number], source.num_rows
        schema = fitted.rows.to_arrow()
        if item is None:
            given = frozenset(fitted.columns)
            new = {name: source.column(name) for name in self.columns if name in given}
        else:
            own = {name: pa.nulls(rows, schema.field(name).type) for name in item.kept_in_part}
            new = item.changed(source, pa.RecordBatch.from_pydict(own) if own else no_columns(rows))
        arrays = [new[name] if name in new else pa.nulls(rows, schema.field(name).type) for name in self.columns]
        wanted = pa.schema([schema.field(name) for name in self.columns])
        return conform(pa.RecordBatch.from_arrays(arrays, names=list(self.columns)), wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Ordered clauses, compiled. ``rows`` are those on rows of the table, by number; ``None`` deletes.

    The first ``matched`` of them are about rows that match.
    """

    rows: tuple[RowChange | None, ...]
    matched: int
    inserts: Inserts | None

    def columns_of(self, table: Schema, numbers: Iterable[int]) -> tuple[str, ...]:
        """The columns that some clauses change, in the table's order."""
        changed = {name for change in self._some(numbers) for name in change.columns}
        return tuple(name for name in table.names if name in changed)

    def kept_of(self, fitted: FittedSchema, numbers: Iterable[int]) -> tuple[str, ...]:
        """Columns that some of the clauses change, and of which not all of these give everything."""
        some = self._some(numbers)
        changed = {name for change in some for name in change.columns}
        whole = [frozenset(change.columns).difference(change.kept(fitted)) for change in some]
        return tuple(name for name in fitted.table.names if name in changed and any(name not in own for own in whole))

    def target_paths_of(self, numbers: Iterable[int]) -> tuple[Path, ...]:
        """The fields of the table that expressions of some clauses read."""
        return tuple(dict.fromkeys(path for change in self._some(numbers) for path in change.target_paths))

    def source_columns_of(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """The columns of the source that some clauses read."""
        return tuple(dict.fromkeys(name for change in self._some(numbers) for name in change.source_columns))

    def _some(self, numbers: Iterable[int]) -> list[RowChange]:
        return [change for number in numbers if (change := self.rows[number]) is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledClauses:
    """All that is known of ordered clauses before rows are."""

    fitted: FittedSchema
    conditions: MatchConditions | None
    by_source: tuple[Predicate | None, ...]
    changes: Changes | None


# ------------------------------------------------------------------------------------------------------------ compiling
def compile_changes(
    clauses: OrderedClauses, table: Schema, incoming: pa.Schema, key: KeyColumns, now_ns: int
) -> CompiledClauses:
    """Resolve and check all names, conditions, values and types; whatever is wrong is :class:`InvalidMerge`."""
    takes_all = clauses.updates_all or clauses.inserts_all
    source = types_once_fitted(table, incoming, table.names if takes_all else key.columns)
    compiler = _Compiler(table, source, now_ns)
    matched = [compiler.condition(clause) for clause in clauses.matched]
    by_source = tuple(
        compiler.side_condition(clause, "target", "when_not_matched_by_source") for clause in clauses.by_source
    )
    inserted = tuple(compiler.side_condition(clause, "source", "when_not_matched") for clause in clauses.not_matched)
    assigned = [compiler.assigned(clause, of_match=True) for clause in clauses.matched]
    left = [compiler.assigned(clause, of_match=False) for clause in clauses.by_source]
    new = tuple(None if clause.values is None else compiler.inserted(clause.values) for clause in clauses.not_matched)
    read = _read_of_source(matched, assigned, inserted, new)
    fitted = fit_read_columns(table, incoming, key, read, takes_all=takes_all, updates=clauses.updates_all)
    whole = fitted.changed(key)
    rows = [
        *(
            _row_change(clause, each, whole, of_match=True)
            for clause, each in zip(clauses.matched, assigned, strict=True)
        ),
        *(
            _row_change(clause, each, whole, of_match=False)
            for clause, each in zip(clauses.by_source, left, strict=True)
        ),
    ]
    return CompiledClauses(
        fitted=fitted,
        conditions=MatchConditions(tuple(matched)) if any(matched) else None,
        by_source=by_source or (None,),
        changes=Changes(rows=tuple(rows), matched=len(matched), inserts=_inserts(fitted, inserted, new)),
    )


def _row_change(
    clause: RowClause, assignments: Assignments | None, whole: tuple[str, ...], *, of_match: bool
) -> RowChange | None:
    if not isinstance(clause, UpdateClause):
        return None
    columns = whole if assignments is None else assignments.columns
    return RowChange(columns=columns, assignments=assignments, of_match=of_match)


def _inserts(
    fitted: FittedSchema, conditions: tuple[Predicate | None, ...], items: tuple[Assignments | None, ...]
) -> Inserts | None:
    if not items:
        return None
    given = [fitted.columns if item is None else item.columns for item in items]
    for names in given:
        check_insertable(fitted.table, names)
    every = frozenset(name for names in given for name in names)
    columns = tuple(name for name in fitted.table.names if name in every)
    return Inserts(conditions=conditions, items=items, columns=columns)


def _read_of_source(
    matched: Iterable[MatchCondition | None],
    assigned: Iterable[Assignments | None],
    inserted: Iterable[Predicate | None],
    new: Iterable[Assignments | None],
) -> set[str]:
    """The columns of the source that conditions and expressions read."""
    read = {name for condition in matched if condition is not None for name in condition.source_columns}
    read |= {path[1] for each in assigned if each is not None for path in each.paths if path[0] == "source"}
    read |= {path[0] for condition in inserted if condition is not None for path in condition.paths}
    return read | {path[0] for each in new if each is not None for path in each.paths}


class _Compiler:
    """Compiles conditions and values over a table and the columns of a source, as they come."""

    def __init__(self, table: Schema, source: pa.Schema, now_ns: int) -> None:
        self._source, self._now_ns = source, now_ns
        self._table, self._seen = table, as_descriptions(table)
        self._known = with_system_columns(table)
        self._blobs = [blob for blob in table.blobs if is_blob_v2(blob)]

    def condition(self, clause: RowClause) -> MatchCondition | None:
        if clause.condition is None:
            return None
        return compile_condition(clause.condition, self._seen, self._source, self._now_ns, "a when_matched clause")

    def side_condition(self, clause: RowClause | InsertClause, side: str, name: str) -> Predicate | None:
        if clause.condition is None:
            return None
        known = self._source if side == "source" else with_system_columns(self._seen)
        return compile_side_condition(clause.condition, known, side, self._now_ns, f"a {name} clause")

    def assigned(self, clause: RowClause, *, of_match: bool) -> Assignments | None:
        if not isinstance(clause, UpdateClause) or clause.values is None:
            return None
        if of_match:
            return self._compiled(
                clause.values, lambda sql: compile_over_both(sql, self._table, self._source, self._now_ns), "target"
            )
        return self._compiled(clause.values, lambda sql: compile_over_one(sql, self._known, "target", self._now_ns), "")

    def inserted(self, values: Values) -> Assignments:
        return self._compiled(values, lambda sql: compile_over_one(sql, self._source, "source", self._now_ns), None)

    def _compiled(self, values: Values, compile: Compile, target: str | None) -> Assignments:
        try:
            refuse_blob_targets(self._table, [name for name, _ in values])
            assignments = compile_assignments(dict(values), self._table, compile)
        except UnsupportedFeature:
            raise
        except InvalidRequest as error:
            raise InvalidMerge(str(error)) from error
        if target is not None:
            self._refuse_blobs(assignments, target)
        return replace(assignments, items=tuple(map(_with_safe_cast, assignments.items)))

    def _refuse_blobs(self, assignments: Assignments, side: str) -> None:
        for item in assignments.items:
            for path in item.expression.paths:
                own = path if not side else path[1:] if path[0] == side else ()
                if own and any(own[0] == self._table.path(blob.id).split(".")[0] for blob in self._blobs):
                    raise UnsupportedFeature(
                        f"The expression {item.expression.text!r} reads the blob column '{own[0]}' (lance.blob.v2), "
                        "which only filters and scans can: there it is a description, with .size and .kind."
                    )


# ---------------------------------------------------------------------------------------------------------------- types
def _with_safe_cast(item: Assignment) -> Assignment:
    """The assignment, if its values may go into the column."""
    own, wanted = item.expression.type, item.kind
    if own == wanted:
        return item
    if not item.expression.columns:
        return _constant(item)
    is_fraction = (at.is_floating(own) or at.is_decimal(own)) and at.is_integer(wanted)
    if fits(own, wanted) and not is_fraction:
        return replace(item, is_checked=True)
    raise _unfitting(item, f"write cast({item.expression.text} as …) if that is meant")


def _constant(item: Assignment) -> Assignment:
    """A constant is cast when the statement is planned; a fraction does not become a whole number."""
    (value,) = item.expression.evaluate(no_columns(1)).to_pylist()
    is_number = at.is_floating(item.expression.type) or at.is_decimal(item.expression.type)
    if is_number and at.is_integer(item.kind) and value is not None and value != int(value):
        raise _unfitting(item, "the column holds whole numbers")
    return item


def _unfitting(item: Assignment, remedy: str) -> InvalidMerge:
    name = ".".join(item.path)
    return InvalidMerge(
        f'Invalid user input: Column "{name}" of type {lance_name(item.kind)} can\'t safely take '
        f"{item.expression.text!r} of type {lance_name(item.expression.type)}: {remedy}."
    )
