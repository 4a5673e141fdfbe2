"""The only module that calls DataFusion: parse one row expression, type it, evaluate it over a batch.

A session per thread, made when first needed: one partition, and batches large enough that a chunk of rows comes back
as one. Every error of DataFusion becomes an :class:`ExpressionError`, which :mod:`.sql` turns into a message
that shows the user's own text.

Tests: ``tests/unit/expressions/test_sql.py``, ``tests/unit/expressions/test_filters.py``.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as at

from tablewright.errors import StorageError
from tablewright.storage.failures import is_panic
from tablewright.storage.libraries import check_usable

if TYPE_CHECKING:
    from datafusion import DataFrame, Expr, SessionContext

__all__ = ["ExpressionError", "Frame", "evaluate", "open_frame", "plain_message"]

_MAX_ROWS_PER_BATCH = 1 << 24
_NO_COLUMNS = "no columns"
_local = threading.local()


class ExpressionError(Exception):
    """An error of DataFusion in one line. Internal: callers rephrase it in the user's terms."""


def _session() -> SessionContext:
    check_usable("DataFusion")
    context = getattr(_local, "context", None)
    if context is None:
        from datafusion import SessionConfig, SessionContext

        config = SessionConfig().with_target_partitions(1).with_batch_size(_MAX_ROWS_PER_BATCH)
        context = _local.context = SessionContext(config)
    return context


@contextmanager
def _speaking() -> Iterator[None]:
    """Around calls of DataFusion, which raises bare ``Exception``, and panics where it can't start its threads."""
    try:
        yield
    except Exception as error:
        raise ExpressionError(plain_message(error)) from error
    except BaseException as error:
        if not is_panic(error):
            raise
        if "Os {" in str(error):
            raise StorageError(f"DataFusion could not start: {error}. Close files (ulimit -n).") from None
        raise ExpressionError(plain_message(error)) from None


class Frame:
    """Rows that expressions can be parsed against, typed and evaluated on."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        if batch.num_columns == 0:
            batch = pa.record_batch([pa.nulls(batch.num_rows)], names=[_NO_COLUMNS])
        self._frame: DataFrame = _session().read_batch(_plain_structs(batch))

    def parse(self, sql: str) -> Expr:
        """DataFusion's tree of an expression."""
        with _speaking():
            return self._frame.parse_sql_expr(sql)

    def simplified(self, expression: Expr) -> list[Expr] | bool:
        """What DataFusion makes of a filter before it runs it: types fitted, constants folded. All parts must be true.

        ``True`` and ``False``: every row passes, or none. :class:`ExpressionError` if the plan is something else.
        """
        with _speaking():
            plan = self._frame.filter(expression).optimized_logical_plan()
            found: list[Expr] = []
            while True:
                node = plan.to_variant()
                kind = type(node).__name__
                if kind == "TableScan":
                    return found or True
                if kind == "EmptyRelation":
                    return False
                if kind != "Filter":
                    raise ExpressionError(f"a filter became {kind}")
                found.append(node.predicate())
                (plan,) = plan.inputs()

    def field(self, expression: Expr) -> pa.Field:
        """Type and nullability of an expression's value."""
        with _speaking():
            schema: pa.Schema = self._frame.select(expression.alias("value")).schema()
        return schema.field(0)

    def values(self, expressions: Sequence[Expr]) -> list[pa.Array]:
        """One array per expression, one value per row."""
        named = [expression.alias(f"value{i}") for i, expression in enumerate(expressions)]
        with _speaking():
            batches: list[pa.RecordBatch] = self._frame.select(*named).collect()
            schema = batches[0].schema if batches else self._frame.select(*named).schema()
        table = pa.Table.from_batches(batches, schema)
        return [_plain(_whole(table.column(i))) for i in range(len(expressions))]


def open_frame(batch: pa.RecordBatch, columns: Sequence[str]) -> Frame:
    """A frame over the given columns of a batch."""
    return Frame(batch.select(list(columns)))


def evaluate(batch: pa.RecordBatch, columns: Sequence[str], sqls: Sequence[str]) -> list[pa.Array]:
    """Values of DataFusion expressions over a batch, which holds (at least) ``columns``."""
    frame = open_frame(batch, columns)
    return frame.values([frame.parse(sql) for sql in sqls])


def _plain_structs(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Structs as DataFusion can take them.

    Its Arrow can't import a slice of a struct inside a struct, and its access to members ignores that the struct may be
    null: members get the nulls of what is above them.
    """
    if not any(at.is_struct(field.type) for field in batch.schema):
        return batch
    return pa.RecordBatch.from_arrays([_rebuilt(array) for array in batch.columns], names=batch.schema.names)


def _rebuilt(array: pa.Array) -> pa.Array:
    if not isinstance(array, pa.StructArray) or not array.type.num_fields:
        return array
    members = [_rebuilt(member) for member in array.flatten()]
    mask = array.is_null() if array.null_count else None
    fields = [pa.field(field.name, member.type) for field, member in zip(array.type, members, strict=True)]
    return pa.StructArray.from_arrays(members, fields=fields, mask=mask)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _plain(array: pa.Array) -> pa.Array:
    """Views become the plain text and binary types that Lance stores."""
    if pa.types.is_string_view(array.type):
        return array.cast(pa.string())
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.binary())
    return array


_NOISE = re.compile(r"DataFusion error: |Optimizer rule '\w+' failed|type_coercion|caused by|SQL error: |Arrow error: ")
_PARSER = re.compile(r'ParserError\("(.*)"\)', re.DOTALL)
_PLACE = re.compile(r" at Line: \d+, Column: \d+")
_INTERNAL = re.compile(r"Internal error: |Error during planning: |This feature is not implemented: ")
_REPORT = re.compile(r"\.?\s*This issue was likely.*", re.DOTALL)
_ASSERTION = re.compile(r"Assertion failed: [^:]*(?:::[^:]*)*: ")


def plain_message(error: BaseException) -> str:
    """DataFusion's message in one line, without its internals."""
    text = _NOISE.sub("", str(error).split("\n\nbacktrace")[0])
    text = _PARSER.sub(r"\1", text)
    text = _ASSERTION.sub("", _REPORT.sub("", _INTERNAL.sub("", text)))
    return " ".join(_PLACE.sub("", text).split())[:500]
