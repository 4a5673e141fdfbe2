"""The fragments that two versions do not share.

A fragment is in both versions, unchanged, if its serialised bytes are: files, deletions, row ids and versions of rows
are all in there. So two sets of bytes are compared, and nothing is decoded but what differs. Of a fragment that is in
both under one id, its metadata can also show that its rows did not change, or that some did without
saying which.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablewright.format.fragment import FragmentList
from tablewright.transaction.drift import Drift

__all__ = ["Touched", "different", "touched"]

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Touched:
    """Positions of fragments in the version before and in the one after, whose rows may differ.

    ``silent`` are positions after of fragments that are in both, and whose columns come from other files though no row
    says that it was updated: all their rows count as changed.
    """

    before: Positions
    after: Positions
    silent: frozenset[int]


def different(before: FragmentList, after: FragmentList) -> tuple[Positions, Positions]:
    """The positions of the fragments that are not byte for byte in the other list."""
    gone, came = set(before.raw), set(after.raw)
    return _positions(before, gone.difference(after.raw)), _positions(after, came.difference(before.raw))


def _positions(fragments: FragmentList, wanted: set[bytes]) -> Positions:
    found = (position for position, raw in enumerate(fragments.raw) if raw in wanted) if wanted else ()
    return np.fromiter(found, np.int64)


def touched(before: FragmentList, after: FragmentList, shared: frozenset[int]) -> Touched:
    """Those fragments of two versions that have to be looked at. ``shared`` are the fields that both versions have."""
    gone, came = different(before, after)
    _, at_gone, at_came = np.intersect1d(before.ids[gone], after.ids[came], return_indices=True)
    same, silent = [], set()
    for here, there in zip(at_gone.tolist(), at_came.tolist(), strict=True):
        drift = Drift(before[gone[here]], after[came[there]])
        if not _tells_the_same(drift):
            continue
        if drift.rewritten or shared & drift.added:
            silent.add(int(came[there]))
        elif not drift.has_new_deletions:
            same.append((here, there))
    if same:
        gone, came = np.delete(gone, [here for here, _ in same]), np.delete(came, [there for _, there in same])
    return Touched(gone, came, frozenset(silent))


def _tells_the_same(drift: Drift) -> bool:
    """Whether ids and versions of the rows are what they were."""
    assert drift.after is not None
    return (drift.before.row_ids, drift.before.last_updated_at) == (drift.after.row_ids, drift.after.last_updated_at)
