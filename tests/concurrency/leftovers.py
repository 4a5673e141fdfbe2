"""Files of a table that no version refers to: what failed or needless work has left behind."""

from __future__ import annotations

from collections.abc import Iterable

import tablewright as tw
from tablewright.format.naming import data_path, deletion_path, index_dir

__all__ = ["unreferenced"]

_KINDS = ("data/", "_deletions/", "_transactions/", "_indices/")


def unreferenced(dataset: tw.LanceDataset, paths: Iterable[str]) -> set[str]:
    """Those of a table's files (paths below its root) that none of its versions needs."""
    used: set[str] = set()
    directories: set[str] = set()
    for entry in dataset.versions():
        snapshot = dataset.checkout_version(entry["version"])._snapshot
        used.add(f"_transactions/{snapshot.manifest.transaction_file}")
        for index in snapshot.manifest.indices:
            used |= {f"{index_dir(index.uuid)}/{file.path}" for file in index.files}
            directories |= set() if index.files else {index_dir(index.uuid)}
        for fragment in snapshot.fragments:
            used |= {data_path(file.path) for file in fragment.files}
            if fragment.deletion is not None:
                used.add(deletion_path(fragment.id, fragment.deletion))
    ours = {path for path in paths if path.startswith(_KINDS)} - used
    return {path for path in ours if "/".join(path.split("/")[:2]) not in directories}
