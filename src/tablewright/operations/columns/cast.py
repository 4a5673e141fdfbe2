"""Values of columns in another type: structs and lists are walked, leaves are cast by Lance's own kernels."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from tablewright.errors import InvalidRequest
from tablewright.expressions.casts import cast_array, lance_name
from tablewright.operations.columns.schema import InvalidColumns
from tablewright.reading.projection import Path

__all__ = ["CastColumns", "recast"]


@dataclass(frozen=True, slots=True)
class CastColumns:
    """The columns ``names`` in the types (and under the names) of ``schema``."""

    names: tuple[str, ...]
    schema: pa.Schema

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple((name,) for name in self.names)

    def compute(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = [
            recast(batch.column(name), field.type, name) for name, field in zip(self.names, self.schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def recast(array: pa.Array, kind: pa.DataType, path: str) -> pa.Array:
    """The values as another type. Members of structs are matched by position: they may have new names too.

    >>> recast(pa.array([{"x": 1}]), pa.struct({"y": pa.int8()}), "s").to_pylist()
    [{'y': 1}]
    """
    if array.type == kind:
        return array
    if at.is_struct(kind) and isinstance(array, pa.StructArray):
        members = [
            recast(array.field(index), member.type, f"{path}.{member.name}") for index, member in enumerate(kind)
        ]
        mask = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(members, fields=list(kind), mask=mask)
    if (at.is_list(kind) or at.is_large_list(kind)) and type(array.type) is type(kind) and _is_nested(kind.value_type):
        return _list(array, kind, path)
    try:
        return cast_array(array, kind)
    except InvalidRequest as error:
        raise InvalidColumns(
            f'Invalid user input: Cannot cast column "{path}" from {lance_name(array.type)} to {lance_name(kind)}: '
            f"{error}"
        ) from error


def _list(array: pa.Array, kind: pa.ListType | pa.LargeListType, path: str) -> pa.Array:
    assert isinstance(array, pa.ListArray | pa.LargeListArray), "the types of both are lists"
    offsets = array.offsets
    first, last = (offsets[0].as_py(), offsets[-1].as_py()) if len(array) else (0, 0)
    items = recast(array.values.slice(first, last - first), kind.value_type, f"{path}.{kind.value_field.name}")
    build = pa.LargeListArray if at.is_large_list(kind) else pa.ListArray
    mask = array.is_null() if array.null_count else None
    return build.from_arrays(pc.subtract(offsets, first) if first else offsets, items, type=kind, mask=mask)


def _is_nested(kind: pa.DataType) -> bool:
    return bool(at.is_struct(kind) or at.is_list(kind) or at.is_large_list(kind))
