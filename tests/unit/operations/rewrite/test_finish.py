"""What tasks wrote, as one Update transaction and the rows that it touches."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from pyroaring import FrozenBitMap
from tests.unit.operations.tables import DELETION, VERSION, data_file, fragment, hidden, rows

from tablewright.format.fragment import FragmentList
from tablewright.format.transaction import Update, UpdateMode
from tablewright.operations.rewrite.finish import InsertedRows, Rewritten, finish_rewrite
from tablewright.operations.rewrite.hide import HiddenRows
from tablewright.operations.rewrite.move import MovedRows
from tablewright.operations.rewrite.patch import PatchedColumns
from tablewright.transaction.affected import AffectedRows

FRAGMENTS = FragmentList.of([fragment(id, 10) for id in (0, 1, 2)])
NEW = [fragment(0, 3), fragment(0, 4)]
COLUMN = data_file("column", (1,))
PATCHED_IDS, MOVED_IDS = (1,), (1, 2)


def _patched(id: int, *offsets: int, **changes: Any) -> PatchedColumns:
    return PatchedColumns(fragment_id=id, file=COLUMN, offsets=rows(*offsets), rows_read=0, bytes_read=0, **changes)


def _moved(*gone: Any, new: int = 0) -> MovedRows:
    return MovedRows(hidden=gone, fragments=(NEW[new],), rows_read=0, bytes_read=0)


def _finished(*results: Rewritten) -> tuple[Update, AffectedRows]:
    transaction, affected = finish_rewrite(
        results,
        fragments=FRAGMENTS,
        version=VERSION,
        patched_ids=PATCHED_IDS,
        moved_ids=MOVED_IDS,
        reads=frozenset({0}),
        uuid=uuid.UUID(int=3),
    )
    assert (transaction.read_version, transaction.uuid) == (VERSION, str(uuid.UUID(int=3)))
    assert affected.reads == {0}
    assert isinstance(transaction.operation, Update)
    return transaction.operation, affected


WITH_COLUMN = FRAGMENTS.by_id(1).with_column_file(COLUMN)
WITH_DELETION = FRAGMENTS.by_id(0).with_deletion(DELETION)


@pytest.mark.parametrize(
    ("results", "operation", "touched"),
    [
        ([], Update(fields_for_preserving_frag_bitmap=MOVED_IDS), {}),
        (
            [_moved(hidden(0, 1, 2))],
            Update(
                updated_fragments=(WITH_DELETION,),
                new_fragments=(NEW[0],),
                fields_for_preserving_frag_bitmap=MOVED_IDS,
            ),
            {0: {1, 2}},
        ),
        (
            [_moved(hidden(2, *range(10), all_gone=True), hidden(0, 1))],
            Update(
                removed_fragment_ids=(2,),
                updated_fragments=(WITH_DELETION,),
                new_fragments=(NEW[0],),
                fields_for_preserving_frag_bitmap=MOVED_IDS,
            ),
            {0: {1}, 2: set(range(10))},
        ),
        (
            [_patched(1, 4, 5)],
            Update(
                updated_fragments=(WITH_COLUMN,),
                fields_modified=PATCHED_IDS,
                update_mode=UpdateMode.REWRITE_COLUMNS,
                updated_fragment_offsets={1: rows(4, 5)},
            ),
            {1: {4, 5}},
        ),
        (
            [_patched(1, 4, hidden=hidden(1, 7, 8))],
            Update(
                updated_fragments=(WITH_COLUMN.with_deletion(DELETION),),
                fields_modified=PATCHED_IDS,
                update_mode=UpdateMode.REWRITE_COLUMNS,
                updated_fragment_offsets={1: rows(4)},
            ),
            {1: {4, 7, 8}},
        ),
        (
            [_patched(1, 4), _moved(hidden(0, 1))],
            Update(
                updated_fragments=(WITH_DELETION, WITH_COLUMN),
                new_fragments=(NEW[0],),
                fields_modified=PATCHED_IDS,
                fields_for_preserving_frag_bitmap=MOVED_IDS,
                update_mode=UpdateMode.REWRITE_COLUMNS,
                updated_fragment_offsets={1: rows(4)},
            ),
            {0: {1}, 1: {4}},
        ),
        (
            [InsertedRows(fragments=(NEW[1],)), _moved(hidden(0, 1)), HiddenRows(hidden=(hidden(2, 3),))],
            Update(
                updated_fragments=(WITH_DELETION, FRAGMENTS.by_id(2).with_deletion(DELETION)),
                new_fragments=(NEW[0], NEW[1]),  # moved rows first, whatever the order of the tasks was
                fields_for_preserving_frag_bitmap=MOVED_IDS,
            ),
            {0: {1}, 2: {3}},
        ),
    ],
    ids=["nothing", "rows", "a fragment is emptied", "columns", "columns and rows that go", "both ways", "merge"],
)
def test_one_update(results: list[Rewritten], operation: Update, touched: dict[int, set[int]]) -> None:
    made, affected = _finished(*results)
    assert made == operation
    assert affected.offsets == {id: FrozenBitMap(offsets) for id, offsets in touched.items()}


def test_files_and_bytes_of_results() -> None:
    moved = _moved(hidden(0, 1))
    assert moved.paths == ("data/f0.lance", "_deletions/0-5-1.bin")
    assert _patched(1, 4, hidden=hidden(1, 7)).paths == ("data/column.lance", "_deletions/1-5-1.bin")
    assert InsertedRows(fragments=tuple(NEW)).paths == ("data/f0.lance", "data/f0.lance")
    assert HiddenRows(hidden=(hidden(2, 0, all_gone=True),)).paths == ()
