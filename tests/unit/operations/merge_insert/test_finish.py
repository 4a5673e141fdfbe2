"""The facts of a plan in its transaction; what results become is tested with ``rewrite.finish``."""

from __future__ import annotations

import uuid

from tests.unit.operations.merge_insert.plans import columns, planned
from tests.unit.operations.tables import VERSION, data_file, fragment, hidden, rows

from tablewright.format.transaction import Update
from tablewright.operations.merge_insert.finish import finish_merge
from tablewright.operations.rewrite.move import MovedRows
from tablewright.operations.rewrite.patch import PatchedColumns


def test_keys_are_not_among_the_changed_fields() -> None:
    plan = planned(source=columns("id", "x"))
    moved = MovedRows(hidden=(hidden(4, 1),), fragments=(fragment(0, 1),), rows_read=0, bytes_read=0)
    patched = PatchedColumns(fragment_id=1, file=data_file("x", (1,)), offsets=rows(2, 3), rows_read=0, bytes_read=0)
    transaction, affected = finish_merge(plan, [patched, moved], uuid.UUID(int=1))
    operation = transaction.operation
    assert isinstance(operation, Update)
    assert operation.fields_modified == operation.fields_for_preserving_frag_bitmap == (1,)
    assert transaction.read_version == VERSION
    assert affected.reads == {0} and {id: list(each) for id, each in affected.offsets.items()} == {1: [2, 3], 4: [1]}


def test_a_merge_that_deletes_by_source_may_depend_on_any_field() -> None:
    _, affected = finish_merge(planned(delete_by_source=True), [], uuid.UUID(int=1))
    assert affected.reads is None and not affected.offsets
