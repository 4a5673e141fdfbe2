"""SQL over one row: compile an expression once, evaluate it over any number of batches.

1. *Translate* Lance's names and quotes (:mod:`.translate`).
2. *Check* the tree that DataFusion parsed (:mod:`.comparisons`), type it, and run it over zero rows: DataFusion folds
   constants then, so a literal that can't be cast fails here and not in the middle of a scan.
3. *Evaluate*: a compiled expression is plain text and names, so it can be pickled in a task. Each batch is parsed
   again, which costs microseconds.

Services ask the same again and again: the last expressions are kept with the schema that they were compiled for, except
those that hold a moment.

Deliberate differences from pylance: a comparison of texts where a column was meant is an error (:mod:`.quotes`), so is
text after a ``;`` or a second expression after a comma (pylance drops it silently), and what :mod:`.comparisons`
lists as plain is allowed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from tablewright.errors import InvalidRequest
from tablewright.expressions.comparisons import check_tree
from tablewright.expressions.engine import ExpressionError, Frame, evaluate
from tablewright.expressions.kernels import Condition, condition_of, equality_of
from tablewright.expressions.quotes import check_quotes
from tablewright.expressions.scope import SchemaLike, Scope, arrow_schema, empty_batch, with_system_columns
from tablewright.expressions.translate import Translation, column_sql, translate

if TYPE_CHECKING:
    from datafusion import Expr

__all__ = ["CompiledExpression", "Projection", "QuotedNames", "compile_projection", "compile_sql"]

QuotedNames: TypeAlias = Mapping[str, tuple[str, ...]]

_KEPT_MAX, _KEPT_LENGTH_MAX = 128, 4096
_kept: dict[tuple[str, bool], tuple[pa.Schema, CompiledExpression]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompiledExpression:
    """A checked expression. ``columns`` are the top-level columns it reads, ``paths`` the exact (nested) fields.

    The batch given to :meth:`evaluate` has these columns, among others; a struct may lack children not in ``paths``.
    ``condition`` is the same on Arrow's kernels, if this is a filter, and a simple one.
    """

    text: str
    sql: str
    columns: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    type: pa.DataType
    nullable: bool = True
    condition: Condition | None = None

    @property
    def field_path(self) -> tuple[str, ...] | None:
        """The field that the expression is, if it is nothing but a name."""
        return self.paths[0] if len(self.paths) == 1 and self.sql == column_sql(self.paths[0]) else None

    def evaluate(self, batch: pa.RecordBatch) -> pa.Array:
        """One value per row of the batch."""
        try:
            return evaluate(batch, self.columns, [self.sql])[0]
        except ExpressionError as error:
            raise InvalidRequest(f"Invalid user input: {error}. The expression was: {self.text}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """Named expressions that make new batches: ``{"double": "x * 2"}``."""

    names: tuple[str, ...]
    expressions: tuple[CompiledExpression, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """The top-level columns that the expressions read."""
        return tuple(dict.fromkeys(name for each in self.expressions for name in each.columns))

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The exact (nested) fields that the expressions read."""
        return tuple(dict.fromkeys(path for each in self.expressions for path in each.paths))

    @property
    def schema(self) -> pa.Schema:
        """The schema of the new batches."""
        fields = zip(self.names, self.expressions, strict=True)
        return pa.schema([pa.field(name, each.type, each.nullable) for name, each in fields])

    def evaluate(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The new batch, with as many rows."""
        try:
            arrays = evaluate(batch, self.columns, [each.sql for each in self.expressions])
        except ExpressionError as error:
            texts = ", ".join(each.text for each in self.expressions)
            raise InvalidRequest(f"Invalid user input: {error}. The expressions were: {texts}") from error
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def compile_sql(
    expression: str,
    schema: SchemaLike | pa.Schema,
    *,
    now_ns: int | None = None,
    condition: bool = False,
    quoted_names: QuotedNames | None = None,
    scope: Scope | None = None,
) -> CompiledExpression:
    """Compile an expression over the rows of a table (its columns and the system columns).

    ``now_ns`` is the moment that ``now()`` means, in nanoseconds since the epoch; the current time if not given.
    ``condition`` reads ``regexp_match`` as a boolean where one is expected, as filters do. ``quoted_names`` are
    texts in double quotes that name fields in a wider scope than ``schema``. ``scope`` finds names by other rules.

    >>> schema = pa.schema([("x", pa.int32()), ("name", pa.string())])
    >>> compiled = compile_sql("X + 1", schema)
    >>> compiled.columns, str(compiled.type)
    (('x',), 'int32')
    >>> compiled.evaluate(pa.record_batch({"x": pa.array([1, 2], pa.int32())})).to_pylist()
    [2, 3]
    """
    if not isinstance(expression, str):
        raise InvalidRequest(f"Invalid user input: an SQL expression is text, not {type(expression).__name__}")
    own = arrow_schema(schema)
    may_keep = not quoted_names and scope is None
    found = _kept.get((expression, condition)) if may_keep else None
    if found is not None and found[0].equals(own, check_metadata=True):
        return found[1]
    scope = scope or Scope(with_system_columns(own))
    moment = time.time_ns() if now_ns is None else now_ns
    try:
        compiled, lasts = _compile(expression, scope, moment, condition, quoted_names or {})
        if lasts and may_keep:
            _keep((expression, condition), own, compiled)
        return compiled
    except InvalidRequest as error:
        raise InvalidRequest(_in_full(str(error), expression, scope)) from None
    except ExpressionError as error:
        raise InvalidRequest(_in_full(f"Invalid user input: {error}.", expression, scope)) from error


def compile_projection(
    expressions: Mapping[str, str], schema: SchemaLike | pa.Schema, *, now_ns: int | None = None
) -> Projection:
    """Compile ``{name: sql}``, keeping its order.

    >>> projection = compile_projection({"y": "x * 2.5"}, pa.schema([("x", pa.int64())]))
    >>> projection.evaluate(pa.record_batch({"x": [2]})).to_pylist()
    [{'y': 5.0}]
    """
    moment = time.time_ns() if now_ns is None else now_ns
    compiled = tuple(compile_sql(sql, schema, now_ns=moment) for sql in expressions.values())
    return Projection(names=tuple(expressions), expressions=compiled)


def _in_full(message: str, expression: str, scope: Scope) -> str:
    """The message with the expression and the columns there are, unless it shows them already."""
    if not expression or expression not in message:
        message = f"{message} The expression was: {expression!r}."
    known = ", ".join(scope.schema.names)
    return message if known in message else f"{message} The columns are: {known}."


def _keep(key: tuple[str, bool], schema: pa.Schema, compiled: CompiledExpression) -> None:
    if len(key[0]) > _KEPT_LENGTH_MAX:
        return
    if len(_kept) >= _KEPT_MAX:
        _kept.clear()
    _kept[key] = schema, compiled


def _compile(
    expression: str, scope: Scope, now_ns: int, condition: bool, names: QuotedNames
) -> tuple[CompiledExpression, bool]:
    """The expression, and whether it means the same at any moment."""
    translation = translate(expression, scope, now_ns, condition=condition)
    sql = translation.sql
    if condition and not translation.quoted_names and not names:
        simple = equality_of(sql, {name: scope.schema.field(name).type for name in translation.columns})
        if simple is not None:  # without DataFusion, which takes a tenth of a second to load
            return _simple(expression, translation, simple), True
    frame = Frame(empty_batch(pa.schema([scope.schema.field(name) for name in translation.columns])))
    tree = frame.parse(sql)
    if quoted := translation.quoted_names or names:
        check_quotes(tree, quoted, condition=condition)
    types = {name: scope.schema.field(name).type for name in translation.columns}
    if condition and (simple := condition_of(tree, types)) is not None:  # it compares nothing but what fits
        return _simple(expression, translation, simple), not translation.momentary
    check_tree(frame, tree)
    literal_type = _literal_type(frame, tree)
    if literal_type is not None:
        sql = f"arrow_cast({sql}, '{literal_type}')"
        tree = frame.parse(sql)
    value = frame.values([tree])[0]
    compiled = CompiledExpression(
        text=expression,
        sql=sql,
        columns=translation.columns,
        paths=translation.paths,
        type=value.type,
        nullable=frame.field(tree).nullable,
    )
    return compiled, not translation.momentary


def _simple(expression: str, translation: Translation, condition: Condition) -> CompiledExpression:
    return CompiledExpression(
        text=expression,
        sql=translation.sql,
        columns=translation.columns,
        paths=translation.paths,
        type=pa.bool_(),
        condition=condition,
    )


_INTEGER_NAMES = {
    kind: str(kind).replace("u", "U", 1).replace("int", "Int")
    for kind in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
}
_ARITHMETIC = frozenset("+-*/%")


def _literal_type(frame: Frame, tree: Expr) -> str | None:
    """``column op literal`` has the column's integer type, as in Lance, not the literal's wider one."""
    if tree.variant_name() != "BinaryExpr" or tree.rex_call_operator() not in _ARITHMETIC:
        return None
    left, right = tree.rex_call_operands()
    column, literal = (left, right) if right.variant_name() == "Literal" else (right, left)
    if literal.variant_name() != "Literal" or column.variant_name() not in ("Column", "ScalarFunction"):
        return None
    kind = frame.field(column).type
    if kind not in _INTEGER_NAMES or not pa.types.is_integer(frame.field(literal).type):
        return None
    try:
        pa.scalar(literal.python_value().as_py(), kind)
    except (pa.ArrowInvalid, OverflowError):
        return None
    return _INTEGER_NAMES[kind]
