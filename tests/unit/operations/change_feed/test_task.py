"""Letters and pieces: however a feed is cut, its rows and their order are the same."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.operations.change_feed import pairs, plan, task


def test_cuts_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    ds = tw.write_dataset(
        {"id": range(400), "n": range(400)}, "memory://feed-cuts", max_rows_per_file=90, enable_stable_row_ids=True
    )
    ds.update({"n": "n + 1"}, where="id % 7 = 0 or id between 100 and 140", write_mode="rewrite_rows")
    ds.update({"n": "n + 2"}, where="id % 3 = 0", write_mode="rewrite_columns")
    ds.delete("id % 5 = 0 or id > 350")
    feed = ds.changes(0)
    whole, letters = feed.to_table(), len(list(feed._plan.tasks()))
    assert sorted(set(whole["_change_type"].to_pylist())) == ["delete", "insert", "update_postimage", "update_preimage"]
    monkeypatch.setattr(pairs, "_FEW", 0)
    assert feed.to_table() == whole
    monkeypatch.setattr(task, "_ROWS_AT_A_TIME", 11)
    assert feed.to_table() == whole
    monkeypatch.setattr(plan, "_TASK_BYTES", 1)
    cut = [pickle.loads(pickle.dumps(each)) for each in feed._plan.tasks()]
    assert len(cut) > letters
    assert all(len(each.picked) == 1 for each in cut)
    batches = [batch for each in cut for batch in task.run_change_task(each, ds._world)]
    assert pa.Table.from_batches(batches) == whole


def test_a_letter_carries_no_metadata_that_nobody_needs() -> None:
    ds = tw.write_dataset({"id": range(9)}, "memory://feed-letter", enable_stable_row_ids=True)
    ds.delete("id = 3")
    ds.delete("id = 4")
    (first, second) = ds.changes(1)._plan.tasks()
    for letter in (first, second):
        assert letter.picked[0].fragment.row_ids is None
        assert letter.picked[0].fragment.deletion is None
    assert (first.version, first.commit_version, second.commit_version) == (1, 2, 3)
    assert second.schema.names == ["id", *task.FEED_COLUMNS]
