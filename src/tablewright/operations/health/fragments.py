"""A row of figures per fragment, as columns: rows, bytes, dead bytes.

Dead bytes of a fragment are its dead columns, and deleted rows × bytes per row of what is left.

Tests: ``tests/unit/operations/health/test_measure.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.format.fragment.sequence import FragmentList
from tablewright.format.wire import Ints
from tablewright.operations.health.options import Limits
from tablewright.operations.health.values import FragmentsHealth

__all__ = ["Floats", "FragmentFigures", "figures_of"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FragmentFigures:
    """Columns over fragments, in the order of the manifest."""

    ids: Ints
    physical_rows: Ints
    deleted_rows: Ints
    data_files: Ints
    data_bytes: Ints
    deletion_bytes: Ints
    dead_row_bytes: Ints
    dead_column_bytes: Ints
    target_rows: int

    def live_shares(self, file_rows: Ints, file_bytes: Ints, dead_columns: Ints) -> Floats:
        """What of each data file's bytes a reader needs."""
        live_rows = 1.0 - _ratio(self.deleted_rows, self.physical_rows)
        return (1.0 - _ratio(dead_columns, file_bytes)) * live_rows[file_rows]

    @property
    def live_rows(self) -> Ints:
        """Rows that a reader sees."""
        return self.physical_rows - self.deleted_rows

    def table(self) -> pa.Table:
        """The columns, and what follows from them."""
        dead = self.dead_row_bytes + self.dead_column_bytes
        columns = {
            "fragment_id": self.ids,
            "live_rows": self.live_rows,
            "deleted_rows": self.deleted_rows,
            "deleted_share": _ratio(self.deleted_rows, self.physical_rows),
            "data_files": self.data_files,
            "data_bytes": self.data_bytes,
            "deletion_bytes": self.deletion_bytes,
            "dead_column_bytes": self.dead_column_bytes,
            "dead_bytes": dead,
            "dead_share": _ratio(dead, self.data_bytes),
            "is_small": self.physical_rows < self.target_rows,
        }
        return pa.table({name: pa.array(column) for name, column in columns.items()})

    def summary(self, limits: Limits) -> FragmentsHealth:
        """Counts of fragments."""
        over = _ratio(self.deleted_rows, self.physical_rows) > limits.deleted_share
        over |= _ratio(self.dead_column_bytes, self.data_bytes) > limits.dead_columns_share
        return FragmentsHealth(
            count=len(self.ids),
            data_files=int(self.data_files.sum()),
            small=int((self.physical_rows < self.target_rows).sum()),
            target_rows=self.target_rows,
            with_deletions=int((self.deleted_rows > 0).sum()),
            over_limit=int(over.sum()),
        )


def figures_of(
    fragments: FragmentList,
    *,
    file_rows: Ints,
    file_bytes: Ints,
    dead_columns: Ints,
    deletion_rows: Ints,
    deletion_bytes: Ints,
    target_rows: int,
) -> FragmentFigures:
    """Figures per fragment from figures per file; ``file_rows`` and ``deletion_rows`` are positions of fragments."""
    count = len(fragments)
    physical, deleted = fragments.physical_rows.astype(np.int64), fragments.deleted_rows.astype(np.int64)
    data = _sums(file_rows, file_bytes, count)
    columns = _sums(file_rows, dead_columns, count)
    return FragmentFigures(
        ids=fragments.ids.astype(np.int64),
        physical_rows=physical,
        deleted_rows=deleted,
        data_files=np.bincount(file_rows, minlength=count).astype(np.int64),
        data_bytes=data,
        deletion_bytes=_sums(deletion_rows, deletion_bytes, count),
        dead_row_bytes=np.rint((data - columns) * _ratio(deleted, physical)).astype(np.int64),
        dead_column_bytes=columns,
        target_rows=target_rows,
    )


def _sums(rows: Ints, values: Ints, count: int) -> Ints:
    return np.rint(np.bincount(rows, weights=values, minlength=count)).astype(np.int64)


def _ratio(part: Ints, whole: Ints) -> Floats:
    return np.divide(part, whole, out=np.zeros(len(part), np.float64), where=whole > 0)
