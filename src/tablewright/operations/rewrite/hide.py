"""Rows that go: hidden by a deletion file, which holds what was deleted before and what goes now.

A fragment whose last row goes gets no file: it leaves the table.

Format: ``docs/format/table.md#deletion-files``.

Tests: ``tests/unit/operations/test_delete.py``, ``tests/differential/operations/test_delete.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tablewright.data.context import ReadContext
from tablewright.data.prefetch import spread
from tablewright.format.deletion_vectors.lance import choose_type
from tablewright.format.fragment import DeletionFile, Fragment, FragmentList
from tablewright.format.naming import deletion_path
from tablewright.format.row_set import RowSet
from tablewright.snapshot.files import write_deletion_vector
from tablewright.storage.uncommitted import UncommittedFiles
from tablewright.world import World

__all__ = ["Hidden", "HiddenRows", "hide_each", "hide_rows", "with_hidden_rows", "write_deletions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """Rows of one fragment that go, and the fragment's new deletion file.

    Without a file no row is left.
    """

    fragment_id: int
    rows: RowSet
    deletion: DeletionFile | None
    bytes_written: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The file that was written."""
        return () if self.deletion is None else (deletion_path(self.fragment_id, self.deletion),)


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenRows:
    """What a task hid that writes deletion files and nothing else, and what it read to find the rows."""

    hidden: tuple[Hidden, ...]
    rows_read: int = 0
    bytes_read: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The deletion files."""
        return tuple(path for each in self.hidden for path in each.paths)

    @property
    def bytes_written(self) -> int:
        """Their size."""
        return sum(each.bytes_written for each in self.hidden)


def hide_each(
    context: ReadContext, world: World, version: int, parts: Iterable[tuple[Fragment, RowSet]], files: UncommittedFiles
) -> tuple[Hidden, ...]:
    """Hide rows of several fragments. ``files`` gets their names as they are written."""

    def hide(part: tuple[Fragment, RowSet]) -> Hidden:
        hidden = hide_rows(context, world, version, *part)
        files.add(hidden.paths)
        return hidden

    return tuple(spread(hide, parts))


def hide_rows(context: ReadContext, world: World, version: int, fragment: Fragment, rows: RowSet) -> Hidden:
    """Write the deletion file that hides these live rows of a fragment too."""
    union = (context.deletion_vector(fragment) or RowSet()) | rows
    file, size = None, 0
    if len(union) < fragment.physical_rows:
        file, size = write_deletions(world, version, fragment, union)
    return Hidden(fragment_id=fragment.id, rows=rows, deletion=file, bytes_written=size)


def write_deletions(world: World, version: int, fragment: Fragment, union: RowSet) -> tuple[DeletionFile, int]:
    """Write a fragment's new deletion file, and how many bytes it has."""
    last = union.last
    assert last is None or last < fragment.physical_rows, f"row {last} is not in fragment {fragment.id}"
    kind = choose_type(len(union), None if fragment.deletion is None else fragment.deletion.file_type)
    return write_deletion_vector(world.store, fragment.id, union, version, world.ids.u64(), kind)


def with_hidden_rows(fragments: FragmentList, hidden: Iterable[Hidden]) -> list[Fragment]:
    """The fragments with their new deletion files, by id; emptied ones are left out."""
    ordered = sorted(hidden, key=lambda each: each.fragment_id)
    return [
        fragments.by_id(each.fragment_id).with_deletion(each.deletion) for each in ordered if each.deletion is not None
    ]
