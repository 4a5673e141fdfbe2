"""A column file has a value for every physical row, also for rows that are deleted and for which nothing was computed.

There it says null, or any value of the type where the column may not be null: zero, an empty text, an empty list. A
struct is never null in files of version 2.0, which could not say so.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from tablewright.data.assemble import null_array
from tablewright.data.dictionaries import as_one
from tablewright.data.sizes import fixed_width
from tablewright.format.row_set import Offsets

__all__ = ["Filler", "placeholder"]


class Filler:
    """Puts computed rows, batches of ``schema``, in their places among the physical rows of a fragment."""

    def __init__(self, schema: pa.Schema, file_version: str) -> None:
        no_nulls = [not f.nullable or (at.is_struct(f.type) and file_version == "2.0") for f in schema]
        arrays = [
            placeholder(f.type) if full else null_array(1, f.type) for f, full in zip(schema, no_nulls, strict=True)
        ]
        self._row = pa.RecordBatch.from_arrays(arrays, schema=schema)

    def widen(self, batch: pa.RecordBatch, offsets: Offsets, start: int, stop: int) -> pa.RecordBatch:
        """The rows from ``start`` up to ``stop``: those of the batch at their ``offsets``, fillers elsewhere."""
        if len(offsets) == stop - start:
            return batch
        places = np.full(stop - start, batch.num_rows, np.int64)
        places[offsets - start] = np.arange(batch.num_rows)
        filled = as_one([batch, self._row])
        return filled.take(pa.array(places))

    def rows(self, count: int) -> pa.RecordBatch:
        """Nothing but fillers."""
        return self._row.take(pa.array(np.zeros(count, np.int64)))


def placeholder(kind: pa.DataType) -> pa.Array:
    """One value of a type, which is not null.

    >>> placeholder(pa.struct({"x": pa.int8(), "s": pa.string()})).to_pylist()
    [{'x': 0, 's': ''}]
    """
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, placeholder(kind.storage_type))
    if at.is_struct(kind):
        members = [placeholder(field.type) for field in kind]
        return pa.StructArray.from_arrays(members, fields=list(kind)) if members else pa.array([{}], kind)
    if at.is_fixed_size_list(kind):
        items = placeholder(kind.value_type).take(pa.array(np.zeros(kind.list_size, np.int64)))
        return pa.FixedSizeListArray.from_arrays(items, type=kind)
    if at.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(pa.array([0], kind.index_type), placeholder(kind.value_type))
    if at.is_list(kind) or at.is_large_list(kind) or at.is_map(kind):
        return pa.array([[]], kind)
    if fixed_width(kind) is None:
        return pa.array([b""], pa.binary()).cast(kind)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bytes(max(1, fixed_width(kind) or 0)))])
