"""Tables that were compacted, as crossings."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import pyarrow as pa
from tests.compactor import plan_compaction

import tablewright as tw
from tablewright.format.transaction import Rewrite
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.transaction.crossing import Crossing
from tablewright.world import World

__all__ = ["crossed", "crossing_to", "sixteen_rows"]


def sixteen_rows(*, stable: bool) -> Snapshot:
    """Fragments 0 to 3 of four rows each; rows 1 and 6 are deleted."""
    uri = f"memory://{uuid.uuid4()}"
    rows = pa.table({"id": range(16), "s": [f"s{i}" for i in range(16)]})
    tw.write_dataset(rows, uri, max_rows_per_file=4, enable_stable_row_ids=stable).delete("id in (1, 6)")
    return open_snapshot(World(open_store(uri)))


def crossed(
    base: Snapshot, groups: Sequence[Sequence[int]], rows_per_file: int = 4, *, reorder: bool = False
) -> Crossing:
    """The step over a compaction of these fragments."""
    return crossing_to(plan_compaction(base, groups, rows_per_file=rows_per_file, reorder=reorder).commit())


def crossing_to(after: Snapshot) -> Crossing:
    """The step to a version that a rewrite made."""
    assert after.file.transaction is not None and isinstance(after.file.transaction.operation, Rewrite)
    return Crossing(open_snapshot(after.world, after.version - 1), after, after.file.transaction.operation)
