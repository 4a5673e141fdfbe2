"""One group written again."""

from __future__ import annotations

import pickle

import pyarrow as pa

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.operations.compact.options import CompactionOptions
from tablewright.operations.compact.plan import plan_compaction
from tablewright.operations.compact.task import group_tasks, rewrite_group
from tablewright.storage.base import exists


def test_rows_are_written_in_order_and_cut_evenly() -> None:
    dataset = tw.write_dataset({"id": range(300)}, "memory://task-even", max_rows_per_file=60)
    dataset.delete("id in (3, 70, 71)")
    snapshot = table_of(dataset).snapshot
    plan = plan_compaction(snapshot, CompactionOptions(target_rows_per_fragment=148))
    (task,) = pickle.loads(pickle.dumps(group_tasks(plan, snapshot)))
    made = rewrite_group(task, snapshot.world)
    assert [fragment.physical_rows for fragment in made.new_fragments] == [149, 148]
    assert (made.rows_read, made.old_fragments) == (300, tuple(snapshot.fragments))
    assert all(exists(snapshot.world.store, path) for path in made.paths)


def test_columns_without_a_file_are_not_written() -> None:
    dataset = tw.write_dataset({"id": range(20)}, "memory://task-null", max_rows_per_file=10)
    dataset.add_columns(pa.field("empty", pa.int64()))
    snapshot = table_of(dataset).snapshot
    (task,) = group_tasks(plan_compaction(snapshot, CompactionOptions()), snapshot)
    (fragment,) = rewrite_group(task, snapshot.world).new_fragments
    assert fragment.live_fields == frozenset([0])
    dataset.optimize.compact_files()
    assert dataset.to_table().to_pydict() == {"id": list(range(20)), "empty": [None] * 20}
