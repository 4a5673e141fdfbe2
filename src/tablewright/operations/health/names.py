"""Which files of a table's own directory a manifest names: these stay as long as the version does.

Files that a manifest reaches through a base path count where that base lies in the directory; so a branch, which is a
table of its own below its parent's, names files of the parent.

Tests: ``tests/unit/operations/health/test_history.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tablewright.format.fragment.entries import FragmentFiles, files_of
from tablewright.format.fragment.facts import NO_BASE
from tablewright.format.manifest import Manifest
from tablewright.format.naming import data_path, index_dir, transaction_file_path
from tablewright.format.wire import Ints
from tablewright.storage.base import Store
from tablewright.storage.subtree import related_store

__all__ = ["Names", "own_prefixes"]

Prefixes = Mapping[int, str]
"""By base id: the path of that base inside the listed directory, with the slash after it, for bases inside it."""


def own_prefixes(manifest: Manifest, store: Store, root: Store) -> tuple[Prefixes, Prefixes]:
    """Where data files, and where other files, of a manifest in ``store`` are inside ``root``."""
    own = _inside(store.location.uri, root.location.uri)
    others = {} if own is None else {NO_BASE: own}
    data = {} if own is None else {NO_BASE: own + data_path("")}
    for base in manifest.base_paths:
        prefix = _inside(related_store(store, base.path).location.uri, root.location.uri)
        if prefix is not None:
            others[base.id] = prefix
            data[base.id] = prefix + data_path("") if base.is_dataset_root else prefix
    return data, others


def _inside(uri: str, root: str) -> str | None:
    if uri == root:
        return ""
    prefix = root.rstrip("/") + "/"
    return uri[len(prefix) :] + "/" if uri.startswith(prefix) else None


@dataclass(slots=True)
class Names:
    """Paths inside one directory, as far as manifests that were added name them."""

    data: set[str] = field(default_factory=set)
    deletions: set[str] = field(default_factory=set)
    index_dirs: set[str] = field(default_factory=set)
    transactions: set[str] = field(default_factory=set)

    def add(self, manifest: Manifest, store: Store, root: Store, files: FragmentFiles | None = None) -> None:
        """Add a manifest of ``store``. ``files`` are those of its fragments that are not added yet, if known."""
        data, others = own_prefixes(manifest, store, root)
        self.add_files(files_of(manifest.fragments) if files is None else files, data, others)
        for index in manifest.indices:
            base = NO_BASE if index.base_id is None else index.base_id
            if base in others:
                self.index_dirs.add(others[base] + index_dir(index.uuid))
        if manifest.transaction_file and NO_BASE in others:
            self.transactions.add(others[NO_BASE] + transaction_file_path(manifest.transaction_file))

    def add_files(self, files: FragmentFiles, data: Prefixes, others: Prefixes) -> None:
        """Add files that fragments name."""
        self.data.update(_prefixed(files.data_paths, files.data_bases, data))
        self.deletions.update(_prefixed(files.deletion_paths, files.deletion_bases, others))

    def holds(self, path: str) -> bool:
        """Whether a file in the directory is named: by itself, or as a part of an index or of a data file's blobs."""
        if path in self.data or path in self.deletions or path in self.transactions:
            return True
        return f"{path.rpartition('/')[0]}.lance" in self.data or "/".join(path.split("/")[:2]) in self.index_dirs


def _prefixed(paths: list[str], bases: Ints, prefixes: Prefixes) -> list[str]:
    if set(prefixes) == {NO_BASE} and not (bases != NO_BASE).any():
        prefix = prefixes[NO_BASE]
        return [prefix + path for path in paths] if prefix else paths
    return [prefixes[base] + path for path, base in zip(paths, bases.tolist(), strict=True) if base in prefixes]
