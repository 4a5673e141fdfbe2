"""Which entries of an older segment go into a new one: those of rows that are live in a fragment that it covers.

An entry of a row that was deleted, that moved to another fragment, or whose fragment left the coverage because its
column was rewritten, is stale. So an entry is kept if its row, wherever it is by now, is live in a covered fragment:

- *addresses* are first followed through rewrites (:mod:`tablewright.indices.translation`), then looked up;
- *row ids* are looked up among the ids of the covered fragments only (:mod:`tablewright.snapshot.row_id_index`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tablewright.format.fragment import Fragment, FragmentList
from tablewright.format.row_address import RowAddress
from tablewright.format.row_set import RowSet
from tablewright.indices.query import Ids
from tablewright.indices.translation import Translation
from tablewright.lazy import cached_property
from tablewright.snapshot.row_id_index import RowIdIndex

__all__ = ["LiveRows", "live_rows_of"]


@dataclass(frozen=True)
class LiveRows:
    """The rows of some fragments that are alive, as a :data:`~tablewright.indices.building.Translate`. Picklable.

    ``by_address``: ids are row addresses, else stable row ids. ``moved`` is where addresses went before.

    >>> from tablewright.format.fragment import DataFile
    >>> file = DataFile(path="a.lance", fields=(0,), column_indices=(0,), file_major_version=2, file_minor_version=2)
    >>> fragments = FragmentList.of([Fragment(id=1, files=(file,), physical_rows=3)])
    >>> alive = LiveRows(fragments, {1: RowSet.of([2])}, by_address=True)
    >>> ids, kept = alive(np.array([1 << 32, 1 << 32 | 2, 7], np.uint64))
    >>> kept.tolist()
    [True, False, False]
    """

    fragments: FragmentList
    deleted: Mapping[int, RowSet] = field(default_factory=dict)
    by_address: bool = True
    moved: Translation | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return LiveRows, (self.fragments, dict(self.deleted), self.by_address, self.moved)

    def __call__(self, ids: Ids) -> tuple[Ids, npt.NDArray[np.bool_]]:
        if not self.by_address:
            _, found = self._row_ids.locate(ids, lambda fragment: self.deleted.get(fragment.id))
            return ids, found
        if self.moved is None:
            return ids, self._alive(ids)
        ids, kept = self.moved(ids)
        kept = kept.copy()
        kept[kept] = self._alive(ids[kept])
        return ids, kept

    @cached_property
    def _row_ids(self) -> RowIdIndex:
        return RowIdIndex.of(self.fragments, self.fragments.path)

    @cached_property
    def _sizes(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """The ids of the fragments, ascending, and their physical rows."""
        ids = self.fragments.ids.astype(np.uint64)
        order = np.argsort(ids)
        return ids[order], self.fragments.physical_rows.astype(np.int64)[order]

    @cached_property
    def _has_deleted(self) -> npt.NDArray[np.bool_]:
        return np.isin(self._sizes[0], np.fromiter(self.deleted, np.uint64, len(self.deleted)))

    def _alive(self, addresses: Ids) -> npt.NDArray[np.bool_]:
        known, rows = self._sizes
        if not len(known):
            return np.zeros(len(addresses), np.bool_)
        owners, offsets = RowAddress.split(addresses)
        place = np.minimum(np.searchsorted(known, owners), len(known) - 1)
        alive: npt.NDArray[np.bool_] = (known[place] == owners) & (offsets < rows[place])
        doubtful = np.flatnonzero(alive & self._has_deleted[place])
        order = doubtful[np.argsort(place[doubtful], kind="stable")]
        hit, begins = np.unique(place[order], return_index=True)
        for at, rows_here in zip(hit.tolist(), np.split(order, begins[1:]), strict=False):
            alive[rows_here] = ~self.deleted[int(known[at])].contains(offsets[rows_here])
        return alive


def live_rows_of(
    fragments: FragmentList,
    covered: Collection[int],
    deletion_vector: Callable[[Fragment], RowSet | None],
    *,
    by_address: bool,
    moved: Translation | None = None,
) -> LiveRows:
    """The live rows of those fragments that are covered; their deletion files are read."""
    some = FragmentList.of(fragments.by_id(id) for id in sorted(covered))
    deleted = {each.id: rows for each in some if (rows := deletion_vector(each)) is not None}
    return LiveRows(some, deleted, by_address, moved)
