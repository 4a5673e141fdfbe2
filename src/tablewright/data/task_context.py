"""What a worker needs to read the fragments of a task: its world, and the base paths that came with the task.

Tests: ``tests/unit/operations/columns/test_read.py``, ``tests/unit/data/test_blob_values.py``.
"""

from __future__ import annotations

from tablewright.format.fragment import Fragment
from tablewright.format.manifest import BasePath
from tablewright.format.row_ids import RowIdSequence, decode_row_ids
from tablewright.format.row_set import RowSet
from tablewright.snapshot.files import read_deletion_vector
from tablewright.snapshot.places import FilePlaces
from tablewright.storage.base import Store
from tablewright.world import World

__all__ = ["TaskContext"]


class TaskContext(FilePlaces):
    """The surroundings of fragments without a snapshot: no manifest is read on a worker."""

    def __init__(self, world: World, base_paths: tuple[BasePath, ...] = ()) -> None:
        self.world = world
        self._base_paths = base_paths
        self._stores: dict[int, Store] = {}
        self._vectors: dict[int, RowSet] = {}

    @property
    def base_paths(self) -> tuple[BasePath, ...]:
        """Those that came with the task."""
        return self._base_paths

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
