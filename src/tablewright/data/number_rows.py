"""Few rows, read without the codec where all wanted columns of a fragment are numbers in one local file.

A lookup by key wants one row. The codec takes most of a millisecond for it: see :mod:`.number_files`. What the reader
of a fragment checks (:mod:`.read`) is checked here too: the size of the file, its number of rows, and the types of its
columns. Where anything differs, ``None`` is returned, and that reader says what it is.

1. Neighbours are decoded from the bytes of the file alone (:mod:`.number_files`), where no other fragment has wanted
   rows, or the file is read for the first time.
2. Of other rows it is worked out, and kept, where the chunks of the columns are (:mod:`.packed_reads`). Those that have
   some of the rows are read.
3. The values of all fragments are taken out of these chunks at once.

Where several fragments have wanted rows, neighbours in a file that was read before are picked as in 2: one look at the
chunks of all fragments takes less time than a range of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.data.context import ReadContext
from tablewright.data.number_files import VERSION_READ_HERE, NumberFile, is_number, open_numbers
from tablewright.data.packed_reads import packed_chunks
from tablewright.data.read import files_to_open
from tablewright.data.shape import ReadShape
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.naming import DATA_DIR
from tablewright.format.packed_column import PickedRows
from tablewright.format.row_set import Offsets
from tablewright.format.schema import Schema
from tablewright.storage.identity import is_local
from tablewright.storage.requests import count_request

__all__ = ["FEW_ROWS", "are_read_here", "read_number_rows", "read_number_runs"]

FEW_ROWS = 512  # a chunk of some kilobytes is read for each, in a step of Python; of more rows, the codec is as quick

Words = npt.NDArray[Any]
_Columns = Sequence[Words] | Sequence[PickedRows]

_PICKED_MAX = 64  # neighbours; of more, whole chunks are unpacked in less time


def are_read_here(context: ReadContext, shape: ReadShape) -> bool:
    """Whether few rows may be read without the codec: numbers of a local table. Files decide, one by one."""
    location = context.store_of(None).codec_location(DATA_DIR)
    return _has_numbers_alone(shape) and location is not None and is_local(location)


def read_number_rows(
    context: ReadContext, fragment: Fragment, shape: ReadShape, offsets: Offsets
) -> pa.RecordBatch | None:
    """The physical rows at ascending offsets, deleted or not; ``None`` if the codec has to read them."""
    if not len(offsets) or not _has_numbers_alone(shape):
        return None
    columns = _read(context, fragment, offsets, shape, is_alone=True)
    return None if columns is None else _batch(shape, [columns])


def read_number_runs(
    context: ReadContext, shape: ReadShape, wanted: Sequence[tuple[Fragment, Offsets]]
) -> Iterator[tuple[int, pa.RecordBatch | None]]:
    """:func:`read_number_rows` of several fragments, in order: a number of neighbours, and the rows of all of these."""
    if not _has_numbers_alone(shape):
        yield len(wanted), None
        return
    columns = [_read(context, *each, shape, is_alone=False) for each in wanted]
    for _, run in groupby(columns, key=lambda each: each is None):
        same = list(run)
        yield len(same), _batch(shape, [each for each in same if each is not None])


def _has_numbers_alone(shape: ReadShape) -> bool:
    return bool(shape.columns) and all(is_number(kind) for _, kind in shape.columns)


def _read(
    context: ReadContext, fragment: Fragment, offsets: Offsets, shape: ReadShape, *, is_alone: bool
) -> _Columns | None:
    """The rows of one fragment, column by column."""
    files = files_to_open(context, fragment, shape)
    if len(files) != 1:
        return None
    file = files[0].file
    if (file.file_major_version, file.file_minor_version) != VERSION_READ_HERE:
        return None
    with open_numbers(files[0].store, files[0].path) as opened:
        if opened is None or not _is_as_told(opened, file, fragment, shape.table):
            return None
        columns = dict(zip(file.fields, file.column_indices, strict=True))
        places = [columns.get(column, -1) for column, _ in shape.columns]
        first, stop = int(offsets[0]), int(offsets[-1]) + 1
        if min(places) < 0 or stop > opened.num_rows:
            return None
        if [opened.columns[place].type for place in places] != [kind for _, kind in shape.columns]:
            return None
        if stop - first > len(offsets):
            return _picked(opened, places, offsets)
        picked = None
        if not is_alone and opened.was_known and len(offsets) <= _PICKED_MAX:
            picked = _picked(opened, places, offsets)
        return opened.words(places, first, stop) if picked is None else picked


def _picked(opened: NumberFile, places: Sequence[int], offsets: Offsets) -> list[PickedRows] | None:
    columns = [chunks for chunks in packed_chunks(opened, places) if chunks is not None]
    if len(columns) < len(places):
        return None
    count_request("read chunks", path=opened.path)
    found = [chunks.pick(offsets, opened.read_bytes) for chunks in columns]
    ready = [rows for rows in found if rows is not None]
    return ready if len(ready) == len(found) else None


def _batch(shape: ReadShape, parts: Sequence[_Columns]) -> pa.RecordBatch | None:
    """The rows of all parts, one after the other; ``None`` without any, or if chunks can't be what they should."""
    if not parts:
        return None
    try:
        columns = [_joined(pieces) for pieces in zip(*parts, strict=True)]
    except ValueError:
        return None
    arrays = [
        pa.Array.from_buffers(kind, len(words), [None, pa.py_buffer(words)])
        for (_, kind), words in zip(shape.columns, columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=shape.schema)


def _joined(pieces: Sequence[Words | PickedRows]) -> Words:
    """The values of a column; ``ValueError`` if chunks can't be what they should."""
    found: list[Words] = []
    for _, run in groupby(pieces, key=type):
        same = list(run)
        picked = [piece for piece in same if isinstance(piece, PickedRows)]
        ready = [piece for piece in same if not isinstance(piece, PickedRows)]
        found += [PickedRows.join(picked).values()] if picked else ready
    return found[0] if len(found) == 1 else np.concatenate(found)


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
