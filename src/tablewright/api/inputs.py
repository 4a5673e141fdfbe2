"""What people hand to ``write_dataset``: any of it becomes a schema and a stream of record batches.

Nothing is collected that was not in memory already: readers, iterators, datasets and scanners stay streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from tablewright.errors import InvalidRequest, SchemaMismatch

__all__ = ["Source", "as_source"]


@dataclass(frozen=True, slots=True)
class Source:
    """Incoming rows: their schema, the batches (to be read once) and the size if it is known beforehand."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    nbytes: int | None = None


def as_source(data: Any, schema: pa.Schema | None = None) -> Source:
    """Turn ``data`` into a :class:`Source`; ``schema`` is what it is cast to, or what an iterator can't tell.

    >>> as_source([{"id": 1}, {"id": 2}]).schema.names
    ['id']
    """
    if schema is not None and not isinstance(schema, pa.Schema):
        schema = schema.to_pyarrow() if hasattr(schema, "to_pyarrow") else pa.schema(schema)
    source = _of_arrow(data) or _of_frames(data, schema) or _of_python(data, schema)
    if source is None:
        raise _unknown(data)
    if source.schema.names != list(dict.fromkeys(source.schema.names)):
        raise InvalidRequest(f"Duplicate column names in {source.schema.names}: every column needs a name of its own.")
    return source if schema is None or source.schema.equals(schema) else _cast(source, schema)


class UnknownInput(InvalidRequest, TypeError):
    """Data of a type that is none of those ``write_dataset`` takes."""


def _unknown(data: Any) -> UnknownInput:
    return UnknownInput(
        f"Unknown data type {type(data)}. Give a pyarrow Table, RecordBatch, RecordBatchReader, Dataset or Scanner, an "
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
        return _of_table(pa.Table.from_pandas(data, schema=schema))
    if library == "polars" and name == "LazyFrame":
        data, name = data.collect(engine="streaming"), "DataFrame"
    if library == "polars" and name == "DataFrame":
        return _of_table(data.to_arrow(compat_level=None))
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return Source(reader.schema, iter(reader))
    return None


def _of_python(data: Any, schema: pa.Schema | None) -> Source | None:
    if isinstance(data, dict):
        return _of_table(pa.Table.from_pydict(data, schema=schema))
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        return None
    if isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
        return _of_table(pa.Table.from_pylist(data, schema=schema))
    items = iter(data)
    first = next(items, None)
    if first is None:
        if schema is None:
            raise InvalidRequest("Must provide schema to write dataset from RecordBatch iterable: it is empty.")
        return Source(schema, iter(()), 0)
    if isinstance(first, pa.Table):
        return Source(first.schema, _checked(_flattened(chain([first], items)), first.schema))
    if isinstance(first, pa.RecordBatch):
        return Source(first.schema, _checked(chain([first], items), first.schema))
    return None


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

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in source.batches:
            try:
                yield from pa.Table.from_batches([batch]).select(schema.names).cast(schema).to_batches()
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
                raise InvalidRequest(f"The data can't be cast to the schema given: {error}") from error

    return Source(schema, batches(), source.nbytes)
