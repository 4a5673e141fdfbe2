"""Tombstoning rows of one fragment: a new deletion file that unites what was and what goes (fact sheet §4).

A fragment whose last row goes has no deletion file: it leaves the table. The type of file follows the format's
thresholds. This is the per-fragment half of a delete; committing it is the caller's business.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tablewright.errors import InvalidRequest
from tablewright.expressions.filters import Filter
from tablewright.format.deletion_vector import DeletionVector, choose_type
from tablewright.format.fragment import Fragment
from tablewright.operations.scan import ScanOptions, plan_scan, scan_batches
from tablewright.snapshot.files import write_deletion_vector
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["matching_offsets", "run_fragment_delete"]


def matching_offsets(snapshot: Snapshot, fragment: Fragment, predicate: Filter) -> npt.NDArray[np.int64]:
    """Physical offsets of the live rows of a fragment that match, ascending."""
    options = ScanOptions(columns=["_rowaddr"], filter=predicate, fragments=[fragment.id])
    found = [
        batch.column(0).to_numpy(zero_copy_only=False) for batch in scan_batches(plan_scan(snapshot, options), snapshot)
    ]
    addresses = np.concatenate(found) if found else np.empty(0, np.uint64)
    return (addresses & np.uint64(0xFFFFFFFF)).astype(np.int64)


def run_fragment_delete(snapshot: Snapshot, fragment: Fragment, offsets: npt.NDArray[np.int64]) -> Fragment | None:
    """Write the deletion file that hides ``offsets`` too. ``None``: no live row is left. Unchanged if none matches."""
    known = snapshot.deletion_vector(fragment) or DeletionVector()
    union = known.union(DeletionVector.of(offsets))
    problems = union.problems(fragment.physical_rows)
    if problems:
        raise InvalidRequest(f"Can't delete rows of fragment {fragment.id}: {'; '.join(problems)}.")
    if len(union) == len(known):
        return fragment
    if len(union) == fragment.physical_rows:
        return None
    kind = choose_type(len(union), None if fragment.deletion is None else fragment.deletion.file_type)
    world = snapshot.world
    file = write_deletion_vector(world.store, fragment.id, union, snapshot.version, world.ids.u64(), kind)
    return replace(fragment, deletion=file)
