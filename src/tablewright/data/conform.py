"""Incoming batches in the shape of the table: its columns, its order, its types, no null where none may be.

The plan of a write has compared the schemas already. What is left here is to reorder columns and struct members by
name, to turn views into plain types, and to look at the values: a null in a column that may hold none is refused.
Whether a type fits is asked before: :mod:`tablewright.format.schema_match`, for rows that are appended.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from tablewright.errors import InvalidRequest, SchemaMismatch

__all__ = ["conform", "solid"]


def conform(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly the columns of ``schema``, in its order and types.

    >>> conform(pa.record_batch({"b": ["x"], "a": [1]}), pa.schema({"a": pa.int64(), "b": pa.string()})).schema.names
    ['a', 'b']
    """
    if batch.schema.names != schema.names:
        _check_names(batch.schema.names, schema.names)
    arrays = [_fit(batch.column(field.name), field.type, field.name) for field in schema]
    problems = tuple(
        problem for array, field in zip(arrays, schema, strict=True) for problem in _nulls(array, field, field.name)
    )
    if problems:
        raise SchemaMismatch(problems)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def solid(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with nested columns that the codec can take, also if it is a slice."""
    return pa.RecordBatch.from_arrays([_solid(array) for array in batch.columns], schema=batch.schema)


def _solid(array: pa.Array) -> pa.Array:
    """A nested array that begins at its buffers' beginning: the codec panics on slices of lists in structs."""
    return pa.concat_arrays([array, array.slice(0, 0)]) if _is_slice(array) else array


def _is_slice(array: pa.Array) -> bool:
    if isinstance(array, pa.ExtensionArray):
        return _is_slice(array.storage)
    if isinstance(array, pa.StructArray):
        return array.offset > 0 or any(_is_slice(array.field(index)) for index in range(array.type.num_fields))
    if isinstance(array, pa.ListArray | pa.LargeListArray):  # a map is a list of its entries
        return array.offset > 0 or array.values.offset > 0 or _is_slice(array.values)
    return False


def _check_names(given: list[str], wanted: list[str]) -> None:
    missing = [name for name in wanted if name not in given]
    unknown = [name for name in given if name not in wanted]
    if missing or unknown:
        problems = [f"missing={missing}"] * bool(missing) + [f"unexpected={unknown}"] * bool(unknown)
        raise SchemaMismatch(tuple(problems))


def _fit(array: pa.Array, kind: pa.DataType, path: str) -> pa.Array:
    if array.type == kind:
        return array
    try:
        if isinstance(kind, pa.BaseExtensionType) and not isinstance(array, pa.ExtensionArray):
            return pa.ExtensionArray.from_storage(kind, array.cast(kind.storage_type))
        if isinstance(array, pa.ExtensionArray) and array.type != kind:
            return _fit(array.storage, kind, path)
        if at.is_struct(kind) and isinstance(array, pa.StructArray):
            return _struct(array, kind, path)
        if at.is_list(kind) and isinstance(array, pa.ListArray) and at.is_list(array.type):  # no map
            values = _fit(array.flatten() if array.null_count or array.offset else array.values, kind.value_type, path)
            return _list(array, values, kind)
        return array.cast(kind)
    except pa.ArrowException as error:
        raise InvalidRequest(f'Cannot cast column "{path}" from {array.type} to {kind}: {error}') from error


def _struct(array: pa.StructArray, kind: pa.StructType, path: str) -> pa.Array:
    members = []
    for member in kind:
        index = array.type.get_field_index(member.name)
        if index < 0:
            members.append(pa.nulls(len(array), member.type))
        else:
            members.append(_fit(array.field(index), member.type, f"{path}.{member.name}"))
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(members, fields=list(kind), mask=mask)


def _list(array: pa.ListArray, values: pa.Array, kind: pa.ListType) -> pa.Array:
    if not (array.null_count or array.offset):
        return pa.ListArray.from_arrays(array.offsets, values, type=kind)
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], ends.type), ends]).cast(pa.int32())
    return pa.ListArray.from_arrays(offsets, values, type=kind, mask=array.is_null() if array.null_count else None)


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
