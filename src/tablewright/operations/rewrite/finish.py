"""One Update transaction of all that tasks wrote, whatever the verb was; and the rows that it touches.

Rows that moved and rows that are new are in fragments of their own, so that indices on columns that did not change can
follow the moved ones. With columns and rows in it, it is a transaction of columns that moves rows too.

Format: ``docs/format/transactions.md#update``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tablewright.format.fragment import Fragment, FragmentList
from tablewright.format.naming import data_paths
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import Transaction, Update, UpdateMode
from tablewright.operations.rewrite.hide import Hidden, HiddenRows, with_hidden_rows
from tablewright.operations.rewrite.move import MovedRows
from tablewright.operations.rewrite.patch import PatchedColumns
from tablewright.transaction.affected import AffectedRows

__all__ = ["InsertedRows", "Rewritten", "finish_rewrite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertedRows:
    """The fragments (without ids yet) of new rows."""

    fragments: tuple[Fragment, ...]
    rows_read: int = 0
    bytes_read: int = 0

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that were written."""
        return data_paths(self.fragments)

    @property
    def bytes_written(self) -> int:
        """Their size."""
        return sum(fragment.data_bytes for fragment in self.fragments)


Rewritten: TypeAlias = MovedRows | PatchedColumns | InsertedRows | HiddenRows
"""What a task wrote."""


def finish_rewrite(
    results: Sequence[Rewritten],
    *,
    fragments: FragmentList,
    version: int,
    patched_ids: Sequence[int],
    moved_ids: Sequence[int],
    reads: frozenset[int] | None,
    uuid: uuid.UUID,
) -> tuple[Transaction, AffectedRows]:
    """The transaction on ``fragments`` of a ``version``, and the rows that it moves, changes or deletes.

    ``patched_ids`` are the fields whose values differ where columns were patched, ``moved_ids`` where rows moved;
    ``reads`` those that decided which rows are touched, ``None`` if it may be any.
    """
    patched = [each for each in results if isinstance(each, PatchedColumns)]
    moved = [each for each in results if isinstance(each, MovedRows)]
    inserted = [each for each in results if isinstance(each, InsertedRows)]
    hidden = [row for each in results if isinstance(each, MovedRows | HiddenRows) for row in each.hidden]
    updated = [*(_with_columns(fragments, each) for each in patched), *with_hidden_rows(fragments, hidden)]
    operation = Update(
        removed_fragment_ids=tuple(sorted(each.fragment_id for each in hidden if each.deletion is None)),
        updated_fragments=tuple(sorted(updated, key=lambda fragment: fragment.id)),
        new_fragments=(*_fragments(moved), *_fragments(inserted)),
        fields_modified=tuple(patched_ids) if patched else (),
        fields_for_preserving_frag_bitmap=tuple(moved_ids) if moved or not patched else (),
        update_mode=UpdateMode.REWRITE_COLUMNS if patched else UpdateMode.REWRITE_ROWS,
        updated_fragment_offsets={each.fragment_id: each.updated for each in patched},
    )
    transaction = Transaction(read_version=version, uuid=str(uuid), operation=operation)
    return transaction, AffectedRows(_touched(patched, hidden), reads)


def _fragments(results: Sequence[MovedRows | InsertedRows]) -> Iterator[Fragment]:
    return (fragment for each in results for fragment in each.fragments)


def _with_columns(fragments: FragmentList, result: PatchedColumns) -> Fragment:
    fragment = fragments.by_id(result.fragment_id).with_column_file(result.file)
    if result.hidden is None or result.hidden.deletion is None:
        return fragment
    return fragment.with_deletion(result.hidden.deletion)


def _touched(patched: Sequence[PatchedColumns], hidden: Sequence[Hidden]) -> dict[int, RowSet]:
    changed: list[PatchedColumns | Hidden] = [*patched, *hidden]
    touched = {each.fragment_id: each.rows for each in changed}
    for each in patched:
        if each.hidden is not None:
            touched[each.fragment_id] |= each.hidden.rows
    return touched
