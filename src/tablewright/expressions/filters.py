"""Filters: SQL text or a pyarrow expression, compiled to a function from a batch to a mask.

Three-valued logic ends here: a row stays only where the filter is true, so a null drops it. ``regexp_match`` counts as
true where it finds something (Lance coerces its list of groups), anywhere that AND, OR and NOT reach from the top.
Arrow evaluates its own expressions; the columns that one reads are a superset, found by looking for their names
in its text. Simple SQL is evaluated by kernels of Arrow's and numpy's (:mod:`.kernels`), all other by DataFusion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.acero as acero
import pyarrow.compute as pc

from tablewright.errors import InvalidRequest
from tablewright.expressions.arrow_sets import with_unknown_nulls
from tablewright.expressions.kernels import Condition, Judge, as_mask
from tablewright.expressions.scope import SchemaLike, Scope, empty_batch, with_system_columns
from tablewright.expressions.sql import CompiledExpression, QuotedNames, compile_sql
from tablewright.format.arrow_bits import Bools, bools_of, mask_of

__all__ = ["Filter", "Predicate", "compile_filter"]

Filter: TypeAlias = "str | pc.Expression"
"""What users hand in as a filter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A compiled filter. Batches given to it have ``columns``, among others."""

    text: str
    columns: tuple[str, ...]
    paths: tuple[tuple[str, ...], ...]
    sql: CompiledExpression | None = None
    arrow: pc.Expression | None = None
    simple: Condition | None = None

    @property
    def is_selective(self) -> bool:
        """Whether few rows are likely to match; false if that can't be said."""
        return self.simple is not None and self.simple.is_selective

    def mask(self, batch: pa.RecordBatch) -> Bools:
        """For which rows the filter is true; null counts as false."""
        if self.simple is not None:
            return self.simple.mask(batch)
        if self.sql is not None:
            return bools_of(as_mask(self.sql.evaluate(batch)))
        assert self.arrow is not None, "a predicate has one of three forms"
        return bools_of(as_mask(_arrow_values(batch.select(list(self.columns)), self.arrow)))

    def judge(self) -> Judge:
        """:meth:`mask` as a function for many batches, which one thread at a time may call."""
        return self.mask if self.simple is None else self.simple.judge()

    def filter(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows for which the filter is true."""
        return batch.filter(mask_of(self.mask(batch)))


def compile_filter(
    filter: Filter,
    schema: SchemaLike | pa.Schema,
    *,
    now_ns: int | None = None,
    quoted_names: QuotedNames | None = None,
    scope: Scope | None = None,
) -> Predicate:
    """Compile a filter over a table's rows (its columns and the system columns). ``scope`` finds names by other rules.

    >>> predicate = compile_filter("x > 1 and s is not null", pa.schema([("x", pa.int64()), ("s", pa.string())]))
    >>> predicate.filter(pa.record_batch({"x": [1, 2], "s": ["a", "b"]})).to_pylist()
    [{'x': 2, 's': 'b'}]
    """
    if isinstance(filter, pc.Expression):
        return _compile_arrow(filter, with_system_columns(schema))
    compiled = compile_sql(filter, schema, now_ns=now_ns, condition=True, quoted_names=quoted_names, scope=scope)
    if not pa.types.is_boolean(compiled.type):
        raise InvalidRequest(
            f"Invalid user input: The filter {filter} does not return a boolean, but {compiled.type}. "
            f"Compare it with something. The columns are: {', '.join(with_system_columns(schema).names)}."
        )
    return Predicate(
        text=filter, columns=compiled.columns, paths=compiled.paths, sql=compiled, simple=compiled.condition
    )


def _compile_arrow(given: pc.Expression, schema: pa.Schema) -> Predicate:
    text, expression = str(given), with_unknown_nulls(given)
    columns = tuple(name for name in schema.names if _mentions(text, name))
    batch = empty_batch(pa.schema([schema.field(name) for name in columns]))
    kind = _arrow_values(batch, expression, Scope(schema)).type
    if not pa.types.is_boolean(kind):
        raise InvalidRequest(f"Invalid user input: The filter {text} does not return a boolean, but {kind}.")
    return Predicate(text=text, columns=columns, paths=tuple((name,) for name in columns), arrow=expression)


def _mentions(text: str, name: str) -> bool:
    """Whether a name stands in the text on its own: as a column, or (which does no harm) inside a literal."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None


def _arrow_values(batch: pa.RecordBatch, expression: pc.Expression, scope: Scope | None = None) -> pa.Array:
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(pa.Table.from_batches([batch])))
    project = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["value"]))
    try:
        column = acero.Declaration.from_sequence([source, project]).to_table(use_threads=False).column(0)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError, pa.ArrowTypeError) as error:
        raise InvalidRequest(_arrow_message(str(error), expression, scope)) from error
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _arrow_message(error: str, expression: pc.Expression, scope: Scope | None) -> str:
    detail = " ".join(error.split())[:300]
    if scope is not None and "No match for FieldRef" in detail:
        name = detail.split("FieldRef.Name(")[-1].split(")")[0]
        return f"{scope.unknown(name)} The expression was: {expression}"
    return f"Invalid user input: {detail}. The expression was: {expression}"
