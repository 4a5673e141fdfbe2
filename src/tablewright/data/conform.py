"""Incoming batches in the shape of the table: its columns, its order, its types, no null where none may be.

Columns are found by name, values are cast as :mod:`.fit_types` allows, and a null in a column that may hold none is
refused. Every way into a table ends here.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.types as at

from tablewright.data.fit_values import INTO_TABLE, fit_array
from tablewright.data.rows import copied
from tablewright.errors import SchemaMismatch

__all__ = ["conform", "solid", "takes_nulls"]

_WHOLE_BYTES_MIN = 4096
_CUT_BYTES_MAX = 256 * 1024  # larger ones make a page of fair size by themselves
_WITH_OFFSETS = (
    at.is_string,
    at.is_large_string,
    at.is_binary,
    at.is_large_binary,
    at.is_list,
    at.is_large_list,
    at.is_map,
)


def conform(batch: pa.RecordBatch, schema: pa.Schema, remedy: str = INTO_TABLE) -> pa.RecordBatch:
    """The batch with exactly the columns of ``schema``, in its order and types; ``remedy`` ends messages about values.

    >>> conform(pa.record_batch({"b": ["x"], "a": [1]}), pa.schema({"a": pa.int64(), "b": pa.string()})).schema.names
    ['a', 'b']
    """
    if batch.schema.equals(schema, check_metadata=True) and all(map(takes_nulls, schema)):
        return batch
    if batch.schema.names != schema.names:
        _check_names(batch.schema.names, schema.names)
    arrays = [fit_array(batch.column(field.name), field.type, field.name, remedy) for field in schema]
    problems = tuple(
        problem for array, field in zip(arrays, schema, strict=True) for problem in _nulls(array, field, field.name)
    )
    if problems:
        raise SchemaMismatch(problems)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def takes_nulls(field: pa.Field) -> bool:
    """Whether any value of a field, and of its members, may be null."""
    return field.nullable and not _strict_below(field.type)


def solid(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with a copy of each column that the codec can't take, or would write in tiny pages.

    The codec panics on slices of lists in structs, and refuses items of empty lists that come without an offset, as
    Spark 4.0 sends them. When it decides whether a page is full, it counts all buffers of a slice's parent array, so
    small slices of a large array would become a page for every few of them.
    """
    arrays = [copied(array) if _is_unusual(array) or _is_cut(array) else array for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _is_cut(array: pa.Array) -> bool:
    """Whether it is a small slice of a larger array."""
    whole = array.get_total_buffer_size()
    return whole > _WHOLE_BYTES_MIN and 2 * array.nbytes < whole and array.nbytes < _CUT_BYTES_MAX


def _is_unusual(array: pa.Array) -> bool:
    if isinstance(array, pa.ExtensionArray):
        return _is_unusual(array.storage)
    if isinstance(array, pa.StructArray):
        return array.offset > 0 or any(_is_unusual(array.field(index)) for index in range(array.type.num_fields))
    if isinstance(array, pa.ListArray | pa.LargeListArray):  # a map is a list of its entries
        items = array.values
        return array.offset > 0 or items.offset > 0 or _lacks_offset(array) or _is_unusual(items)
    return _lacks_offset(array)


def _lacks_offset(array: pa.Array) -> bool:
    """Whether it is empty, of values of various lengths, and without the one offset that it should have."""
    if len(array) or not any(has(array.type) for has in _WITH_OFFSETS):
        return False
    offsets = array.buffers()[1]
    return offsets is None or not offsets.size


def _check_names(given: list[str], wanted: list[str]) -> None:
    missing = [name for name in wanted if name not in given]
    unknown = [name for name in given if name not in wanted]
    if missing or unknown:
        problems = [f"missing={missing}"] * bool(missing) + [f"unexpected={unknown}"] * bool(unknown)
        raise SchemaMismatch(tuple(problems))


def _nulls(array: pa.Array, field: pa.Field, path: str) -> Iterator[str]:
    """A sentence per column (or member) that holds nulls and may not; members of null structs do not count."""
    if not field.nullable and array.null_count:
        yield f"Column '{path}' is declared as non-nullable but contains null values"
    if at.is_struct(field.type):
        if not _strict_below(field.type):
            return
        assert isinstance(array, pa.StructArray), "the array has the type of its field"
        live = array.drop_null() if array.null_count else array
        for index, member in enumerate(field.type):
            yield from _nulls(live.field(index), member, f"{path}.{member.name}")
    elif (at.is_list(field.type) or at.is_large_list(field.type)) and _strict_below(field.type):
        assert isinstance(array, pa.ListArray | pa.LargeListArray), "the array has the type of its field"
        yield from _nulls(array.flatten(), field.type.value_field, f"{path}.{field.type.value_field.name}")


def _strict_below(kind: pa.DataType) -> bool:
    return any(
        not kind.field(index).nullable or _strict_below(kind.field(index).type) for index in range(kind.num_fields)
    )
