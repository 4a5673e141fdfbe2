"""A plan of columns prints itself, its tasks travel, and its transaction says what it keeps."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.operations.columns.tables import small_table

from tablewright.operations.columns.add import BySql, Nulls
from tablewright.operations.columns.plan import finish_columns
from tablewright.operations.columns.schema import InvalidColumns


def test_a_plan_prints_itself_and_its_tasks_travel(tmp_path: Path) -> None:
    snapshot = small_table(tmp_path)
    plan = BySql({"double": "id * 2"}, now_ns=0).plan(snapshot)
    text = str(plan)
    assert "AddColumns: columns=[double]" in text and "reads=[id]" in text and "num_fragments=3" in text
    work, tasks = pickle.loads(pickle.dumps((plan.work, plan.tasks())))
    files = {task.fragment.id: work(task, snapshot.world).file for task in tasks}
    merge = finish_columns(plan, files, snapshot.world.ids.uuid()).operation
    assert [f.physical_rows for f in merge.fragments] == [4, 4, 2]
    assert all(fragment.files[-1].fields == (4,) for fragment in merge.fragments)
    assert merge.preserves_nullability


def test_strict_columns_do_not_preserve_nullability(tmp_path: Path) -> None:
    snapshot = small_table(tmp_path)
    assert not BySql({"one": "1"}, now_ns=0).plan(snapshot).preserves_nullability
    with pytest.raises(InvalidColumns, match="must be nullable"):
        Nulls(pa.schema([pa.field("n", pa.int8(), nullable=False)])).plan(snapshot)
    member = pa.field("s", pa.struct([pa.field("w", pa.int8(), nullable=False)]))
    with pytest.raises(InvalidColumns, match="must be nullable"):
        Nulls(pa.schema([member])).plan(snapshot)
