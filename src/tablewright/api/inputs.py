"""What people hand to ``write_dataset``: any of it becomes a schema and a stream of record batches.

Nothing is collected that was not in memory already: readers, iterators, datasets and scanners stay streams. Whether the
types fit a table is asked later, of all data alike (:mod:`tablewright.data.fit_types`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.dataset as pads

from tablewright.data.conform import conform
from tablewright.data.fit_types import check_fits
from tablewright.engine.detect import is_struct_type
from tablewright.engine.frames import arrow_schema
from tablewright.errors import InvalidRequest, SchemaMismatch, TablewrightError

__all__ = ["Source", "as_schema", "as_source"]


@dataclass(frozen=True, slots=True)
class Source:
    """Incoming rows: their schema, the batches (to be read once) and the size if it is known beforehand."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    nbytes: int | None = None


def as_source(data: Any, schema: pa.Schema | None = None, table: pa.Schema | None = None) -> Source:
    """Turn ``data`` into a :class:`Source`; ``schema`` is what it is cast to, or what an iterator can't tell.

    Some Python values have no Arrow type of their own (the pairs of a map): they take that of the ``table`` they go to.

    >>> as_source([{"id": 1}, {"id": 2}]).schema.names
    ['id']
    >>> as_source([{"m": [("k", 1)]}], table=pa.schema({"m": pa.map_(pa.string(), pa.int8())})).schema.field("m").type
    MapType(map<string, int8>)
    """
    schema = as_schema(schema)
    source = _of_arrow(data) or _of_frames(data, schema) or _of_python(data, schema, table)
    if source is None:
        raise _unknown(data)
    if source.schema.names != list(dict.fromkeys(source.schema.names)):
        raise InvalidRequest(f"Duplicate column names in {source.schema.names}: every column needs a name of its own.")
    return source if schema is None or source.schema.equals(schema) else _cast(source, schema)


def as_schema(given: Any) -> pa.Schema | None:
    """The Arrow schema that a caller gave as ``schema=``: pyarrow's, ours, or Spark's.

    >>> as_schema("id long")
    Traceback (most recent call last):
    tablewright.api.inputs.UnknownInput: schema must be a pyarrow.Schema, a LanceSchema or a Spark StructType, \
not 'id long' of type str. Write for example pa.schema({"id": pa.int64()}).
    """
    if given is None or isinstance(given, pa.Schema):
        return given
    if is_struct_type(given):
        return arrow_schema(given)
    if hasattr(given, "to_pyarrow"):
        schema: pa.Schema = given.to_pyarrow()
        return schema
    raise UnknownInput(
        f"schema must be a pyarrow.Schema, a LanceSchema or a Spark StructType, not {given!r} of type "
        f'{type(given).__name__}. Write for example pa.schema({{"id": pa.int64()}}).'
    )


class UnknownInput(InvalidRequest, TypeError):
    """Data of a type that is none of those ``write_dataset`` takes."""


_SHOWN_MAX = 60
_CONVERSION = (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError)


@contextmanager
def _conversion(what: str) -> Iterator[None]:
    """Whatever a library says about a frame that does not become Arrow, in our words."""
    try:
        yield
    except TablewrightError:
        raise
    except Exception as error:
        raise InvalidRequest(f"{what} can't be turned into Arrow: {error}") from error


def _unknown(data: Any, item: Any = None) -> UnknownInput:
    items = "" if item is None else f" of {type(item).__name__}"
    return UnknownInput(
        f"Unknown data type {type(data)}{items}. "
        "Give a pyarrow Table, RecordBatch, RecordBatchReader, Dataset or Scanner, an "
        "iterable of RecordBatches (with schema=), a pandas or polars DataFrame, a dict of columns, a list of dicts, "
        "or a Spark DataFrame."
    )


def _of_table(table: pa.Table) -> Source:
    return Source(table.schema, iter(table.to_batches()), table.nbytes)


def _of_arrow(data: Any) -> Source | None:
    if isinstance(data, pa.Table):
        return _of_table(data)
    if isinstance(data, pa.RecordBatch):
        return Source(data.schema, iter([data]), data.nbytes)
    if isinstance(data, pa.RecordBatchReader):
        return Source(data.schema, iter(data))
    if isinstance(data, pads.Dataset):
        return Source(data.schema, iter(data.to_batches()))
    if isinstance(data, pads.Scanner):
        return Source(data.projected_schema, iter(data.to_batches()))
    return None


def _of_frames(data: Any, schema: pa.Schema | None) -> Source | None:
    library, name = type(data).__module__.split(".")[0], type(data).__name__
    if (library, name) == ("pandas", "DataFrame"):
        with _conversion("The pandas frame"):
            return _of_table(pa.Table.from_pandas(data, schema=schema))
    if library == "polars" and name in ("DataFrame", "LazyFrame"):
        with _conversion("The polars frame"):
            frame = data.collect(engine="streaming") if name == "LazyFrame" else data
            return _of_table(frame.to_arrow(compat_level=None))
    if hasattr(data, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(data)
        except pa.ArrowInvalid as error:  # one column and no table
            raise UnknownInput(f"{_unknown(data)} It is a stream of no table: {error}") from error
        return Source(reader.schema, iter(reader))
    return None


def _of_python(data: Any, schema: pa.Schema | None, table: pa.Schema | None) -> Source | None:
    if isinstance(data, dict):
        return _of_columns(data, schema, table) if data or table is None else Source(table, iter(()), 0)
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        return None
    if isinstance(data, list | tuple) and data and all(isinstance(row, dict) for row in data):
        names = dict.fromkeys(name for row in data for name in row)
        return _of_columns({name: [row.get(name) for row in data] for name in names}, schema, table)
    items = iter(data)
    nothing = object()
    first = next(items, nothing)
    if first is nothing:
        schema = schema or (table if isinstance(data, list) else None)
        if schema is None:
            raise InvalidRequest("Must provide schema to write dataset from RecordBatch iterable: it is empty.")
        return Source(schema, iter(()), 0)
    if isinstance(first, pa.Table):
        return Source(first.schema, _checked(_flattened(chain([first], items)), first.schema))
    if isinstance(first, pa.RecordBatch):
        return Source(first.schema, _checked(chain([first], items), first.schema))
    rows = [first] if data is items else data
    raise _unknown(data, next((row for row in rows if not isinstance(row, dict)), first))


def _of_columns(columns: dict[str, Any], schema: pa.Schema | None, table: pa.Schema | None) -> Source:
    wrong = [name for name in columns if not isinstance(name, str)]
    if wrong:
        raise UnknownInput(f"Column names must be text, not {wrong[0]!r}.")
    hints = schema or table or pa.schema([])
    arrays = {name: _array(name, values, hints) for name, values in columns.items()}
    if schema is not None:  # columns that the schema allows to be null may be left out
        rows = max((len(array) for array in arrays.values()), default=0)
        absent = [field for field in schema if field.name not in arrays and field.nullable]
        arrays |= {field.name: pa.nulls(rows, field.type) for field in absent}
    try:
        return _of_table(pa.table(arrays))
    except (pa.ArrowInvalid, ValueError) as error:
        raise InvalidRequest(f"The columns do not make a table: {error}") from error


def _array(name: str, values: Any, hints: pa.Schema) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes | set | frozenset | Mapping) or not isinstance(values, Iterable):
        shown = repr(values) if len(repr(values)) <= _SHOWN_MAX else f"{repr(values)[:_SHOWN_MAX]}…"
        raise InvalidRequest(f"Column {name!r} needs a list of values, got {shown} of type {type(values).__name__}.")
    hint = hints.field(name).type if name in hints.names else None
    try:
        return _vectors(name, values) if isinstance(values, np.ndarray) and values.ndim > 1 else pa.array(values)
    except _CONVERSION as error:
        if hint is None:
            raise InvalidRequest(f"Column {name!r} has values of no single Arrow type: {error}") from error
    try:
        return pa.array(values, hint)
    except _CONVERSION as error:
        raise InvalidRequest(f"Column {name!r} has values that are no {hint}: {error}") from error


def _vectors(name: str, values: npt.NDArray[Any]) -> pa.Array:
    """A numpy array of several dimensions: fixed-size lists, of fixed-size lists if there are more than two."""
    if 0 in values.shape[1:]:
        raise InvalidRequest(f"Column {name!r} has the shape {values.shape}: vectors need at least one value.")
    items = pa.array(values.reshape(-1))
    for size in reversed(values.shape[1:]):
        items = pa.FixedSizeListArray.from_arrays(items, size)
    return items


def _flattened(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    for table in tables:
        yield from table.to_batches()


def _checked(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Every batch of an iterable must look like the first."""
    for position, batch in enumerate(batches):
        if not isinstance(batch, pa.RecordBatch):
            raise _unknown(batch)
        if not batch.schema.equals(schema):
            raise InvalidRequest(
                f"Batch {position} of the iterable has another schema than the first:\n{batch.schema}\n"
                f"instead of\n{schema}"
            )
        yield batch


def _cast(source: Source, schema: pa.Schema) -> Source:
    if sorted(source.schema.names) != sorted(schema.names):
        missing = sorted(set(schema.names) - set(source.schema.names))
        unexpected = sorted(set(source.schema.names) - set(schema.names))
        raise SchemaMismatch((f"fields did not match, missing={missing}, unexpected={unexpected}",))

    check_fits(source.schema, schema)
    return Source(schema, (conform(batch, schema) for batch in source.batches), source.nbytes)
