"""Bytes of columns that data files hold and the table no longer has.

A column is dead where its field was replaced by another file (a tombstone in the list of fields) or is not in the
schema any more. Its size is in the end of the file. Files with the same list of fields are alike, so of many only some
are opened, evenly spread, and the share found there holds for the others.

Tests: ``tests/unit/operations/health/test_measure.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from tablewright.data.file_end import LEGACY_BEFORE, column_bytes
from tablewright.data.prefetch import spread
from tablewright.errors import CorruptTable
from tablewright.format.fragment.entries import FileLayout, FragmentFiles
from tablewright.format.schema import Schema
from tablewright.format.wire import Ints
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.base import ObjectNotFound

__all__ = ["DeadColumns", "dead_columns_of", "measure_dead_columns"]

_FILES_MAX = 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeadColumns:
    """Dead bytes of each data file; how many files have dead columns, and how many of these were opened."""

    bytes: Ints
    files: int
    measured: int


def dead_columns_of(layout: FileLayout, schema: Schema) -> tuple[int, ...]:
    """The physical columns of a file whose fields the table no longer has.

    >>> import pyarrow as pa
    >>> table = Schema.from_arrow(pa.schema([("id", "int64")]))
    >>> dead_columns_of(FileLayout((0, -2, 7), (0, 1, 2), (2, 2)), table)
    (1, 2)
    """
    pairs = zip(layout.fields, layout.column_indices, strict=False)
    return tuple(column for field_id, column in pairs if column >= 0 and (field_id < 0 or not schema.has(field_id)))


def measure_dead_columns(snapshot: Snapshot, files: FragmentFiles, data_bytes: Ints) -> DeadColumns:
    """Open some of the files with dead columns; ``data_bytes`` are the sizes of all files."""
    dead = np.zeros(len(data_bytes), np.int64)
    columns = [
        () if layout.version < LEGACY_BEFORE else dead_columns_of(layout, snapshot.schema) for layout in files.layouts
    ]
    kinds = [number for number, found in enumerate(columns) if found]
    total = measured = 0
    for number in kinds:
        places = np.flatnonzero(files.data_layouts == number)
        chosen = _evenly(places, max(1, _FILES_MAX // len(kinds)))
        found = spread(partial(_dead_bytes, snapshot, files, columns[number]), chosen.tolist())
        known = np.array([size is not None for size in found], np.bool_)
        sizes = np.array([size or 0 for size in found], np.int64)
        seen = int(data_bytes[chosen[known]].sum())
        rate = sizes.sum() / seen if seen else 0.0
        dead[places] = np.rint(data_bytes[places] * rate)
        dead[chosen[known]] = sizes[known]
        total, measured = total + len(places), measured + int(known.sum())
    return DeadColumns(bytes=np.minimum(dead, data_bytes), files=total, measured=measured)


def _evenly(places: Ints, count: int) -> Ints:
    if len(places) <= count:
        return places
    return places[np.linspace(0, len(places) - 1, count).astype(np.int64)]


def _dead_bytes(snapshot: Snapshot, files: FragmentFiles, columns: tuple[int, ...], place: int) -> int | None:
    """What the dead columns of one file take; ``None`` if it is missing or no data file, which ``validate`` reports."""
    file = files.data_file(place)
    store, path = snapshot.data_place(file)
    try:
        sizes = column_bytes(store, path, file.file_size_bytes)
    except (ObjectNotFound, CorruptTable):
        return None
    return sum(sizes[column] for column in columns if column < len(sizes))
