"""Columns that no file holds: they follow from where a row is and from the fragment's sequences.

==============================  ==========================================================================
``_rowaddr``                    the row address: fragment id and physical offset
``_rowid``                      the stable row id, or the address where the table has none
``_rowoffset``                  the row's position among the live rows of the table
``_row_created_at_version``     from the fragment's sequence; 1 without one
``_row_last_updated_at_version``  likewise
==============================  ==========================================================================

All are made for a whole array of offsets at once. Where deleted rows are shown, they have no id, address or position.

Format: ``docs/format/row-ids.md#system-columns``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.data.context import ReadContext
from tablewright.format.fragment import Fragment
from tablewright.format.row_address import RowAddress
from tablewright.format.row_ids import decode_versions
from tablewright.format.row_set import Offsets

__all__ = ["SystemColumns"]

Values = npt.NDArray[np.uint64]


class SystemColumns:
    """The system columns of one fragment, computed when asked for. ``first_row`` is its first row's ``_rowoffset``."""

    def __init__(self, context: ReadContext, fragment: Fragment, first_row: int = 0) -> None:
        self._context, self._fragment, self._first_row = context, fragment, first_row
        self._whole: dict[str, Values] = {}

    def batch(
        self, names: Sequence[str], offsets: Offsets, live: npt.NDArray[np.bool_] | None = None
    ) -> pa.RecordBatch:
        """Several columns for the same rows."""
        return pa.RecordBatch.from_arrays([self.column(name, offsets, live) for name in names], names=list(names))

    def column(self, name: str, offsets: Offsets, live: npt.NDArray[np.bool_] | None = None) -> pa.Array:
        """Values for the rows at ``offsets``; ``live`` (one bool per offset) marks those that have an identity."""
        if name == "_rowaddr" or (name == "_rowid" and self._fragment.row_ids is None):
            values = RowAddress.join(self._fragment.id, offsets)
        else:
            values = self._sequence(name)[offsets]
        if live is None or live.all() or not name.startswith(("_rowid", "_rowaddr", "_rowoffset")):
            return pa.array(values)
        return pa.array(values, mask=~live)

    def _sequence(self, name: str) -> Values:
        """One value per physical row of the fragment."""
        found = self._whole.get(name)
        if found is None:
            found = self._whole[name] = self._compute(name)
        return found

    def _compute(self, name: str) -> Values:
        fragment = self._fragment
        if name == "_rowid":
            ids = self._context.row_ids(fragment)
            assert ids is not None
            return ids.to_numpy()
        if name == "_rowoffset":
            return self._positions()
        data = fragment.created_at if name == "_row_created_at_version" else fragment.last_updated_at
        if data is None:
            return np.ones(fragment.physical_rows, np.uint64)
        return decode_versions(data, f"fragment {fragment.id}", fragment.physical_rows).to_numpy()

    def _positions(self) -> Values:
        rows = self._fragment.physical_rows
        vector = self._context.deletion_vector(self._fragment)
        if vector is None:
            return np.arange(self._first_row, self._first_row + rows, dtype=np.uint64)
        return (np.cumsum(vector.absent_mask(rows)) - 1 + self._first_row).astype(np.uint64)
