"""One Update transaction of all that tasks wrote."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from tests.unit.format.samples import DELETION, FILE, fragment

from tablewright.format.fragment import TOMBSTONE, DeletionFile, FragmentList
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import Update, UpdateMode
from tablewright.operations.rewrite.finish import InsertedRows, Rewritten, finish_rewrite
from tablewright.operations.rewrite.hide import Hidden, HiddenRows
from tablewright.operations.rewrite.move import MovedRows
from tablewright.operations.rewrite.patch import PatchedColumns
from tablewright.transaction.affected import AffectedRows

FRAGMENTS = FragmentList.of([fragment(id) for id in range(4)])
COLUMN = replace(FILE, path="new.lance", fields=(1,), column_indices=(0,))


def hidden(id: int, *rows: int, deletion: DeletionFile | None = DELETION) -> Hidden:
    return Hidden(fragment_id=id, rows=RowSet.of(rows), deletion=deletion)


def patched(id: int, *rows: int, gone: Hidden | None = None) -> PatchedColumns:
    changed = RowSet.of(rows)
    return PatchedColumns(
        fragment_id=id, file=COLUMN, rows=changed, updated=changed, rows_read=0, bytes_read=0, hidden=gone
    )


def moved(*gone: Hidden) -> MovedRows:
    new = (fragment(0, files=(replace(FILE, path="moved.lance"),)),)
    return MovedRows(hidden=gone, fragments=new, rows_read=0, bytes_read=0)


INSERTED = InsertedRows(fragments=(fragment(0, files=(replace(FILE, path="inserted.lance"),)),))


def finished(*results: Rewritten) -> tuple[Update, AffectedRows]:
    transaction, affected = finish_rewrite(
        results,
        fragments=FRAGMENTS,
        version=7,
        patched_ids=[1],
        moved_ids=[1, 2],
        reads=frozenset({0}),
        uuid=UUID(int=5),
    )
    assert (transaction.read_version, transaction.uuid) == (7, str(UUID(int=5)))
    assert isinstance(transaction.operation, Update)
    return transaction.operation, affected


def test_columns_in_place() -> None:
    update, affected = finished(patched(2, 1, 3), patched(0, 9, gone=hidden(0, 4)))
    assert [each.id for each in update.updated_fragments] == [0, 2]
    assert update.updated_fragments[1].files == (replace(FILE, fields=(0, TOMBSTONE)), COLUMN)
    assert [each.deletion for each in update.updated_fragments] == [DELETION, None]
    assert (update.update_mode, update.fields_modified) == (UpdateMode.REWRITE_COLUMNS, (1,))
    assert update.fields_for_preserving_frag_bitmap == ()
    assert update.updated_fragment_offsets == {2: RowSet.of([1, 3]), 0: RowSet.of([9])}
    assert affected.offsets == {2: RowSet.of([1, 3]), 0: RowSet.of([4, 9])}
    assert affected.reads == {0}


def test_rows_that_move_come_before_those_that_are_new() -> None:
    update, affected = finished(INSERTED, moved(hidden(3, 0), hidden(1, *range(10), deletion=None)))
    assert [each.files[0].path for each in update.new_fragments] == ["moved.lance", "inserted.lance"]
    assert [(each.id, each.deletion) for each in update.updated_fragments] == [(3, DELETION)]
    assert update.removed_fragment_ids == (1,)
    assert (update.update_mode, update.fields_modified) == (UpdateMode.REWRITE_ROWS, ())
    assert update.fields_for_preserving_frag_bitmap == (1, 2)
    assert affected.offsets == {3: RowSet.of([0]), 1: RowSet.full(10)}


def test_both_ways_and_rows_that_only_go() -> None:
    update, affected = finished(patched(0, 1), moved(hidden(1, 2)), HiddenRows(hidden=(hidden(2, 3),)))
    assert [each.id for each in update.updated_fragments] == [0, 1, 2]
    assert update.update_mode == UpdateMode.REWRITE_COLUMNS
    assert (update.fields_modified, update.fields_for_preserving_frag_bitmap) == ((1,), (1, 2))
    assert set(affected.offsets) == {0, 1, 2}


@pytest.mark.parametrize("results", [(), (INSERTED,)])
def test_nothing_that_was_there_is_touched(results: tuple[Rewritten, ...]) -> None:
    update, affected = finished(*results)
    assert update.updated_fragments == () and update.removed_fragment_ids == ()
    assert affected.offsets == {}
    assert update.fields_for_preserving_frag_bitmap == (1, 2)
