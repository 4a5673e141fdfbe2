"""What a worker needs to read the fragments of a task: its world, and the base paths that came with the task.

Tests: ``tests/unit/operations/columns/test_read.py``, ``tests/unit/data/test_blob_values.py``.
"""

from __future__ import annotations

from collections.abc import Hashable

from tablewright.errors import CorruptTable
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.manifest import BasePath
from tablewright.format.naming import data_path
from tablewright.format.row_ids import RowIdSequence, decode_row_ids
from tablewright.format.row_set import RowSet
from tablewright.snapshot.files import read_deletion_vector, table_place
from tablewright.storage.base import Store
from tablewright.storage.subtree import related_store
from tablewright.world import World

__all__ = ["TaskContext"]


class TaskContext:
    """The surroundings of fragments without a snapshot: no manifest is read on a worker."""

    def __init__(self, world: World, base_paths: tuple[BasePath, ...] = ()) -> None:
        self._world = world
        self._bases = {base.id: base for base in base_paths}
        self._stores: dict[int, Store] = {}
        self._vectors: dict[int, RowSet] = {}

    @property
    def place(self) -> Hashable | None:
        """The address, storage options and base paths of the table, as a key; ``None`` if its files can't be cached."""
        return table_place(self._world.store, tuple(self._bases.values()))

    def data_place(self, file: DataFile) -> tuple[Store, str]:
        """Store and path of a data file."""
        if file.base_id is None or self._base(file.base_id).is_dataset_root:
            return self.store_of(file.base_id), data_path(file.path)
        return self.store_of(file.base_id), file.path

    def deletion_vector(self, fragment: Fragment) -> RowSet | None:
        """Which rows of a fragment are deleted; ``None`` for none."""
        if fragment.deletion is None:
            return None
        vector = self._vectors.get(fragment.id)
        if vector is None:
            store = self.store_of(fragment.deletion.base_id)
            vector = self._vectors.setdefault(fragment.id, read_deletion_vector(store, fragment))
        return vector

    def row_ids(self, fragment: Fragment) -> RowIdSequence | None:
        """The stable row ids of a fragment's physical rows; ``None`` if the table has none."""
        if fragment.row_ids is None:
            return None
        return decode_row_ids(fragment.row_ids, f"fragment {fragment.id}", fragment.physical_rows)

    def store_of(self, base_id: int | None) -> Store:
        """The table's own store, or that of a base path."""
        if base_id is None:
            return self._world.store
        store = self._stores.get(base_id)
        if store is None:
            store = self._stores.setdefault(base_id, related_store(self._world.store, self._base(base_id).path))
        return store

    def _base(self, base_id: int) -> BasePath:
        if base_id not in self._bases:
            raise CorruptTable(self._world.store.location.uri, (f"the base path {base_id} is not listed",))
        return self._bases[base_id]
