"""Spark's expressions over one row in Lance's dialect, where both mean the same. All else is refused.

Where the dialects differ, the text that means the same is written: ``concat`` is null if an argument is (``||``),
``a / 2`` is a division of doubles, ``ceil`` gives a whole number, ``<=>`` is ``IS NOT DISTINCT FROM``. Moments without
a zone are those of the session's zone in Spark, and of UTC in Lance: they are refused if that is not the same.

Tests: ``tests/unit/statements/test_expressions.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from tablewright.statements.place import InvalidStatement, Text

__all__ = ["Translator", "column_path", "quoted"]

_PLAIN = re.compile(r"[A-Za-z_]\w*\Z")
_UTC = frozenset({"utc", "etc/utc", "z", "gmt", "etc/gmt", "+00:00", "utc+00:00"})
_BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.And: "AND",
    exp.Or: "OR",
    exp.DPipe: "||",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
    exp.Like: "LIKE",
    exp.ILike: "ILIKE",
}
_CALLS: dict[type[exp.Expr], str] = {
    exp.Lower: "lower({})",
    exp.Upper: "upper({})",
    exp.Length: "length({})",
    exp.Abs: "abs({})",
    exp.Ceil: "cast(ceil({}) as bigint)",
    exp.Floor: "cast(floor({}) as bigint)",
    exp.Trim: "trim({})",
    exp.StartsWith: "starts_with({})",
    exp.EndsWith: "ends_with({})",
    exp.RegexpLike: "regexp_like({})",
    exp.ArrayContains: "array_has({})",
    exp.Contains: "(strpos({}) > 0)",
    exp.Nullif: "nullif({})",
    exp.Coalesce: "coalesce({})",
}
_TYPES = {
    exp.DType.TINYINT: "tinyint",
    exp.DType.SMALLINT: "smallint",
    exp.DType.INT: "int",
    exp.DType.BIGINT: "bigint",
    exp.DType.FLOAT: "float",
    exp.DType.DOUBLE: "double",
    exp.DType.BOOLEAN: "boolean",
    exp.DType.TEXT: "string",
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMPNTZ: "timestamp",
}
_MOMENTS = (exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPLTZ)


def quoted(name: str, *, always: bool = False) -> str:
    """A name as Lance's dialect takes it."""
    return name if _PLAIN.match(name) and not always else "`" + name.replace("`", "``") + "`"


def column_path(node: exp.Expr) -> list[str] | None:
    """The parts of a column's name, ``None`` if the node is something else."""
    if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
        return [part.name for part in node.parts]
    if isinstance(node, exp.Dot):
        above = column_path(node.this)
        return None if above is None else [*above, node.expression.name]
    return None


@dataclass(frozen=True, slots=True)
class Translator:
    """Translates expressions of one statement. ``sides`` are qualifiers (in lower case) and what they become; ``""``
    leaves them out. ``zone`` is that of the session."""

    text: Text
    sides: Mapping[str, str] = field(default_factory=dict)
    zone: str = "UTC"

    def sql(self, node: exp.Expr) -> str:
        """The expression in Lance's dialect; :class:`InvalidStatement` if it has none."""
        path = column_path(node)
        if path is not None:
            return self._column(path)
        operator = _BINARY.get(type(node))
        if operator is not None:
            return self._binary(node, operator)
        call = _CALLS.get(type(node))
        if call is not None:
            return self._call(node, call)
        translate = _SPECIAL.get(type(node))
        if translate is not None:
            return translate(self, node)
        raise self._refused(node)

    def _refused(self, node: exp.Expr, why: str = "") -> InvalidStatement:
        if isinstance(node, exp.Subquery | exp.Select | exp.Exists) or node.find(exp.Select) is not None:
            return self.text.wrong(
                "A subquery can't be part of an expression over the table's rows: use MERGE INTO … USING (…).", node
            )
        shown = node.sql(dialect="databricks")
        reason = why or "it has no equal in Lance's expressions over one row"
        return self.text.wrong(f"{shown} can't be translated: {reason}.", node)

    def _column(self, path: list[str]) -> str:
        if len(path) > 1 and path[0].lower() in self.sides:
            side = self.sides[path[0].lower()]
            path = [*([side] if side else []), *path[1:]]
        return ".".join(map(quoted, path))

    def _binary(self, node: exp.Expr, operator: str) -> str:
        return f"({self.sql(node.this)} {operator} {self.sql(node.expression)})"

    def _call(self, node: exp.Expr, call: str) -> str:
        known = {"this", "expression", "expressions"}
        extra = [name for name, value in node.args.items() if value and name not in known]
        if extra and not (isinstance(node, exp.Length) and extra == ["binary"]):
            raise self._refused(node)
        arguments = [node.this, node.args.get("expression"), *node.args.get("expressions", [])]
        return call.format(", ".join(self.sql(each) for each in arguments if each is not None))

    # ------------------------------------------------------------------------------------------------------ one by one
    def _literal(self, node: exp.Expr) -> str:
        return "'" + node.name.replace("'", "''") + "'" if node.is_string else node.name

    def _concat(self, node: exp.Expr) -> str:
        return "(" + " || ".join(self.sql(each) for each in node.expressions) + ")"

    def _divided(self, node: exp.Expr) -> str:
        divisor = node.expression
        if not (isinstance(divisor, exp.Literal) and not divisor.is_string and float(divisor.name) != 0):
            why = "a division by zero is an error in Spark, and not in Lance; divide by a number"
            raise self._refused(node, why)
        return f"(cast({self.sql(node.this)} as double) / {divisor.name})"

    def _cast(self, node: exp.Expr) -> str:
        kind = node.args["to"]
        name = self._type(kind, node)
        if isinstance(node, exp.TryCast):
            return f"try_cast({self.sql(node.this)} as {name})"
        if name in ("date", "timestamp") and isinstance(node.this, exp.Literal) and node.this.is_string:
            return f"{name} {self._literal(node.this)}"
        return f"cast({self.sql(node.this)} as {name})"

    def _type(self, kind: exp.Expr, node: exp.Expr) -> str:
        if kind.this in _MOMENTS:
            self._check_zone(node)
            return "timestamp"
        if kind.this == exp.DType.DECIMAL:
            size = [each.name for each in kind.expressions] or ["10", "0"]
            return f"decimal({', '.join([*size, '0'][:2])})"
        if kind.this not in _TYPES or kind.expressions:
            raise self._refused(node, "there is no such type in Lance's expressions")
        return _TYPES[kind.this]

    def _check_zone(self, node: exp.Expr) -> None:
        if self.zone.lower() not in _UTC:
            why = f"it is a moment in the session's zone {self.zone}; set spark.sql.session.timeZone to UTC"
            raise self._refused(node, why)

    def _now(self, node: exp.Expr) -> str:
        self._check_zone(node)
        return "now()"

    def _today(self, node: exp.Expr) -> str:
        self._check_zone(node)
        return "current_date()"

    def _substring(self, node: exp.Expr) -> str:
        start, length = node.args.get("start"), node.args.get("length")
        if not (isinstance(start, exp.Literal) and start.name.isdecimal() and int(start.name) > 0):
            raise self._refused(node, "its start has to be a positive number")
        rest = "" if length is None else f", {self.sql(length)}"
        return f"substr({self.sql(node.this)}, {start.name}{rest})"

    def _case(self, node: exp.Expr) -> str:
        base = "" if node.this is None else f" {self.sql(node.this)}"
        ifs = "".join(f" WHEN {self.sql(each.this)} THEN {self.sql(each.args['true'])}" for each in node.args["ifs"])
        default = node.args.get("default")
        return f"CASE{base}{ifs}{'' if default is None else f' ELSE {self.sql(default)}'} END"

    def _if(self, node: exp.Expr) -> str:
        other = node.args.get("false")
        rest = "" if other is None else f" ELSE {self.sql(other)}"
        return f"CASE WHEN {self.sql(node.this)} THEN {self.sql(node.args['true'])}{rest} END"

    def _in(self, node: exp.Expr) -> str:
        if not node.expressions:
            raise self._refused(node)
        return f"({self.sql(node.this)} IN ({', '.join(self.sql(each) for each in node.expressions)}))"

    def _between(self, node: exp.Expr) -> str:
        low, high = self.sql(node.args["low"]), self.sql(node.args["high"])
        return f"({self.sql(node.this)} BETWEEN {low} AND {high})"

    def _is(self, node: exp.Expr) -> str:
        return f"({self.sql(node.this)} IS {self.sql(node.expression)})"

    def _round(self, node: exp.Expr) -> str:
        decimals = node.args.get("decimals")
        return f"round({self.sql(node.this)}{'' if decimals is None else f', {self.sql(decimals)}'})"


_SPECIAL: dict[type[exp.Expr], Callable[[Translator, exp.Expr], str]] = {
    exp.Literal: Translator._literal,
    exp.Null: lambda translator, node: "null",
    exp.Boolean: lambda translator, node: str(node.this).lower(),
    exp.Paren: lambda translator, node: f"({translator.sql(node.this)})",
    exp.Not: lambda translator, node: f"(NOT {translator.sql(node.this)})",
    exp.Neg: lambda translator, node: f"(-{translator.sql(node.this)})",
    exp.Array: lambda translator, node: f"[{', '.join(map(translator.sql, node.expressions))}]",
    exp.Concat: Translator._concat,
    exp.Div: Translator._divided,
    exp.Cast: Translator._cast,
    exp.TryCast: Translator._cast,
    exp.CurrentTimestamp: Translator._now,
    exp.CurrentDate: Translator._today,
    exp.Substring: Translator._substring,
    exp.Case: Translator._case,
    exp.If: Translator._if,
    exp.In: Translator._in,
    exp.Between: Translator._between,
    exp.Is: Translator._is,
    exp.Round: Translator._round,
}
