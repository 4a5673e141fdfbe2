"""Our transaction moved past theirs: metadata work only (fact sheet §6.2).

Filled in so far:

*An index past rewritten columns*: fragments whose indexed column was rewritten meanwhile leave its coverage.

*Uniting deletion vectors*: for every fragment that both changed,

1. the commit loop loads *their* newest deletion vector (this module says for which fragments);
2. a row that both touched is a true conflict: the operation must run again;
3. the union becomes the fragment's new vector, or removes the fragment when no live row is left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tablewright.errors import CommitConflict, InternalError
from tablewright.format.deletion_vector import DeletionVector
from tablewright.format.fragment import DeletionFile
from tablewright.format.manifest import Manifest
from tablewright.format.transaction import CreateIndex, Delete, Operation, Transaction, Update
from tablewright.transaction.affected import AffectedRows
from tablewright.transaction.coverage import without_rewritten_columns
from tablewright.transaction.touched import changed_fragments

__all__ = ["United", "past", "unite_deletions", "with_united_deletions"]


def past(operation: Operation, theirs: Operation) -> Operation:
    """Our operation as it has to be after theirs, where that needs nothing but the two."""
    if isinstance(operation, CreateIndex) and isinstance(theirs, Update) and theirs.fields_modified:
        fragments = changed_fragments(theirs)
        covered = without_rewritten_columns(operation.new_indices, theirs.fields_modified, fragments)
        return replace(operation, new_indices=covered)
    return operation


@dataclass(frozen=True, slots=True)
class United:
    """New deletion vectors to write, per fragment, and fragments that have no live row left."""

    vectors: Mapping[int, DeletionVector]
    emptied: frozenset[int]


def unite_deletions(
    affected: AffectedRows, theirs: Mapping[int, DeletionVector], manifest: Manifest, *, ours: str, their_name: str
) -> United:
    """Unite our affected rows with the deletion vectors that the newest manifest has."""
    vectors: dict[int, DeletionVector] = {}
    emptied: set[int] = set()
    for fragment, vector in theirs.items():
        mine = DeletionVector.of(affected.offsets.get(fragment, ()))
        both = mine.intersection(vector)
        if len(both):
            shown = [int(offset) for offset in both.to_numpy()[:5]]
            raise CommitConflict(
                ours,
                their_name,
                manifest.version,
                fragments=(fragment,),
                reason=f"both modified {len(both)} rows of fragment {fragment}, at offsets {shown} and on",
            )
        union = mine.union(vector)
        if len(union) == manifest.fragments.by_id(fragment).physical_rows:
            emptied.add(fragment)
        else:
            vectors[fragment] = union
    return United(vectors, frozenset(emptied))


def with_united_deletions(
    transaction: Transaction, files: Mapping[int, DeletionFile], emptied: frozenset[int], read_version: int
) -> Transaction:
    """The transaction with the united deletion files in place, as read from ``read_version``."""
    operation = transaction.operation
    if not isinstance(operation, Delete | Update):
        raise InternalError(f"{type(operation).__name__} has no deletion vectors to unite.")
    updated = tuple(
        replace(fragment, deletion=files.get(fragment.id, fragment.deletion))
        for fragment in operation.updated_fragments
        if fragment.id not in emptied
    )
    rebased: Delete | Update
    if isinstance(operation, Delete):
        deleted = (*operation.deleted_fragment_ids, *sorted(emptied))
        rebased = replace(operation, updated_fragments=updated, deleted_fragment_ids=deleted)
    else:
        removed = (*operation.removed_fragment_ids, *sorted(emptied))
        rebased = replace(operation, updated_fragments=updated, removed_fragment_ids=removed)
    return replace(transaction, operation=rebased, read_version=read_version)
