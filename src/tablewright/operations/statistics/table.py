"""Counts of a table, and bytes on disk of each field.

The bytes of a field are those of its physical column, summed over all data files; the ends of the files say them. A
field without a column of its own (a struct from file version 2.1 on) has 0, and so has each one in legacy files.

Tests: ``tests/unit/api/test_health_verbs.py``, ``tests/differential/test_stats.py``.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from tablewright.data.file_end import LEGACY_BEFORE, column_bytes
from tablewright.data.prefetch import prefetch
from tablewright.errors import CorruptTable
from tablewright.format.fragment import DataFile
from tablewright.format.fragment.entries import files_of
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.base import ObjectNotFound

__all__ = ["field_bytes", "table_statistics"]

_FILES_AHEAD = 64


def table_statistics(snapshot: Snapshot, small_below: int) -> dict[str, int]:
    """Deleted rows, fragments, fragments with fewer rows than ``small_below``, and bytes of deletion files."""
    facts = snapshot.fragments.facts
    return {
        "num_deleted_rows": int(facts.deleted_rows.sum()),
        "num_fragments": len(facts),
        "num_small_files": int((facts.physical_rows < np.uint64(small_below)).sum()),
        "deletion_file_size_bytes": _deletion_bytes(snapshot),
    }


def _deletion_bytes(snapshot: Snapshot) -> int:
    files = files_of(snapshot.fragments)
    total = 0
    for base in np.unique(files.deletion_bases).tolist():
        wanted = {files.deletion_paths[place] for place in np.flatnonzero(files.deletion_bases == base).tolist()}
        listed = snapshot.store_of(None if base < 0 else base).list("_deletions")
        total += sum(info.size for info in listed if info.path in wanted)
    return total


def field_bytes(snapshot: Snapshot) -> dict[int, int]:
    """Bytes on disk by field id, in the order of the schema."""
    found: Counter[int] = Counter()
    files = files_of(snapshot.fragments)
    places = range(len(files.data_paths))
    for counted in prefetch(lambda place: _bytes_of(snapshot, files.data_file(place)), places, window=_FILES_AHEAD):
        found.update(counted)
    return {field.id: found[field.id] for field in snapshot.schema.fields}


def _bytes_of(snapshot: Snapshot, file: DataFile) -> dict[int, int]:
    if (file.file_major_version, file.file_minor_version) < LEGACY_BEFORE:
        return {}
    store, path = snapshot.data_place(file)
    try:
        sizes = column_bytes(store, path, file.file_size_bytes)
    except ObjectNotFound:
        raise CorruptTable(path, ("the data file is missing",)) from None
    pairs = zip(file.fields, file.column_indices, strict=False)
    return {field_id: sizes[column] for field_id, column in pairs if field_id >= 0 and 0 <= column < len(sizes)}
