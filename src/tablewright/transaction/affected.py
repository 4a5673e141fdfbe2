"""Affected rows: which rows a delete, update or merge touches, as offsets per fragment.

They accompany every transaction that we build, also from Spark tasks, and make row-level rebase possible: a
transaction without them conflicts with anything that touches its fragments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyroaring import BitMap64

from tablewright.format.row_address import RowAddress
from tablewright.format.row_set import RowSet

__all__ = ["AffectedRows"]


@dataclass(frozen=True, slots=True)
class AffectedRows:
    """Offsets of touched rows (deleted, moved or changed in place) per fragment id.

    ``reads`` are the ids of the fields that decided which rows they are and what becomes of them; ``None``: not
    known, so it may be any.

    >>> AffectedRows.of_addresses([3, RowAddress.of(7, 1), RowAddress.of(7, 2)]).offsets[7]
    RowSet([1, 2])
    """

    offsets: Mapping[int, RowSet] = field(default_factory=dict)
    reads: frozenset[int] | None = None

    def __post_init__(self) -> None:
        """Callers may give offsets in any form that :meth:`RowSet.of` takes."""
        if not all(isinstance(rows, RowSet) for rows in self.offsets.values()):
            known = {id: rows if isinstance(rows, RowSet) else RowSet.of(rows) for id, rows in self.offsets.items()}
            object.__setattr__(self, "offsets", known)

    @classmethod
    def of_addresses(
        cls, addresses: Iterable[int] | NDArray[np.uint64] | pa.Array | pa.ChunkedArray | BitMap64
    ) -> AffectedRows:
        """From row addresses (:class:`~tablewright.format.row_address.RowAddress`), in any order."""
        if isinstance(addresses, pa.Array | pa.ChunkedArray):
            values = (
                addresses.to_numpy(zero_copy_only=False) if isinstance(addresses, pa.Array) else addresses.to_numpy()
            )
        elif isinstance(addresses, np.ndarray):
            values = addresses
        else:
            values = np.fromiter(addresses, np.uint64)
        owners, offsets = RowAddress.split(np.sort(values.astype(np.uint64, copy=False)))
        starts = np.flatnonzero(np.diff(owners, prepend=owners[:1] + np.uint64(1)))  # where another fragment begins
        parts = np.split(offsets, starts[1:]) if len(owners) else []
        return cls({id: RowSet.of(part) for id, part in zip(owners[starts].tolist(), parts, strict=True)})

    def union(self, other: AffectedRows) -> AffectedRows:
        """Rows that either touches: how the results of several tasks become one."""
        merged = dict(self.offsets)
        for fragment, offsets in other.offsets.items():
            merged[fragment] = merged.get(fragment, RowSet()) | offsets
        reads = None if self.reads is None or other.reads is None else self.reads | other.reads
        return AffectedRows(merged, reads)

    def of(self, fragment_id: int) -> RowSet:
        """The touched rows of one fragment."""
        return self.offsets.get(fragment_id, RowSet())

    def __len__(self) -> int:
        return sum(len(offsets) for offsets in self.offsets.values())
