"""One Update transaction of all that was written, whatever the clauses were; and the rows that it touches.

Rows that moved and rows that are new are in fragments of their own, so that indices on columns that did not change can
follow the moved ones. A key column does not change where rows match, so it is not among the changed fields.

Format: ``docs/format/transactions.md#update``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

from pyroaring import FrozenBitMap

from tablewright.format.fragment import Fragment
from tablewright.format.transaction import Transaction, Update, UpdateMode
from tablewright.operations.merge_insert.plan import MergePlan
from tablewright.operations.merge_insert.write.columns import PatchResult
from tablewright.operations.merge_insert.write.tasks import HiddenResult, InsertResult, WriteResult
from tablewright.operations.rewrite.hide import Hidden, with_hidden_rows
from tablewright.operations.rewrite.move import Moved
from tablewright.transaction.affected import AffectedRows

__all__ = ["finish_merge"]


def finish_merge(plan: MergePlan, results: Sequence[WriteResult], uuid: uuid.UUID) -> tuple[Transaction, AffectedRows]:
    """The transaction, and the rows that it moves, changes or deletes."""
    patched = [each for each in results if isinstance(each, PatchResult)]
    moved = [each for each in results if isinstance(each, Moved)]
    inserted = [each for each in results if isinstance(each, InsertResult)]
    hidden = [row for each in results if isinstance(each, Moved | HiddenResult) for row in each.hidden]
    updated = [*(_patched(plan, each) for each in patched), *with_hidden_rows(plan.fragments, hidden)]
    operation = Update(
        removed_fragment_ids=tuple(sorted(each.fragment_id for each in hidden if each.deletion is None)),
        updated_fragments=tuple(sorted(updated, key=lambda fragment: fragment.id)),
        new_fragments=(*_fragments(moved), *_fragments(inserted)),
        fields_modified=plan.changed_ids if patched else (),
        fields_for_preserving_frag_bitmap=plan.changed_ids if moved or not patched else (),
        update_mode=UpdateMode.REWRITE_COLUMNS if patched else UpdateMode.REWRITE_ROWS,
        updated_fragment_offsets={each.fragment_id: each.offsets for each in patched},
    )
    transaction = Transaction(read_version=plan.version, uuid=str(uuid), operation=operation)
    return transaction, AffectedRows(_touched(patched, hidden), plan.reads)


def _fragments(results: Sequence[Moved | InsertResult]) -> Iterator[Fragment]:
    return (fragment for each in results for fragment in each.fragments)


def _patched(plan: MergePlan, result: PatchResult) -> Fragment:
    fragment = plan.fragments.by_id(result.fragment_id).with_column_file(result.file)
    if result.hidden is None or result.hidden.deletion is None:
        return fragment
    return fragment.with_deletion(result.hidden.deletion)


def _touched(patched: Sequence[PatchResult], hidden: Sequence[Hidden]) -> dict[int, FrozenBitMap]:
    changed: list[PatchResult | Hidden] = [*patched, *hidden]
    touched = {each.fragment_id: FrozenBitMap.deserialize(each.offsets) for each in changed}
    for each in patched:
        if each.hidden is not None:
            touched[each.fragment_id] |= FrozenBitMap.deserialize(each.hidden.offsets)
    return touched
