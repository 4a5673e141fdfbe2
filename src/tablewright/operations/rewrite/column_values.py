"""Values of a column put together from two places, dictionaries included, which Arrow can't always unite.

Tests: ``tests/differential/operations/test_update.py``, ``tests/differential/test_merge_types.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from tablewright.data.dictionaries import as_one
from tablewright.errors import InvalidRequest
from tablewright.format.row_set import Offsets

__all__ = ["concatenated", "filled", "placed"]


def placed(old: pa.Array, at_rows: Offsets, values: pa.Array) -> pa.Array:
    """The old values, with others at some rows."""
    assert len(at_rows) == len(values), f"{len(values)} values for {len(at_rows)} rows"
    kind = old.type
    if _plain(kind) != kind:
        return _again(placed(_apart(old), at_rows, _apart(values)), kind)
    if at.is_primitive(kind) and not at.is_duration(kind):
        mask = np.zeros(len(old), np.bool_)
        mask[at_rows] = True
        return pc.replace_with_mask(old, pa.array(mask), values)
    indices = np.arange(len(old))
    indices[at_rows] = np.arange(len(old), len(old) + len(values))
    return pa.concat_arrays([old, values]).take(pa.array(indices))


def concatenated(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of several batches of one schema, at least one."""
    if len(batches) == 1:
        return batches[0]
    schema = batches[0].schema
    if all(_plain(kind) == kind for kind in schema.types):
        return as_one(batches)
    arrays = [
        _again(pa.concat_arrays([_apart(batch.column(index)) for batch in batches]), kind)
        for index, kind in enumerate(schema.types)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


# ------------------------------------------------------------------------------------------------------- dictionaries
def _apart(array: pa.Array) -> pa.Array:
    """The values with their dictionaries taken apart: Arrow can't unite dictionaries that hold nulls."""
    if isinstance(array, pa.DictionaryArray):
        return array.dictionary_decode()
    plain = _plain(array.type)
    return array if plain == array.type else array.cast(plain)


def _again(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values as the type that they were taken apart from."""
    try:
        if not at.is_dictionary(kind):
            return array if array.type == kind else array.cast(kind)
        found = array.dictionary_encode()
        indices = found.indices.cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, found.dictionary, ordered=kind.ordered)
    except pa.ArrowException as error:
        raise InvalidRequest(f"The values don't fit a column of type {kind}: {error}") from error


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type with dictionaries inside of it taken apart."""
    if at.is_dictionary(kind):
        return kind.value_type
    if at.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    if at.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    if at.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_plain(kind.value_type)))
    return kind


def filled(array: pa.Array, field: pa.Field) -> pa.Array:
    """A column that may hold no null, without those that deleted rows have left in it from other times."""
    if field.nullable or not array.null_count or array.null_count == len(array):
        return array
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    indices = np.where(valid, np.arange(len(array)), np.argmax(valid))
    return array.take(pa.array(indices))
