"""Arrays as files hold them become arrays as the table's schema says.

Most columns are handed through untouched: their type is the table's already. Otherwise the tree is walked:

- a *leaf* is cast (JSON is decoded);
- a *blob* becomes the form of it that is wanted (:mod:`.blob_values`);
- a *struct* takes each member from the file that holds it, missing ones are null, and which rows are null comes from
  the first file that holds anything of the struct;
- a *list* keeps its offsets, its items are walked.

No value is copied where only names, order or nullability differ.

Tests: ``tests/unit/data/test_read.py``, ``tests/differential/data/test_read.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.types as at

from tablewright.data.blob_values import BlobValues
from tablewright.data.jsonb import decode_json_array
from tablewright.data.layout import FileMap
from tablewright.errors import CorruptTable
from tablewright.format.schema import Schema

__all__ = ["FieldValues", "assemble", "null_array"]


@dataclass(frozen=True, slots=True)
class FieldValues:
    """What one file holds of a field."""

    array: pa.Array
    map: FileMap
    where: str
    blobs: BlobValues | None = None


def assemble(schema: Schema, field_id: int, kind: pa.DataType, sources: Sequence[FieldValues], rows: int) -> pa.Array:
    """The values of a field, of Arrow type ``kind``, for ``rows`` rows. ``schema`` holds the wanted members only."""
    if not sources:
        return null_array(rows, kind)
    first = sources[0]
    if first.blobs is not None and first.map.is_blob(field_id):
        return first.blobs.values(first.array, kind)
    if len(sources) == 1 and first.array.type == kind and (first.blobs is None or not at.is_nested(kind)):
        return first.array
    if at.is_struct(kind) and at.is_struct(first.array.type):
        return _struct(schema, field_id, kind, sources)
    if (at.is_list(kind) or at.is_large_list(kind)) and type(first.array.type) is type(kind):
        return _list(schema, field_id, kind, sources)
    return _leaf(first, kind)


def null_array(rows: int, kind: pa.DataType) -> pa.Array:
    """``rows`` nulls of any type."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.nulls(rows, kind.storage_type))
    return pa.nulls(rows, kind)


def _struct(schema: Schema, field_id: int, kind: pa.StructType, sources: Sequence[FieldValues]) -> pa.Array:
    array = sources[0].array
    members = []
    for child, member in zip(schema.children(field_id), kind, strict=True):
        held = [found for source in sources if (found := _member(source, child.id)) is not None]
        members.append(assemble(schema, child.id, member.type, held, len(array)))
    mask = array.is_null() if array.null_count else None
    if not members:
        return array.cast(kind)
    return pa.StructArray.from_arrays(members, fields=list(kind), mask=mask)


def _member(source: FieldValues, child_id: int) -> FieldValues | None:
    if child_id not in source.map.nodes:
        return None
    if not isinstance(source.array, pa.StructArray):
        raise CorruptTable(source.where, (f"a struct of the table is {source.array.type} there",))
    index = source.array.type.get_field_index(source.map.name_of(child_id))
    return replace(source, array=source.array.field(index)) if index >= 0 else None


def _list(
    schema: Schema, field_id: int, kind: pa.ListType | pa.LargeListType, sources: Sequence[FieldValues]
) -> pa.Array:
    item = schema.children(field_id)[0]
    held = [replace(source, array=_items(source)) for source in sources]
    array = sources[0].array
    assert isinstance(array, pa.ListArray | pa.LargeListArray), "the types of both are lists"
    items = assemble(schema, item.id, kind.value_type, held, len(held[0].array))
    offsets = array.offsets
    if len(array):
        offsets = pa.compute.subtract(offsets, offsets[0])
    mask = array.is_null() if array.null_count else None
    build = pa.LargeListArray if at.is_large_list(kind) else pa.ListArray
    return build.from_arrays(offsets, items, type=kind, mask=mask)


def _items(source: FieldValues) -> pa.Array:
    """The items that belong to the rows of a (maybe sliced) list array, deleted or null rows' items included."""
    array = source.array
    if not isinstance(array, pa.ListArray | pa.LargeListArray):
        raise CorruptTable(source.where, (f"a list of the table is {array.type} there",))
    if not len(array):
        return array.values.slice(0, 0)
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return array.values.slice(first, last - first)


def _leaf(source: FieldValues, kind: pa.DataType) -> pa.Array:
    array = source.array
    if array.type == kind:
        return array
    if isinstance(kind, pa.JsonType) and (at.is_large_binary(array.type) or at.is_binary(array.type)):
        return decode_json_array(array, kind, source.where)
    try:
        if isinstance(kind, pa.BaseExtensionType):
            return pa.ExtensionArray.from_storage(kind, array.cast(kind.storage_type))
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        return array.cast(kind)
    except pa.ArrowException as error:
        problem = f"a column of type {array.type} can't be read as {kind}: {error}"
        raise CorruptTable(source.where, (problem,)) from error
