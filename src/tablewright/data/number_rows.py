"""Few rows, read without the codec where all wanted columns of a fragment are numbers in one local file.

A lookup by key wants one row. The codec takes most of a millisecond for it: see :mod:`.number_files`. What the reader
of a fragment checks (:mod:`.read`) is checked here too: the size of the file, its number of rows, and the types of its
columns. Where anything differs, ``None`` is returned, and that reader says what it is.

1. Neighbours in a file that is read for the first time are decoded from its bytes alone (:mod:`.number_files`).
2. Else it is worked out, and kept, where the chunks of the columns are (:mod:`.packed_reads`). Those that have some of
   the rows are read, and the values of all rows, whichever fragments they are in, are taken out of them at once.
   Where a column has other pages, neighbours are decoded as in 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.data.context import ReadContext
from tablewright.data.number_files import NumberFile, is_number, open_numbers
from tablewright.data.packed_reads import packed_chunks
from tablewright.data.read import files_to_open
from tablewright.data.shape import ReadShape
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.packed_column import PickedRows
from tablewright.format.row_set import Offsets
from tablewright.format.schema import Schema
from tablewright.storage.requests import count_request

__all__ = ["read_number_rows", "read_rows_together"]

Words = npt.NDArray[Any]
_Part = Words | PickedRows

_FEW = 64


def read_number_rows(
    context: ReadContext, fragment: Fragment, shape: ReadShape, offsets: Offsets
) -> pa.RecordBatch | None:
    """The physical rows at ascending offsets, deleted or not; ``None`` if the codec has to read them."""
    return read_rows_together(context, shape, [(fragment, offsets)])


def read_rows_together(
    context: ReadContext, shape: ReadShape, wanted: Iterable[tuple[Fragment, Offsets]]
) -> pa.RecordBatch | None:
    """The rows of some fragments, one after the other; ``None`` if the codec has to read those of one of them."""
    if not shape.columns or not all(is_number(kind) for _, kind in shape.columns):
        return None
    parts: list[Sequence[_Part]] = []
    for fragment, offsets in wanted:
        part = _read(context, fragment, shape, offsets) if len(offsets) else None
        if part is None:
            return None
        parts.append(part)
    if not parts:
        return None
    arrays = []
    for (_, kind), pieces in zip(shape.columns, zip(*parts, strict=True), strict=True):
        words = _joined(pieces)
        if words is None:
            return None
        arrays.append(pa.Array.from_buffers(kind, len(words), [None, pa.py_buffer(words)]))
    return pa.RecordBatch.from_arrays(arrays, schema=shape.schema)


def _read(context: ReadContext, fragment: Fragment, shape: ReadShape, offsets: Offsets) -> Sequence[_Part] | None:
    """The rows of one fragment: a part for each column."""
    files = files_to_open(context, fragment, shape)
    if len(files) != 1:
        return None
    with open_numbers(files[0].store, files[0].path) as opened:
        if opened is None or not _is_as_told(opened, files[0].file, fragment, shape.table):
            return None
        columns = dict(zip(files[0].file.fields, files[0].file.column_indices, strict=True))
        places = [columns.get(column, -1) for column, _ in shape.columns]
        first, stop = int(offsets[0]), int(offsets[-1]) + 1
        if min(places) < 0 or stop > opened.num_rows:
            return None
        if [opened.columns[place].type for place in places] != [kind for _, kind in shape.columns]:
            return None
        are_neighbours = stop - first == len(offsets)
        if not are_neighbours or (opened.was_known and len(offsets) <= _FEW):
            picked = _picked(opened, places, offsets)
            if picked is not None or not are_neighbours:
                return picked
        return opened.words(places, first, stop)


def _picked(opened: NumberFile, places: Sequence[int], offsets: Offsets) -> list[_Part] | None:
    count_request("read chunks", path=opened.path)
    found: list[_Part] = []
    for chunks in packed_chunks(opened, places):
        rows = None if chunks is None else chunks.pick(offsets, opened.read_bytes)
        if rows is None:
            return None
        found.append(rows)
    return found


def _joined(pieces: Sequence[_Part]) -> Words | None:
    """The values of a column; ``None`` if chunks can't be what they should: the codec says what is wrong."""
    picked = [piece for piece in pieces if isinstance(piece, PickedRows)]
    if not picked:
        ready = [piece for piece in pieces if not isinstance(piece, PickedRows)]
        return ready[0] if len(ready) == 1 else np.concatenate(ready)
    try:
        values = PickedRows.join(picked).values()
    except ValueError:
        return None
    if len(picked) == len(pieces):
        return values
    each = iter(np.split(values, np.cumsum([len(piece) for piece in picked])[:-1]))
    return np.concatenate([next(each) if isinstance(piece, PickedRows) else piece for piece in pieces])


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
