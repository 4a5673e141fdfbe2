"""Tasks and pieces: however a feed is cut, its rows and their order are the same."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pyarrow as pa

import tablewright as tw
from tablewright.operations.change_feed import task
from tablewright.operations.change_feed.limits import FeedLimits


def test_cuts_do_not_show() -> None:
    ds = tw.write_dataset(
        {"id": range(400), "n": range(400)}, "memory://feed-cuts", max_rows_per_file=90, enable_stable_row_ids=True
    )
    ds.update({"n": "n + 1"}, where="id % 7 = 0 or id between 100 and 140", write_mode="rewrite_rows")
    ds.update({"n": "n + 2"}, where="id % 3 = 0", write_mode="rewrite_columns")
    ds.delete("id % 5 = 0 or id > 350")
    feed = ds.changes(0)
    whole, tasks = feed.to_table(), len(list(feed._plan.tasks()))
    assert sorted(set(whole["_change_type"].to_pylist())) == ["delete", "insert", "update_postimage", "update_preimage"]
    small = {"few_fragments": 0, "rows_at_a_time": 11, "task_bytes": 1}
    for names in (["few_fragments"], ["few_fragments", "rows_at_a_time"], list(small)):
        plan = replace(feed._plan, limits=FeedLimits(**{name: small[name] for name in names}))
        cut = [pickle.loads(pickle.dumps(each)) for each in plan.tasks()]
        batches = [batch for each in cut for batch in task.run_change_task(each, ds._world)]
        assert pa.Table.from_batches(batches) == whole
    assert len(cut) > tasks
    assert all(len(each.picked) == 1 for each in cut)


def test_a_task_carries_no_metadata_that_it_does_not_need() -> None:
    ds = tw.write_dataset({"id": range(9)}, "memory://feed-task", enable_stable_row_ids=True)
    ds.delete("id = 3")
    ds.delete("id = 4")
    (first, second) = ds.changes(1)._plan.tasks()
    for each in (first, second):
        assert each.picked[0].fragment.row_ids is None
        assert each.picked[0].fragment.deletion is None
    assert (first.version, first.commit_version, second.commit_version) == (1, 2, 3)
    assert second.schema.names == ["id", *task.FEED_COLUMNS]
