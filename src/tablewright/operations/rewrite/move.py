"""Rows that move: written again to new fragments, and hidden by deletion files where they were.

On tables with stable row ids the rows are written in the order of these (:mod:`.row_order`), and the new fragments
bring them along.

Format: ``docs/format/transactions.md#rows-that-move``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import FrozenBitMap

from tablewright.data.prefetch import spread
from tablewright.data.write import WriteOptions, write_fragments
from tablewright.format.deletion_vector import DeletionVector
from tablewright.format.fragment import Fragment
from tablewright.format.naming import data_path
from tablewright.format.roaring import encode_bitmap
from tablewright.format.row_ids import RowIdSequence, encode_row_ids
from tablewright.format.schema import Schema
from tablewright.operations.rewrite.hide import Hidden, hide_rows
from tablewright.operations.rewrite.row_order import RowOrder, row_order
from tablewright.reading.context import TaskContext
from tablewright.storage.uncommitted import removed_on_failure
from tablewright.world import World

__all__ = ["ROWS_PER_FILE_MAX", "Moved", "NewRows", "Origin", "as_offsets", "move_rows"]

ROWS_PER_FILE_MAX = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Origin:
    """A fragment whose rows ``moved`` are written again; along with them, those in ``hidden`` are hidden."""

    fragment: Fragment
    moved: FrozenBitMap
    hidden: FrozenBitMap


class NewRows(Protocol):
    """The rows as they are written, and what was read for them."""

    @property
    def are_read(self) -> bool:
        """Whether something of each row is read from where it was."""

    @property
    def rows_read(self) -> int: ...

    @property
    def bytes_read(self) -> int: ...

    def batches(self, order: RowOrder) -> Iterator[pa.RecordBatch]:
        """All rows, once, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The rows that are hidden where they were, and the new fragments (without ids yet) that hold them now.

    ``sidecars`` are objects with the bytes of their blobs.
    """

    hidden: tuple[Hidden, ...]
    fragments: tuple[Fragment, ...]
    rows_read: int
    bytes_read: int
    sidecars: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """All files that were written."""
        return (*_data_paths(self.fragments), *self.sidecars, *(path for each in self.hidden for path in each.paths))

    @property
    def bytes_written(self) -> int:
        """Their size."""
        data = sum(file.file_size_bytes for fragment in self.fragments for file in fragment.files)
        return data + sum(each.bytes_written for each in self.hidden)


def move_rows(
    context: TaskContext,
    world: World,
    table: Schema,
    rows: NewRows,
    origins: Sequence[Origin],
    *,
    version: int,
    file_version: str,
) -> Moved:
    """Write the rows, and hide the old ones. If it fails, no file stays."""
    options = WriteOptions(max_rows_per_file=ROWS_PER_FILE_MAX, data_storage_version=file_version)
    order = _order(context, rows, origins)
    with removed_on_failure(world.store) as leftovers:
        sidecars: list[str] = []
        fragments = write_fragments(world, table, rows.batches(order), options, sidecars=sidecars)
        leftovers.add([*_data_paths(fragments), *sidecars])

        def hide(origin: Origin) -> Hidden:
            hidden = hide_rows(context, world, version, origin.fragment, encode_bitmap(origin.moved | origin.hidden))
            leftovers.add(hidden.paths)
            return hidden

        return Moved(
            hidden=tuple(spread(hide, origins)),
            fragments=_with_row_ids(fragments, order.ids),
            rows_read=rows.rows_read,
            bytes_read=rows.bytes_read,
            sidecars=tuple(sidecars),
        )


def _data_paths(fragments: Sequence[Fragment]) -> list[str]:
    return [data_path(file.path) for fragment in fragments for file in fragment.files]


def as_offsets(rows: FrozenBitMap) -> npt.NDArray[np.int64]:
    """A set of offsets as an array, ascending."""
    return DeletionVector(rows).to_numpy().astype(np.int64)


def _order(context: TaskContext, rows: NewRows, origins: Sequence[Origin]) -> RowOrder:
    sequences = [(origin, ids) for origin in origins if (ids := context.row_ids(origin.fragment)) is not None]
    if not sequences:
        return RowOrder()
    return row_order([ids.select(as_offsets(origin.moved)) for origin, ids in sequences], are_read=rows.are_read)


def _with_row_ids(fragments: Sequence[Fragment], ids: RowIdSequence | None) -> tuple[Fragment, ...]:
    """Each new fragment with the ids of its own rows."""
    if ids is None:
        return tuple(fragments)
    carrying, begin = [], 0
    for fragment in fragments:
        end = begin + fragment.physical_rows
        carrying.append(replace(fragment, row_ids=encode_row_ids(ids.slice(begin, end))))
        begin = end
    return tuple(carrying)
