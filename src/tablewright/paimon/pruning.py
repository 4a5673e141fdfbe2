"""Pruning by statistics: partitions for which a filter is false, files and row groups in which no row can match.

A filter is true where all that AND joins is true. So

- of a *partition*, whose values are known, every part of the filter that reads nothing but partition keys is asked;
- of a *unit* (a data file or a row group) some columns have a least and a greatest value. ``x < 5`` can't be true if
  it is not for the least one, ``x > 5`` if not for the greatest; AND, OR, IN, BETWEEN and IS NOT NULL follow from that.
  Each such question is asked of DataFusion, with the unit's values in place of the column: it compares as with rows.

Whatever is not understood, not known, or not certain may match. Of floats little is certain: their statistics leave
out NaN, which DataFusion takes for the greatest number, and do not tell the two zeros apart. An Arrow expression
can't be taken apart; Arrow itself tells for which partitions it can be true.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.types as at

from tablewright.expressions import CompiledExpression, Predicate
from tablewright.expressions.engine import ExpressionError, Frame
from tablewright.expressions.scope import empty_batch
from tablewright.expressions.translate import quote_name

if TYPE_CHECKING:
    from datafusion import Expr

__all__ = ["Bound", "is_bounded", "matching_partitions", "may_match"]

Mask = npt.NDArray[np.bool_]
Answers = Sequence[Mask]

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_LIST_MAX = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bound:
    """What is known of a column, for each of some units.

    No value is below ``low`` or above ``high``; either is null where that is not known. ``only_nulls`` is true where it
    is certain that there is no value at all.
    """

    low: pa.Array
    high: pa.Array
    only_nulls: Mask


def is_bounded(kind: pa.DataType) -> bool:
    """Whether least and greatest values of this type are made use of."""
    return bool(
        at.is_integer(kind) or at.is_floating(kind) or at.is_string(kind) or at.is_date(kind) or at.is_timestamp(kind)
    )


# ----------------------------------------------------------------------------------------------------------- partitions
def matching_partitions(predicate: Predicate, schema: pa.Schema, partitions: pa.RecordBatch) -> Mask:
    """For each row of partition values: whether the filter can be true in that partition.

    >>> from tablewright.expressions import compile_filter
    >>> schema = pa.schema([("day", pa.int32()), ("id", pa.int64())])
    >>> predicate = compile_filter("day > 1 and id = 7", schema)
    >>> matching_partitions(predicate, schema, pa.record_batch({"day": pa.array([1, 2, None], pa.int32())})).tolist()
    [False, True, False]
    """
    wanted = np.ones(partitions.num_rows, np.bool_)
    if not partitions.num_columns or not partitions.num_rows:
        return wanted
    if predicate.arrow is not None:
        return _of_arrow(predicate.arrow, schema, partitions)
    known = Frame(partitions)
    for part in () if predicate.sql is None else _conjuncts(_tree(predicate.sql, schema)):
        try:
            (values,) = known.values([part])
        except ExpressionError:
            continue  # it reads other columns, or fails for some partition
        if at.is_boolean(values.type):
            wanted &= pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return wanted


def _of_arrow(expression: pc.Expression, schema: pa.Schema, partitions: pa.RecordBatch) -> Mask:
    """Arrow's own pruning, with the partitions as guarantees of fragments that are never opened."""
    facts = []
    for row in range(partitions.num_rows):
        fact = pc.scalar(True)
        for name, column in zip(partitions.schema.names, partitions.columns, strict=True):
            value = column[row]
            if not value.is_valid:
                fact &= pc.field(name).is_null()
            elif not at.is_floating(value.type):
                fact &= pc.field(name) == value
        facts.append(fact)
    wanted = np.zeros(partitions.num_rows, np.bool_)
    try:
        files = ds.FileSystemDataset.from_paths(
            [str(row) for row in range(partitions.num_rows)],
            schema=schema,
            format=ds.ParquetFileFormat(),
            filesystem=fs.LocalFileSystem(),
            partitions=facts,
        )
        for fragment in files.get_fragments(expression):
            wanted[int(fragment.path)] = True
    except pa.ArrowException:
        wanted[:] = True
    return wanted


# ---------------------------------------------------------------------------------------------------------------- units
def may_match(predicate: Predicate, schema: pa.Schema, bounds: Mapping[str, Bound], units: int) -> Mask:
    """For each unit: whether a row of it can match. ``schema`` is the table's, ``bounds`` are of some of its columns.

    >>> from tablewright.expressions import compile_filter
    >>> schema = pa.schema([("id", pa.int64())])
    >>> bounds = {"id": Bound(low=pa.array([0, 10]), high=pa.array([9, 19]), only_nulls=np.zeros(2, np.bool_))}
    >>> may_match(compile_filter("id > 12 and id % 2 = 0", schema), schema, bounds, 2).tolist()
    [False, True]
    """
    if predicate.sql is None or not bounds or not units:
        return np.ones(units, np.bool_)
    questions = _Questions(bounds, schema, units)
    answer = questions.about(_tree(predicate.sql, schema))
    return answer(questions.answers())


class _Questions:
    """Comparisons of bounds, collected from a filter and then asked all at once."""

    def __init__(self, bounds: Mapping[str, Bound], schema: pa.Schema, units: int) -> None:
        self._bounds, self._units = bounds, units
        self._asked: list[Expr] = []
        free = " "
        while any(name.endswith(free + end) for name in schema.names for end in ("low", "high")):
            free += " "
        arrays = {f"{name}{free}low": bound.low for name, bound in bounds.items()}
        arrays |= {f"{name}{free}high": bound.high for name, bound in bounds.items()}
        self._frame = Frame(pa.RecordBatch.from_arrays(list(arrays.values()), list(arrays)))
        self._lows = {name: self._frame.parse(quote_name(f"{name}{free}low")) for name in bounds}
        self._highs = {name: self._frame.parse(quote_name(f"{name}{free}high")) for name in bounds}

    def answers(self) -> list[Mask]:
        """One mask per question: false where the answer is no. What can't be answered is not no."""
        try:
            return [self._mask(values) for values in (self._frame.values(self._asked) if self._asked else ())]
        except ExpressionError:
            return [self._alone(question) for question in self._asked]

    def _alone(self, question: Expr) -> Mask:
        try:
            (values,) = self._frame.values([question])
        except ExpressionError:
            return self._all
        return self._mask(values)

    def _mask(self, values: pa.Array) -> Mask:
        mask: Mask = pc.fill_null(values, True).to_numpy(zero_copy_only=False)
        return mask

    @property
    def _all(self) -> Mask:
        return np.ones(self._units, np.bool_)

    def about(self, tree: Expr) -> Callable[[Answers], Mask]:
        """A function of the answers: which units may hold rows for which a part of the filter is true."""
        variant = tree.variant_name()
        if variant == "BinaryExpr":
            operator = tree.rex_call_operator()
            left, right = tree.rex_call_operands()
            if operator in ("AND", "OR"):
                one, other = self.about(left), self.about(right)
                join = np.logical_and if operator == "AND" else np.logical_or
                return lambda answers: join(one(answers), other(answers))
            return self._comparison(operator, left, right)
        if variant == "IsNotNull":
            bound = self._bounds.get(_column(tree.rex_call_operands()[0]) or "")
            return lambda answers: self._all if bound is None else ~bound.only_nulls
        if variant in ("InList", "Between") and not tree.to_variant().negated():
            return self._range_or_list(variant, *tree.rex_call_operands())
        return lambda answers: self._all

    def _range_or_list(self, variant: str, column: Expr, *others: Expr) -> Callable[[Answers], Mask]:
        if variant == "Between":
            above, below = self._comparison(">=", column, others[0]), self._comparison("<=", column, others[1])
            return lambda answers: above(answers) & below(answers)
        if _column(column) not in self._bounds or len(others) > _LIST_MAX:
            return lambda answers: self._all
        each = [self._comparison("=", column, other) for other in others]
        return lambda answers: np.logical_or.reduce([one(answers) for one in each])

    def _comparison(self, operator: str, left: Expr, right: Expr) -> Callable[[Answers], Mask]:
        if _column(left) not in self._bounds:
            operator, left, right = _TURNED.get(operator, ""), right, left
        name = _column(left)
        if operator not in _TURNED or name is None or name not in self._bounds:
            return lambda answers: self._all
        bound, low, high = self._bounds[name], self._lows[name], self._highs[name]
        if at.is_floating(bound.low.type) and (operator in (">", ">=") or not _is_plain_number(right)):
            return lambda answers: self._all
        first = len(self._asked)
        if operator in ("<", "<=", "="):
            self._asked.append(low < right if operator == "<" else low <= right)
        if operator in (">", ">=", "="):
            self._asked.append(high > right if operator == ">" else high >= right)
        places = slice(first, len(self._asked))
        return lambda answers: np.logical_and.reduce([~bound.only_nulls, *answers[places]])


def _tree(sql: CompiledExpression, schema: pa.Schema) -> Expr:
    return _parsed(sql.sql, pa.schema([schema.field(name) for name in sql.columns]))


@lru_cache(maxsize=16)
def _parsed(sql: str, schema: pa.Schema) -> Expr:
    """All files of a scan are asked about the same filter: a process parses it once."""
    return Frame(empty_batch(schema)).parse(sql)


def _conjuncts(tree: Expr) -> Iterator[Expr]:
    if tree.variant_name() == "BinaryExpr" and tree.rex_call_operator() == "AND":
        for operand in tree.rex_call_operands():
            yield from _conjuncts(operand)
    else:
        yield tree


def _column(tree: Expr) -> str | None:
    return str(tree.canonical_name()) if tree.variant_name() == "Column" else None


def _is_plain_number(tree: Expr) -> bool:
    """Whether a tree is a literal number, and neither zero nor infinite nor NaN."""
    value: Any = tree.python_value().as_py() if tree.variant_name() == "Literal" else None
    return isinstance(value, int | float) and bool(value) and math.isfinite(value)
