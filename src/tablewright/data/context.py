"""What reading a fragment needs beyond the fragment: where its files are, and which of its rows are deleted.

A :class:`~tablewright.snapshot.snapshot.Snapshot` is one. A worker builds a smaller one from its task.

Tests: ``tests/unit/data/test_read.py``.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.row_ids import RowIdSequence
from tablewright.format.row_set import RowSet
from tablewright.storage.base import Store

__all__ = ["ReadContext"]


class ReadContext(Protocol):
    """Access to the files, deletions and row ids of a fragment."""

    @property
    def place(self) -> Hashable | None:
        """The address, storage options and base paths of the table, as a key; ``None`` if its files can't be cached."""

    def data_place(self, file: DataFile) -> tuple[Store, str]:
        """Store and path of a data file."""

    def store_of(self, base_id: int | None) -> Store:
        """The table's own store, or that of a base path."""

    def deletion_vector(self, fragment: Fragment) -> RowSet | None:
        """Which rows of a fragment are deleted; ``None`` for none."""

    def row_ids(self, fragment: Fragment) -> RowIdSequence | None:
        """The stable row ids of a fragment's physical rows; ``None`` if the table has none."""
