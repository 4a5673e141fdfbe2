"""Few rows of a fragment, read without the codec where all wanted columns are numbers in one local file.

A lookup by key wants one row. The codec takes most of a millisecond for it: see :mod:`.number_files`. Rows that are no
neighbours are read one by one (:mod:`.packed_reads`). What the reader
of a fragment checks (:mod:`.read`) is checked here too: the size of the file, its number of rows, and the types of its
columns. Where anything differs, ``None`` is returned, and that reader says what it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from tablewright.data.context import ReadContext
from tablewright.data.number_files import NumberFile, is_number, open_numbers
from tablewright.data.packed_reads import packed_columns
from tablewright.data.read import files_to_open
from tablewright.data.shape import ReadShape
from tablewright.errors import CorruptTable
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.row_set import Offsets
from tablewright.format.schema import Schema

__all__ = ["read_number_rows"]


def read_number_rows(
    context: ReadContext, fragment: Fragment, shape: ReadShape, offsets: Offsets
) -> pa.RecordBatch | None:
    """The physical rows at ascending offsets, deleted or not; ``None`` if the codec has to read them."""
    if not len(offsets) or not shape.columns or not all(is_number(kind) for _, kind in shape.columns):
        return None
    files = files_to_open(context, fragment, shape)
    if len(files) != 1:
        return None
    with open_numbers(files[0].store, files[0].path) as opened:
        if opened is None or not _is_as_told(opened, files[0].file, fragment, shape.table):
            return None
        places = dict(zip(files[0].file.fields, files[0].file.column_indices, strict=True))
        wanted = [places.get(column, -1) for column, _ in shape.columns]
        first, stop = int(offsets[0]), int(offsets[-1]) + 1
        if stop - first == len(offsets):
            arrays = opened.read(wanted, first, stop)
        else:
            arrays = _taken(opened, wanted, offsets) if stop <= opened.num_rows else None
    if arrays is None or [array.type for array in arrays] != [kind for _, kind in shape.columns]:
        return None
    return pa.RecordBatch.from_arrays(arrays, schema=shape.schema)


def _taken(opened: NumberFile, places: Sequence[int], offsets: Offsets) -> list[pa.Array] | None:
    found = []
    for place, column in zip(places, packed_columns(opened, places), strict=True):
        kind = opened.columns[place].type
        if kind is None or column is None or offsets[0] < column.first_row:
            return None
        try:
            words = column.take(offsets)
        except CorruptTable:
            return None  # the codec says what is wrong
        found.append(pa.Array.from_buffers(kind, len(words), [None, pa.py_buffer(words)]))
    return found


def _is_as_told(opened: NumberFile, file: DataFile, fragment: Fragment, table: Schema) -> bool:
    """Whether a file is what the manifest says of it: its size, its rows, the type of each of its columns."""
    if file.file_size_bytes not in (0, opened.identity[2]) or opened.num_rows != fragment.physical_rows:
        return False
    if len(file.fields) != len(file.column_indices):
        return False
    for field_id, place in zip(file.fields, file.column_indices, strict=True):
        if place < 0 or not table.has(field_id):
            continue
        if place >= len(opened.columns) or opened.columns[place].logical_type != table.by_id(field_id).logical_type:
            return False
    return True
