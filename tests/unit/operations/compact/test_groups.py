"""What others did since a group was read: rows, columns, lineage, other rewrites."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.format.fragment import Fragment
from tablewright.format.row_ids import decode_row_ids, decode_versions
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import Rewrite
from tablewright.operations.compact import groups
from tablewright.operations.compact.groups import (
    Group,
    compaction_transaction,
    hidden_rows,
    is_overtaken,
    newest_of,
    numbered,
    stale_columns,
)


def group(dataset: tw.LanceDataset, *rows: int) -> Group:
    old = tuple(table_of(dataset).snapshot.fragments)
    new = tuple(Fragment(id=0, files=old[0].files, physical_rows=count) for count in rows)
    return numbered([Group(read_version=dataset.version, old=old, new=new, known=old)], 10)[0]


def table(name: str) -> tw.LanceDataset:
    dataset = tw.write_dataset({"id": range(6), "v": range(6)}, f"memory://groups-{name}", max_rows_per_file=2)
    dataset.delete("id = 1")
    return dataset


def test_ids_are_given_in_order() -> None:
    made = group(table("ids"), 3, 2)
    assert [fragment.id for fragment in made.new] == [10, 11]


def test_rows_that_went_are_hidden_by_rank() -> None:
    dataset = table("hidden")
    made = group(dataset, 3, 2)
    dataset.delete("id in (2, 3, 5)")  # all of fragment 1, and the last row
    newest = table_of(dataset).snapshot
    assert not is_overtaken(made, newest_of(made.old, newest.fragments), frozenset(), newest, False)
    assert hidden_rows(made, newest_of(made.old, newest.fragments), newest) == {
        10: RowSet.of([1, 2]),
        11: RowSet.of([1]),
    }


def test_a_fragment_that_another_rewrite_took_overtakes_the_group() -> None:
    dataset = table("overtaken")
    made = group(dataset, 5)
    dataset.delete("id in (2, 3)")
    newest = table_of(dataset).snapshot
    assert is_overtaken(made, newest_of(made.old, newest.fragments), frozenset([1]), newest, False)
    assert is_overtaken(made, newest_of(made.old, newest.fragments), None, newest, False)
    assert is_overtaken(
        made, newest_of(made.old, newest.fragments), frozenset(), newest, True
    )  # rows of fragment 1 never got row ids


def test_rows_that_came_back_overtake_the_group() -> None:
    dataset = table("back")
    made = group(dataset, 5)
    now = replace(made.old[0], deletion=None)
    newest = table_of(dataset).snapshot
    assert is_overtaken(made, newest_of(made.old, newest.fragments.replaced({now.id: now})), frozenset(), newest, False)


def test_columns_written_since_are_stale() -> None:
    dataset = table("stale")
    made = group(dataset, 5)
    dataset.update({"v": "v + 1"}, where="id = 0", write_mode="rewrite_columns")
    dataset.alter_columns({"path": "id", "name": "key"})
    newest = table_of(dataset).snapshot
    assert stale_columns(made, newest_of(made.old, newest.fragments), newest.schema) == ("v",)
    dataset.add_columns({"w": "v"})
    newest = table_of(dataset).snapshot
    assert stale_columns(made, newest_of(made.old, newest.fragments), newest.schema) == ("v", "w")
    dataset.drop_columns(["v"])
    newest = table_of(dataset).snapshot
    assert stale_columns(made, newest_of(made.old, newest.fragments), newest.schema) == ("w",)


@pytest.mark.parametrize("gone_max", [1, 3, 5, 100])
def test_ids_and_versions_of_the_rows_that_are_left(monkeypatch: pytest.MonkeyPatch, gone_max: int) -> None:
    """Put together in parts by how many rows are deleted; one row was updated, so its id is in two of the sources."""
    monkeypatch.setattr(groups, "_GONE_MAX", gone_max)
    dataset = tw.write_dataset(
        {"id": range(20), "v": range(20)},
        f"memory://groups-{gone_max}",
        max_rows_per_file=4,
        enable_stable_row_ids=True,
    )
    dataset.delete("id in (1, 2, 9, 17, 18)")
    dataset.update({"v": "-1"}, where="id = 5", write_mode="rewrite_rows")
    snapshot = table_of(dataset).snapshot
    old = tuple(snapshot.fragments)
    new = tuple(Fragment(id=0, files=old[0].files, physical_rows=count) for count in (9, 6))
    (made,) = numbered([Group(read_version=dataset.version, old=old, new=new, known=old)], 10)
    done = compaction_transaction([(made, old)], {}, snapshot, stable_row_ids=True, uuid="u")
    assert isinstance(done.operation, Rewrite)
    rows = dataset.to_table(columns=["_rowid", "_row_created_at_version", "_row_last_updated_at_version"])
    expected, begin = rows.to_pydict(), 0
    for fragment in done.operation.groups[0].new_fragments:
        end = begin + fragment.physical_rows
        assert fragment.row_ids and fragment.created_at and fragment.last_updated_at
        found = (
            decode_row_ids(fragment.row_ids, ""),
            *(decode_versions(each, "") for each in (fragment.created_at, fragment.last_updated_at)),
        )
        assert [each.to_numpy().tolist() for each in found] == [values[begin:end] for values in expected.values()]
        begin = end
    assert begin == 15
