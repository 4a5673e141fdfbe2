"""Where the files of a version are: below the table's own directory, or below one of its base paths.

A base path may be the root of another table, with the directories of one, or a plain directory.

Tests: ``tests/unit/snapshot/test_snapshot.py``, ``tests/unit/operations/columns/test_read.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable

from tablewright.errors import CorruptTable
from tablewright.format.fragment import DataFile
from tablewright.format.index import IndexMetadata
from tablewright.format.manifest import BasePath
from tablewright.format.naming import data_path, index_dir
from tablewright.snapshot.files import table_place
from tablewright.storage.base import Store
from tablewright.storage.subtree import related_store
from tablewright.world import World

__all__ = ["FilePlaces"]


class FilePlaces(ABC):
    """The places of a version's files; a snapshot, or what a task has of one. Opens each base path once."""

    world: World
    _stores: dict[int, Store]

    @property
    @abstractmethod
    def base_paths(self) -> tuple[BasePath, ...]:
        """The other places that files may be in."""

    @property
    def place(self) -> Hashable | None:
        """The address, storage options and base paths of the table, as a key; ``None`` if its files can't be cached."""
        return table_place(self.world.store, self.base_paths)

    def store_of(self, base_id: int | None) -> Store:
        """The store that files with this ``base_id`` are in: the table's own, or that of a base path."""
        if base_id is None:
            return self.world.store
        store = self._stores.get(base_id)
        if store is None:
            store = self._stores.setdefault(base_id, related_store(self.world.store, self._base(base_id).path))
        return store

    def data_place(self, file: DataFile) -> tuple[Store, str]:
        """Store and path of a data file. Below a base path that is no table of its own there is no ``data/``."""
        inside = file.base_id is None or self._base(file.base_id).is_dataset_root
        return self.store_of(file.base_id), data_path(file.path) if inside else file.path

    def index_place(self, index: IndexMetadata) -> tuple[Store, str]:
        """Store and directory of an index's files."""
        inside = index.base_id is None or self._base(index.base_id).is_dataset_root
        return self.store_of(index.base_id), index_dir(index.uuid) if inside else str(index.uuid)

    def _base(self, base_id: int) -> BasePath:
        for base in self.base_paths:
            if base.id == base_id:
                return base
        problem = f"files name the base path {base_id}, which is not listed"
        raise CorruptTable(self.world.store.location.uri, (problem,))
