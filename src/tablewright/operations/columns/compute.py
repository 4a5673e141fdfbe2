"""Where the values of new columns come from: SQL expressions, or a function of the user's own.

A *computation* says which fields it reads, and turns batches of rows into batches of new columns. It sees live rows
only, and it travels to workers: functions are pickled by value, so all that one refers to travels with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from tablewright.data.conform import conform
from tablewright.data.fit_types import fits
from tablewright.errors import TablewrightError, WrongType
from tablewright.expressions.sql import Projection
from tablewright.operations.columns.schema import InvalidColumns, as_column_errors
from tablewright.reading.projection import Path, Selection

__all__ = ["Computation", "FunctionColumns", "SqlColumns", "result_batch"]

Function = Callable[[pa.RecordBatch], Any]


class Computation(Protocol):
    """New columns, as a function of rows."""

    @property
    def paths(self) -> tuple[Path, ...]:
        """The fields that it reads."""

    @property
    def schema(self) -> pa.Schema:
        """The new columns."""

    def compute(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The new columns for the rows of a batch, which has the fields at :attr:`paths`, among others."""


@dataclass(frozen=True, slots=True)
class SqlColumns:
    """Columns that are SQL expressions over the others."""

    projection: Projection

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.projection.paths

    @property
    def schema(self) -> pa.Schema:
        return self.projection.schema

    @property
    def is_null(self) -> bool:
        """Whether every expression is null for any row, so that nothing has to be written."""
        if self.paths or not all(each.nullable and not pa.types.is_null(each.type) for each in self._expressions):
            return False
        row = pa.record_batch([pa.nulls(1)], names=["row"])
        return all(each.evaluate(row).null_count for each in self._expressions)

    @property
    def _expressions(self) -> tuple[Any, ...]:
        return self.projection.expressions

    def compute(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        with as_column_errors():
            return self.projection.evaluate(batch)


@dataclass(frozen=True, slots=True)
class FunctionColumns:
    """Columns that a function returns for batches of rows: ``selection`` is what it gets to see."""

    function: Function
    selection: Selection
    schema: pa.Schema

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.selection.paths

    def compute(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        given = self.selection.shape(batch)
        try:
            result = self.function(given)
        except TablewrightError:
            raise
        except Exception as error:
            raise InvalidColumns(f"Invalid user input: {type(error).__name__}: {error}") from error
        made = result_batch(result, self.schema)
        if made.num_rows != batch.num_rows:
            raise InvalidColumns(
                f"Invalid user input: the function's batch has different size with the source batch: "
                f"{batch.num_rows} != {made.num_rows}. It has to return one row per row."
            )
        return made


def result_batch(result: Any, schema: pa.Schema | None = None) -> pa.RecordBatch:
    """What a function returned, as a batch of ``schema`` (its own, if none is known)."""
    if _is_frame(result):
        result = _of_frame(result, schema)
    if not isinstance(result, pa.RecordBatch):
        raise WrongType(
            f"Invalid user input: the function must return a pyarrow.RecordBatch or a pandas DataFrame, not "
            f"{type(result)}."
        )
    if schema is None or (result.schema.names, result.schema.types) == (schema.names, schema.types):
        return result
    if result.schema.names != schema.names or not all(map(fits, result.schema.types, schema.types)):
        raise InvalidColumns(
            "Invalid user input: Output schema of function does not match the expected schema. "
            f"Expected:\n{schema.remove_metadata()}\nGot:\n{result.schema.remove_metadata()}"
        )
    return conform(result, pa.schema([field.with_nullable(True) for field in schema]))


def _is_frame(result: Any) -> bool:
    return (type(result).__module__.split(".")[0], type(result).__name__) == ("pandas", "DataFrame")


def _of_frame(frame: Any, schema: pa.Schema | None) -> pa.RecordBatch:
    """A frame's values have no Arrow types of their own: they take the expected ones."""
    known = schema if schema is not None and list(frame.columns) == schema.names else None
    try:
        return pa.RecordBatch.from_pandas(frame, schema=known, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError, KeyError) as error:
        raise InvalidColumns(f"Invalid user input: the function's frame can't be turned into Arrow: {error}") from error
