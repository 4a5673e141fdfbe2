"""A column's name in double quotes: a string in Lance's SQL, and an identifier in every other dialect.

``delete('"s" != \\'a\\'')`` compares two texts, is true for every row, and would delete the table. A comparison is
refused if it reads no column and holds a double-quoted text that is a column's name. ``s = "name"`` stays what it is,
also where a column is called ``name``: it reads a column. ``'name'`` in single quotes is always a text.

1. :mod:`.translate` collects the double-quoted texts that are names.
2. The tree is walked from the top. What AND, OR and NOT join in a filter, and every comparison anywhere, has to read a
   column if it holds one of these texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tablewright.expressions.engine import ExpressionError

if TYPE_CHECKING:
    from datafusion import Expr

__all__ = ["check_quotes"]

_IS = ("Null", "NotNull", "True", "False", "Unknown", "NotTrue", "NotFalse", "NotUnknown")
_TESTS = frozenset(["Like", "SimilarTo", "InList", "Between", *(f"Is{state}" for state in _IS)])
_NOT_COMPARED = frozenset(["AND", "OR", "+", "-", "*", "/", "%", "||", "&", "|", "#", "<<", ">>"])


def check_quotes(tree: Expr, names: Mapping[str, tuple[str, ...]], *, condition: bool) -> None:
    """Raise :class:`ExpressionError` if a double-quoted text is compared that is the name of a field.

    ``names`` has these texts and the path of the field that each would name.
    """
    found = next(_misread(tree, frozenset(names), condition), None)
    if found is not None:
        path = names[found]
        bare = f"{'.'.join(path)} without quotes or " if all(part.isidentifier() for part in path) else ""
        raise ExpressionError(
            f'"{found}" in double quotes is a text, not the column {".".join(path)}, so the comparison is the same for '
            f"every row. Write {bare}`{'`.`'.join(path)}` in backticks for the column, '{found}' in single quotes for "
            "the text"
        )


def _misread(node: Expr, names: frozenset[str], condition: bool) -> Iterator[str]:
    variant = node.variant_name()
    if variant in ("Column", "Literal"):
        if condition:
            yield from names.intersection(_texts(node))
        return
    operator = node.rex_call_operator() if variant == "BinaryExpr" else variant
    joins = operator in ("AND", "OR", "Not")
    compares = operator not in _NOT_COMPARED if variant == "BinaryExpr" else variant in _TESTS
    if not joins and (condition or compares) and not _reads_column(node):
        yield from (text for text in _texts(node) if text in names)
    for operand in _operands(node):
        yield from _misread(operand, names, condition and joins)


def _reads_column(node: Expr) -> bool:
    return node.variant_name() == "Column" or any(map(_reads_column, _operands(node)))


def _texts(node: Expr) -> Iterator[str]:
    if node.variant_name() == "Literal":
        value = node.python_value().as_py()
        if isinstance(value, str):
            yield value
    for operand in _operands(node):
        yield from _texts(operand)


def _operands(node: Expr) -> list[Expr]:
    if node.variant_name() in ("Column", "Literal"):
        return []
    try:
        return list(node.rex_call_operands())
    except RuntimeError:  # a variant whose operands Python can't see
        return []
