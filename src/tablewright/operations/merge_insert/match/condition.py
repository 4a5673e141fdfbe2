"""Conditions of clauses, and expressions over both sides of a match: ``source.x`` and ``target.x`` (:mod:`.sides`).

The two sides are two structs to the expression; only the fields that it names are put into them. Of the table, columns
are read for rows that match, and only if a condition looks at any. Conditions of several clauses are tried in order,
each on the rows that none before it took. A condition that is null counts as false.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.data.read import no_columns
from tablewright.errors import InvalidRequest
from tablewright.expressions.filters import Predicate, compile_filter
from tablewright.expressions.scope import with_system_columns
from tablewright.expressions.sql import CompiledExpression, compile_sql
from tablewright.expressions.translate import Translation, translate
from tablewright.format.schema import Schema
from tablewright.operations.merge_insert.clauses import InvalidMerge
from tablewright.operations.merge_insert.match.sides import SIDES, BothSides, OneSide, both_sides, pruned
from tablewright.reading.projection import Path

__all__ = [
    "Choices",
    "MatchCondition",
    "MatchConditions",
    "chosen_clauses",
    "compile_condition",
    "compile_over_both",
    "compile_over_one",
    "compile_side_condition",
    "compile_table_condition",
    "rows_of_both",
    "some_rows",
    "true_where",
]

Mask = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]
Choices = npt.NDArray[np.int8]
"""The number of the clause that takes a row; -1: none does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchCondition:
    """A compiled condition, the columns of the source and the fields of the table that it reads."""

    predicate: Predicate
    source_columns: tuple[str, ...]
    target_paths: tuple[Path, ...]

    def mask(self, source: pa.RecordBatch, target: pa.RecordBatch) -> Mask:
        """For which pairs of rows the condition is true."""
        return true_where(self.predicate, rows_of_both(self.predicate.columns, source, target))


@dataclass(frozen=True, slots=True)
class MatchConditions:
    """Conditions of clauses on matched rows, in the order in which they are tried. ``None`` holds for all rows."""

    items: tuple[MatchCondition | None, ...]

    @property
    def source_columns(self) -> tuple[str, ...]:
        """The columns of the source that they read."""
        return tuple(dict.fromkeys(name for item in self.items if item for name in item.source_columns))

    @property
    def target_paths(self) -> tuple[Path, ...]:
        """The fields of the table that they read."""
        return tuple(dict.fromkeys(path for item in self.items if item for path in item.target_paths))

    def choose(self, source: pa.RecordBatch, target: pa.RecordBatch) -> Choices:
        """For each pair of rows, which clause takes it."""
        holds = [None if item is None else partial(_holds, item, source, target) for item in self.items]
        return _first_true(source.num_rows, holds)

    def __str__(self) -> str:
        return "; ".join(item.predicate.text for item in self.items if item is not None)


def _holds(condition: MatchCondition, source: pa.RecordBatch, target: pa.RecordBatch, rows: Rows) -> Mask:
    return condition.mask(some_rows(source, rows), some_rows(target, rows))


def some_rows(batch: pa.RecordBatch, rows: Rows) -> pa.RecordBatch:
    """Ascending rows of a batch, which may have no columns."""
    if len(rows) == batch.num_rows:
        return batch
    return batch.take(pa.array(rows)) if batch.num_columns else no_columns(len(rows))


def chosen_clauses(conditions: Sequence[Predicate | None], rows: pa.RecordBatch) -> Choices:
    """The same for rows of one side."""
    holds = [None if condition is None else partial(_holds_here, condition, rows) for condition in conditions]
    return _first_true(rows.num_rows, holds)


def _holds_here(condition: Predicate, batch: pa.RecordBatch, rows: Rows) -> Mask:
    return true_where(condition, some_rows(batch, rows))


def _first_true(rows: int, holds: Sequence[Callable[[Rows], Mask] | None]) -> Choices:
    chosen, left = np.full(rows, -1, np.int8), np.arange(rows)
    for number, holding in enumerate(holds):
        if not len(left):
            break
        takes = np.ones(len(left), np.bool_) if holding is None else holding(left)
        chosen[left[takes]] = number
        left = left[~takes]
    return chosen


def rows_of_both(used: Sequence[str], source: pa.RecordBatch, target: pa.RecordBatch) -> pa.RecordBatch:
    """Pairs of rows as expressions over both sides read them: the sides that are ``used``, each a struct."""
    sides = {"source": source, "target": target}
    names = [side for side in SIDES if side in used]
    if not names:
        return no_columns(source.num_rows)
    return pa.RecordBatch.from_arrays([_struct(sides[side]) for side in names], names=names)


def true_where(predicate: Predicate, batch: pa.RecordBatch) -> Mask:
    """For which rows a predicate is true; one that fails on a row is :class:`InvalidMerge`."""
    try:
        return predicate.mask(batch)
    except InvalidRequest as error:
        raise InvalidMerge(str(error)) from error


def _struct(batch: pa.RecordBatch) -> pa.Array:
    return pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))


# ------------------------------------------------------------------------------------------------------------ compiling
def compile_condition(
    text: str, table: Schema, source: pa.Schema, now_ns: int, clause: str = "when_matched_update_all"
) -> MatchCondition:
    """Resolve the names of a condition and check it.

    >>> table = Schema.from_arrow(pa.schema({"id": pa.int64(), "x": pa.int64()}))
    >>> condition = compile_condition("source.x > target.x", table, table.to_arrow(), 0)
    >>> condition.mask(pa.record_batch({"x": [1, 9]}), pa.record_batch({"x": [5, 5]})).tolist()
    [False, True]
    """
    try:
        translation, used = _over_both(text, table, source, now_ns, condition=True)
        predicate = compile_filter(
            text, used, now_ns=now_ns, quoted_names=translation.quoted_names, scope=BothSides(used)
        )
    except InvalidRequest as error:
        raise InvalidMerge(f"{error} The condition of {clause} uses source.<column> and target.<column>.") from error
    paths = predicate.paths
    return MatchCondition(
        predicate=predicate,
        source_columns=tuple(dict.fromkeys(path[1] for path in paths if path[0] == "source")),
        target_paths=tuple(dict.fromkeys(path[1:] for path in paths if path[0] == "target")),
    )


def compile_over_both(text: str, table: Schema, source: pa.Schema, now_ns: int) -> tuple[CompiledExpression, pa.Schema]:
    """An expression over both sides, and the schema of what it reads; its paths begin with a side."""
    translation, used = _over_both(text, table, source, now_ns, condition=False)
    scope = BothSides(used)
    return compile_sql(text, used, now_ns=now_ns, quoted_names=translation.quoted_names, scope=scope), used


def _over_both(
    text: str, table: Schema, source: pa.Schema, now_ns: int, *, condition: bool
) -> tuple[Translation, pa.Schema]:
    both = both_sides(source, table)
    translation = translate(text, BothSides(both), now_ns, condition=condition)
    wanted = {side: [path[1:] for path in translation.paths if path[0] == side] for side in SIDES}
    for side, fields in wanted.items():
        if any(not path for path in fields):
            raise InvalidRequest(
                f"Invalid user input: {side} is a side of the merge, not a column: name one of its columns."
            )
    return translation, pa.schema([pa.field(side, pruned(both.field(side).type, wanted[side])) for side in SIDES])


def compile_over_one(text: str, known: pa.Schema, side: str, now_ns: int) -> tuple[CompiledExpression, pa.Schema]:
    """An expression over the columns of one side."""
    return compile_sql(text, known, now_ns=now_ns, scope=OneSide(known, side)), known


def compile_side_condition(text: str, known: pa.Schema, side: str, now_ns: int, clause: str) -> Predicate:
    """A condition over the columns of one side."""
    try:
        return compile_filter(text, known, now_ns=now_ns, scope=OneSide(known, side))
    except InvalidRequest as error:
        raise InvalidMerge(f"{error} The condition of {clause} uses {side}.<column>.") from error


def compile_table_condition(text: str, table: Schema, now_ns: int | None = None) -> Predicate:
    """The condition of ``when_not_matched_by_source_delete``: over the table's own columns."""
    known = with_system_columns(table)
    moment = time.time_ns() if now_ns is None else now_ns
    return compile_filter(text, known, now_ns=moment, scope=OneSide(known, "target"))
