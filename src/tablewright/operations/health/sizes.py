"""The size of every file that a version names: as recorded in the manifest, else as listed.

Deletion files have no recorded size. Bytes of blobs beside a data file count as its own.

Tests: ``tests/unit/operations/health/test_measure.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tablewright.format.fragment.entries import FragmentFiles
from tablewright.format.fragment.facts import NO_BASE
from tablewright.format.naming import DATA_DIR, DELETIONS_DIR
from tablewright.format.wire import Ints
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["FileSizes", "sizes_of_files"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FileSizes:
    """Bytes of each data file and of each deletion file; how many of the table's own files are not there."""

    data: Ints
    deletions: Ints
    missing: int


def sizes_of_files(
    snapshot: Snapshot, files: FragmentFiles, listed: Mapping[str, int], beside: Mapping[str, int]
) -> FileSizes:
    """Sizes in the order of ``files``. ``listed`` and ``beside`` are of the table's own directory; files in base
    paths whose size is not recorded are listed there.
    """
    own_data = _own(files.data_bases)
    data, missing = files.data_bytes.copy(), 0
    for place in own_data:
        path = f"{DATA_DIR}/{files.data_paths[place]}"
        found = listed.get(path)
        missing += found is None
        data[place] = (data[place] or found or 0) + beside.get(path, 0)
    deletions = np.zeros(len(files.deletion_paths), np.int64)
    for place in _own(files.deletion_bases):
        found = listed.get(files.deletion_paths[place])
        missing += found is None
        deletions[place] = found or 0
    _add_foreign(snapshot, files, data, deletions)
    return FileSizes(data=data, deletions=deletions, missing=missing)


def _own(bases: Ints) -> list[int]:
    return list(np.flatnonzero(bases == NO_BASE).tolist())


def _add_foreign(snapshot: Snapshot, files: FragmentFiles, data: Ints, deletions: Ints) -> None:
    """Look up what is in base paths: deletion files, and data files without a recorded size."""
    for base in np.unique(np.concatenate((files.data_bases, files.deletion_bases))).tolist():
        if base == NO_BASE:
            continue
        prefix = f"{DATA_DIR}/" if snapshot.manifest.base_path(base).is_dataset_root else ""
        unknown = np.flatnonzero((files.data_bases == base) & (data == 0)).tolist()
        hidden = np.flatnonzero(files.deletion_bases == base).tolist()
        _look_up(snapshot, base, data, {prefix + files.data_paths[place]: place for place in unknown}, prefix)
        _look_up(snapshot, base, deletions, {files.deletion_paths[place]: place for place in hidden}, DELETIONS_DIR)


def _look_up(snapshot: Snapshot, base: int, sizes: Ints, wanted: Mapping[str, int], directory: str) -> None:
    if wanted:
        for info in snapshot.store_of(base).list(directory.rstrip("/")):
            if info.path in wanted:
                sizes[wanted[info.path]] = info.size
