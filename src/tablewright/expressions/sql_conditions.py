"""From a compiled filter to a tree of conditions on single columns (:mod:`.conditions`).

DataFusion itself says what a filter means: the tree that its optimiser makes has fitted types, folded constants, and
literals in the column's own type wherever a cast would change nothing. Only what is plain in that tree becomes a
condition: a column beside a literal of its type, or a column that was cast without a change to any value
(:mod:`.placing`). All else is :class:`~tablewright.expressions.conditions.Unknown`. A simple filter, which is evaluated
by Arrow's kernels, is read off those without a parser.

Fields inside structs become columns of their own before, as the optimiser would pull them out otherwise.

Tests: ``tests/unit/expressions/test_sql_conditions.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as at

from tablewright.expressions.arrow_conditions import arrow_tree
from tablewright.expressions.conditions import And, Constant, Leaf, Not, Or, Path, Tree, Unknown
from tablewright.expressions.engine import ExpressionError, Frame
from tablewright.expressions.filters import Predicate
from tablewright.expressions.kernels import Condition
from tablewright.expressions.patterns import pattern_query
from tablewright.expressions.placing import compared, place_of, plain_type
from tablewright.expressions.queries import Contains, HasAll, HasAny, IsIn, IsNull, Query
from tablewright.expressions.scope import SchemaLike, empty_batch, with_system_columns
from tablewright.expressions.sql import CompiledExpression
from tablewright.expressions.translate import column_sql, quote_name

if TYPE_CHECKING:
    from datafusion import Expr

__all__ = ["conditions_of"]

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_KERNELS = {"equal": "=", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
_KERNEL_PATTERNS = {"starts_with": "{}%", "ends_with": "%{}", "match_substring": "%{}%"}


def conditions_of(predicate: Predicate, schema: SchemaLike | pa.Schema) -> Tree:
    """The tree that means what the filter means.

    >>> from tablewright.expressions.filters import compile_filter
    >>> schema = pa.schema([("x", pa.int8()), ("s", pa.struct([("y", pa.string())]))])
    >>> print(conditions_of(compile_filter("x < 1.5 and not (s.y = 'a' or x % 2 = 0)", schema), schema))
    (x <= 1 AND (NOT(s.y = 'a') AND ?))
    """
    if predicate.simple is not None:
        return _of_kernel(predicate.simple)
    own = with_system_columns(schema)
    if predicate.sql is not None:
        return _of_sql(predicate.sql, own)
    return Unknown() if predicate.arrow is None else arrow_tree(predicate.arrow, own)


# ------------------------------------------------------------------------------------------------------------- kernels
def _of_kernel(condition: Condition) -> Tree:
    """The conditions of Arrow's kernels have literals in the column's type."""
    function = condition.function
    if function in ("AND", "OR"):
        parts = tuple(_of_kernel(operand) for operand in condition.operands)
        return And(parts) if function == "AND" else Or(parts)
    column = condition.operands[0]
    if not isinstance(column, str):
        return Unknown()
    path = (column,)
    if condition.values is not None:
        return Leaf(path, IsIn(condition.values))
    if function in ("is_null", "is_valid"):
        return Leaf(path, IsNull()) if function == "is_null" else Not(Leaf(path, IsNull()))
    literal = condition.operands[1]
    if function in _KERNEL_PATTERNS:
        query = pattern_query(_KERNEL_PATTERNS[function].format(literal.as_py()), literal.type)
        return Unknown() if query is None else Leaf(path, *query)
    return _comparison(path, _KERNELS[function], literal, literal.type) if function in _KERNELS else Unknown()


# ----------------------------------------------------------------------------------------------------------------- SQL
def _of_sql(compiled: CompiledExpression, schema: pa.Schema) -> Tree:
    sql = compiled.sql
    columns: dict[str, Path] = {}
    for path in sorted(compiled.paths, key=len, reverse=True):  # a path comes before those that it begins with
        name = path[0]
        if len(path) > 1:
            name = f"{path[0]} {len(columns)}"
            while name in schema.names:
                name += "'"
            sql = sql.replace(column_sql(path), quote_name(name))
        columns[name] = path
    fields = [pa.field(name, _type_at(schema, path)) for name, path in columns.items()]
    try:
        frame = Frame(empty_batch(pa.schema(fields)))
        parts = frame.simplified(frame.parse(sql))
        if isinstance(parts, bool):
            return Constant(parts)
        reader = _Reader({field.name: (columns[field.name], plain_type(field.type)) for field in fields})
        return And(tuple(reader.tree(part) for part in parts)) if len(parts) > 1 else reader.tree(parts[0])
    except ExpressionError:
        return Unknown()


def _type_at(schema: pa.Schema, path: Path) -> pa.DataType:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        assert isinstance(kind, pa.StructType)
        kind = kind.field(name).type
    return kind


class _Reader:
    """Walks DataFusion's tree. ``columns`` are paths and plain types by the names in it."""

    def __init__(self, columns: Mapping[str, tuple[Path, pa.DataType]]) -> None:
        self._columns = columns

    def tree(self, tree: Expr) -> Tree:
        """The tree of a boolean expression."""
        variant = tree.variant_name()
        read: Callable[[Expr], Tree] | None = {
            "BinaryExpr": self._binary,
            "Not": lambda tree: Not(self.tree(tree.rex_call_operands()[0])),
            "IsNull": self._null_test,
            "IsNotNull": lambda tree: Not(self._null_test(tree)),
            "IsUnknown": self._null_test,
            "IsNotUnknown": lambda tree: Not(self._null_test(tree)),
            "IsTrue": lambda tree: self._truth_test(tree, True),
            "IsNotTrue": lambda tree: Not(self._truth_test(tree, True)),
            "IsFalse": lambda tree: self._truth_test(tree, False),
            "IsNotFalse": lambda tree: Not(self._truth_test(tree, False)),
            "InList": self._in_list,
            "Between": self._between,
            "Like": self._like,
            "ScalarFunction": self._function,
            "Column": self._flag,
            "Literal": self._constant,
        }.get(variant)
        return Unknown() if read is None else read(tree)

    # ------------------------------------------------------------------------------------------------ parts of it
    def _column(self, tree: Expr) -> tuple[Path, pa.DataType, bool] | None:
        """Path and type of a column, and whether it is cast."""
        is_cast = tree.variant_name() == "Cast"
        column = tree.rex_call_operands()[0] if is_cast else tree
        if column.variant_name() != "Column":
            return None
        found = self._columns.get(column.to_variant().name())
        return None if found is None else (*found, is_cast)

    def _binary(self, tree: Expr) -> Tree:
        operator = tree.rex_call_operator()
        left, right = tree.rex_call_operands()
        if operator in ("AND", "OR"):
            parts = self.tree(left), self.tree(right)
            return And(parts) if operator == "AND" else Or(parts)
        if operator not in _TURNED:
            return Unknown()
        if left.variant_name() == "Literal":
            operator, left, right = _TURNED[operator], right, left
        column, literal = self._column(left), _literal(right)
        if column is None or literal is None:
            return Unknown()
        if not literal.is_valid:
            return Constant(None)
        return _comparison(column[0], operator, literal, column[1])

    def _null_test(self, tree: Expr) -> Tree:
        column = self._column(tree.rex_call_operands()[0])
        return Unknown() if column is None or column[2] else Leaf(column[0], IsNull())

    def _truth_test(self, tree: Expr, wanted: bool) -> Tree:
        flag = self.tree(tree.rex_call_operands()[0])
        if not isinstance(flag, Leaf):
            return Unknown()
        return And((flag if wanted else Not(flag), Not(Leaf(flag.path, IsNull()))))

    def _flag(self, tree: Expr) -> Tree:
        column = self._column(tree)
        if column is None or not at.is_boolean(column[1]):
            return Unknown()
        return Leaf(column[0], IsIn(pa.array([True])))

    def _constant(self, tree: Expr) -> Tree:
        literal = _literal(tree)
        if literal is None or not (at.is_boolean(literal.type) or at.is_null(literal.type)):
            return Unknown()
        return Constant(literal.as_py())

    def _in_list(self, tree: Expr) -> Tree:
        operand, *others = tree.rex_call_operands()
        column, literals = self._column(operand), [_literal(other) for other in others]
        if column is None or any(literal is None for literal in literals):
            return Unknown()
        path, kind, _ = column
        valid = [literal for literal in literals if literal is not None and literal.is_valid]
        places = [place_of(literal, kind) for literal in valid]
        if any(place is None for place in places):
            return Unknown()
        exact = [place.value for place in places if place is not None and place.exact]
        values = [value.as_py() for value in exact if value is not None]
        found: Tree = Leaf(path, IsIn(pa.array(values, kind)))
        if at.is_floating(kind) and 0 in values:  # DataFusion tells the zeros apart, or not, by the length of the list
            found = Leaf(path, IsIn(pa.array([*values, 0.0, -0.0], kind)), exact=False)
        if len(valid) < len(literals):
            found = Or((found, Constant(None)))
        return Not(found) if tree.to_variant().negated() else found

    def _between(self, tree: Expr) -> Tree:
        operand, *bounds = tree.rex_call_operands()
        column, literals = self._column(operand), [_literal(bound) for bound in bounds]
        if column is None or any(literal is None or not literal.is_valid for literal in literals):
            return Unknown()
        low, high = literals
        assert low is not None and high is not None
        found = And((_comparison(column[0], ">=", low, column[1]), _comparison(column[0], "<=", high, column[1])))
        return Not(found) if tree.to_variant().negated() else found

    def _like(self, tree: Expr) -> Tree:
        like = tree.to_variant()
        operand, pattern = tree.rex_call_operands()
        column, literal = self._column(operand), _literal(pattern)
        is_plain = like.escape_char() is None and "ILIKE" not in str(tree.rex_call_operator()).upper()
        if column is None or column[2] or literal is None or not literal.is_valid or not is_plain:
            return Unknown()
        query = pattern_query(str(literal.as_py()), column[1])
        if query is None:
            return Unknown()
        found = Leaf(column[0], *query)
        return Not(found) if like.negated() else found

    def _function(self, tree: Expr) -> Tree:
        name, operands = tree.rex_call_operator(), tree.rex_call_operands()
        if len(operands) != 2:
            return Unknown()
        column, literal = self._column(operands[0]), _literal(operands[1])
        if column is None or literal is None or not literal.is_valid:
            return Unknown()
        path, kind, is_cast = column
        if name in ("contains", "starts_with") and not is_cast and literal.as_py():
            text = str(literal.as_py())
            query = pattern_query(f"{text}%" if name == "starts_with" else f"%{text}%", kind)
            if name == "contains":
                query = (Contains(text), True) if _is_text(kind) else None
            return Unknown() if query is None or not query[1] else Leaf(path, *query)
        if name in _LISTS and isinstance(kind, pa.ListType | pa.LargeListType):
            return _list_condition(path, _LISTS[name], literal, plain_type(kind.value_type))
        return Unknown()


_LISTS: dict[str, Callable[[pa.Array], Query]] = {"array_has": HasAny, "array_has_any": HasAny, "array_has_all": HasAll}


def _literal(tree: Expr) -> pa.Scalar | None:
    if tree.variant_name() != "Literal":
        return None
    try:
        value: Any = tree.python_value()
    except Exception:  # DataFusion raises a bare one for types that Python does not get
        return None
    return value if isinstance(value, pa.Scalar) else None


def _comparison(path: Path, operator: str, literal: pa.Scalar, kind: pa.DataType) -> Tree:
    place = place_of(literal, kind)
    if place is None:
        return Unknown()
    if operator == "!=":
        return Not(_comparison(path, "=", literal, kind))
    found = compared(operator, place)
    if not isinstance(found, bool):
        return Leaf(path, found)
    never = Leaf(path, IsIn(pa.array([], kind)))
    return Not(never) if found else never


def _list_condition(path: Path, make: Callable[[pa.Array], Query], literal: pa.Scalar, kind: pa.DataType) -> Tree:
    """Whether a list has values; a set with a null among it, or without any value, is left to the filter."""
    is_list = at.is_list(literal.type) or at.is_large_list(literal.type)
    given: Any = literal
    wanted: pa.Array = given.values if is_list else pa.array([literal.as_py()], literal.type)
    if not len(wanted) or wanted.null_count:
        return Unknown()
    places = [place_of(value, kind) for value in wanted]
    if any(place is None or not place.exact or place.value is None for place in places):
        return Unknown()
    values = [place.value.as_py() for place in places if place is not None and place.value is not None]
    if at.is_floating(kind) and any(value != value or not value for value in values):
        return Unknown()  # which zeros and which NaN are equal in a list depends on the function
    return Leaf(path, make(pa.array(values, kind)))


def _is_text(kind: pa.DataType) -> bool:
    return bool(at.is_string(kind) or at.is_large_string(kind))
