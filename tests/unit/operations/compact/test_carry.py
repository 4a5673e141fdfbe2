"""Columns that others wrote while a group was being rewritten."""

from __future__ import annotations

import pickle

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.data.read import read_fragment
from tablewright.format.fragment import Fragment
from tablewright.operations.compact.carry import carry_columns, carry_tasks, with_carried
from tablewright.operations.compact.groups import Group, newest_of, numbered, stale_columns


def test_the_newest_values_are_written_for_each_new_fragment() -> None:
    dataset = tw.write_dataset({"id": range(6), "v": range(6)}, "memory://carry-values", max_rows_per_file=2)
    dataset.delete("id = 1")
    old = tuple(table_of(dataset).snapshot.fragments)
    new = tuple(Fragment(id=0, files=(), physical_rows=rows) for rows in (3, 2))
    (group,) = numbered([Group(read_version=2, old=old, new=new, known=old)], 10)
    dataset.update({"v": "v + 100"}, where="id != 3", write_mode="rewrite_columns")
    dataset.delete("id in (4, 5)")
    newest = table_of(dataset).snapshot
    now = newest_of(group.old, newest.fragments)
    tasks = pickle.loads(pickle.dumps(carry_tasks(group, now, newest, "2.2")))
    carried = [carry_columns(task, newest.world) for task in tasks]
    done = with_carried(group, now, carried)
    wanted = newest.schema.project_ids(newest.schema.node_ids(["v"]))
    values = [
        [value for batch in read_fragment(newest, fragment, newest.schema, wanted) for value in batch["v"].to_pylist()]
        for fragment in done.new
    ]
    assert values == [[100, 102, 3], [None, None]]  # the rows of the last fragment are gone
    assert stale_columns(done, now, newest.schema) == ()
    assert {path for each in carried for path in each.paths} <= set(done.paths)
