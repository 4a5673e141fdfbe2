"""Rebase: our transaction moved past theirs, by metadata alone. Pure functions.

*Deletes and updates.* For every fragment of ours that changed since we read it (:mod:`.drift`):

1. :func:`clash` says whether both changed the same rows, or columns that the other one depends on. Then the operation
   has to run again.
2. Otherwise :func:`moved_onto` makes our change again on the fragment's newest state: our column files join its files,
   our deletions are united with its deletions. A fragment without live rows is removed; one where nothing of ours is
   left to do stays as it is.

The commit loop loads the deletion vectors for this and writes the united ones.

*Merge* (new columns) past deletions: the new files join the newest state of every fragment.

*New rows* (Append, Update) and columns rewritten in place keep the field ids that they were written with. Where a
column's name belongs to another field now (it was cast, or dropped or renamed and added again), they would be missing
under that name. Where a column is gone and others were added, one of these may be the same column (cast under a new
name) or have been given its id, which is free again once no file holds it. :func:`replaced_columns` finds them, and the
operation runs again.

*An index past rewritten columns*: fragments whose indexed column was rewritten meanwhile leave its coverage. Past a
rewrite, its coverage follows the rows where the index files name rows by id, and loses them otherwise.

*Past a rewrite of fragments that we touch* the addresses of rows change: :mod:`.translate`.

Format: ``docs/format/conflicts.md#how-a-rebase-decides``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from tablewright.format.fragment import DataFile, DeletionFile, Fragment, FragmentList
from tablewright.format.row_set import RowSet
from tablewright.format.schema import Schema
from tablewright.format.transaction import CreateIndex, Delete, Merge, Operation, Rewrite, Update
from tablewright.transaction.affected import AffectedRows
from tablewright.transaction.coverage import new_index_past_rewrite, without_rewritten_columns
from tablewright.transaction.drift import Drift, Meanwhile, drifts
from tablewright.transaction.touched import changed_fragments

__all__ = [
    "Moved",
    "Vectors",
    "clash",
    "held_fields",
    "merged_onto",
    "moved_onto",
    "new_files",
    "past",
    "replaced_columns",
    "with_moved",
]

_OFFSETS_SHOWN = 5


def past(
    operation: Operation, theirs: Operation, *, stable_row_ids: bool = False, recorded: Collection[int] = ()
) -> Operation:
    """Our operation rebased past theirs, where the two operations are all that is needed.

    ``recorded`` are fragments whose new addresses the record of deferred compactions has.
    """
    if not isinstance(operation, CreateIndex):
        return operation
    covered = operation.new_indices
    if isinstance(theirs, Update) and theirs.fields_modified:
        covered = without_rewritten_columns(covered, theirs.fields_modified, changed_fragments(theirs))
    if isinstance(theirs, Rewrite):
        covered = new_index_past_rewrite(covered, theirs, stable_row_ids=stable_row_ids, recorded=recorded)
    return replace(operation, new_indices=covered)


def held_fields(fragments: Iterable[Fragment]) -> set[int]:
    """Fields that some of the fragments have values for."""
    return {id for fragment in fragments for file in fragment.files for id in file.live_fields}


def replaced_columns(
    written: Iterable[int], base: Schema, newest: Schema, dropped: frozenset[int] = frozenset()
) -> list[str]:
    """Paths of ``base`` whose fields were ``written``, and whose place other fields have taken in ``newest``.

    ``dropped`` are fields of ``base`` that some version in between did not have: whatever has their id now is another
    column.
    """
    if base.fields == newest.fields and not dropped:
        return []
    held = {id for id in written if base.has(id)}
    above = {parent for id in held for parent in base.ancestors(id)}
    now = {newest.path(field.id): field.id for field in newest.fields}
    came = any(not base.has(id) or id in dropped for id in now.values())
    gone = dropped.union(id for id in held if not newest.has(id)) if came else frozenset[int]()
    paths = {base.path(id): id for id in held | above}
    return sorted(path for path, id in paths.items() if id in gone or now.get(path, id) != id)


@dataclass(frozen=True, slots=True)
class Vectors:
    """The deleted rows of a fragment: when we read it, as we leave it, and now."""

    base: RowSet
    ours: RowSet
    newest: RowSet

    @property
    def mine(self) -> RowSet:
        """Rows that we hide."""
        return self.ours - self.base

    @property
    def theirs(self) -> RowSet:
        """Rows that others hid meanwhile."""
        return self.newest - self.base


def new_files(ours: Fragment, before: Fragment) -> tuple[DataFile, ...]:
    """The data files that ``ours`` has and ``before``, an earlier state of the fragment, has not."""
    known = {(file.base_id, file.path) for file in before.files}
    return tuple(file for file in ours.files if (file.base_id, file.path) not in known)


def clash(
    operation: Delete | Update,
    ours: Fragment | None,
    drift: Drift,
    vectors: Vectors,
    affected: AffectedRows | None,
    meanwhile: Meanwhile,
) -> str | None:
    """Why our change of a fragment (``None``: its removal) can't be made on its newest state; ``None`` if it can."""
    if drift.after is None:
        return "they removed the whole fragment"
    rewritten = drift.rewritten
    if drift.added and isinstance(operation, Update) and (ours is None or vectors.mine):
        return "they added columns, which the rows that we moved do not have"
    if not (vectors.theirs or rewritten):
        return None
    if ours is None:
        return "we remove the whole fragment, and they changed it"
    if affected is None:
        return "our transaction does not say which rows it touches (affected_rows)"
    touched = affected.of(ours.id)
    both = touched & vectors.theirs
    if both and not (isinstance(operation, Delete) and meanwhile.only_deleted_from(ours.id)):
        return _same_rows(both)
    written = frozenset(id for file in new_files(ours, drift.before) for id in file.live_fields)
    if written & rewritten:
        return f"both rewrote the columns of fields {sorted(written & rewritten)}"
    keeps_row = isinstance(operation, Update) and not vectors.mine
    if rewritten and not (keeps_row and affected.reads is not None and affected.reads.isdisjoint(rewritten)):
        patched = meanwhile.patched.get(ours.id)
        if patched is None:
            return f"they rewrote the columns of fields {sorted(rewritten)} without saying in which rows"
        if patched & touched:
            return _same_rows(patched & touched)
    return None


def _same_rows(both: RowSet) -> str:
    return f"both modified {len(both)} rows, at offsets {both.first(_OFFSETS_SHOWN)}"


@dataclass(frozen=True, slots=True)
class Moved:
    """Our change of one fragment on its newest state.

    ``fragment`` is ``None`` if nothing of ours is left to do there; ``deletions`` are those to write for it, ``None``
    if its deletion file stays; ``emptied`` means that no row is left; ``gone`` are rows that others hid meanwhile.
    """

    fragment: Fragment | None
    deletions: RowSet | None
    emptied: bool
    gone: RowSet


def moved_onto(ours: Fragment, drift: Drift, vectors: Vectors) -> Moved:
    """Our change made on the newest state of the fragment. Precondition: :func:`clash` found nothing."""
    assert drift.after is not None
    fragment, files = drift.after, new_files(ours, drift.before)
    for file in files:
        fragment = fragment.with_column_file(file)
    left = vectors.mine - vectors.newest
    if not vectors.theirs:  # our own deletion file is the union already
        return Moved(replace(fragment, deletion=ours.deletion) if files or left else None, None, False, vectors.theirs)
    union = vectors.newest | left if left else None
    emptied = union is not None and len(union) == fragment.physical_rows
    return Moved(fragment if files or left else None, None if emptied else union, emptied, vectors.theirs)


def with_moved(
    operation: Delete | Update, moved: Mapping[int, Moved], files: Mapping[int, DeletionFile]
) -> Delete | Update:
    """The operation with its rebased fragments. ``files`` are the united deletion files."""
    updated: list[Fragment] = []
    for fragment in operation.updated_fragments:
        change = moved.get(fragment.id)
        if change is None:
            updated.append(fragment)
        elif change.fragment is not None and not change.emptied:
            deletion = files.get(fragment.id, change.fragment.deletion)
            updated.append(replace(change.fragment, deletion=deletion))
    emptied = sorted(id for id, change in moved.items() if change.emptied)
    if isinstance(operation, Delete):
        gone = (*operation.deleted_fragment_ids, *emptied)
        return replace(operation, updated_fragments=tuple(updated), deleted_fragment_ids=gone)
    offsets = {
        id: rows - moved[id].gone if id in moved else rows
        for id, rows in operation.updated_fragment_offsets.items()
        if id not in emptied
    }
    removed = (*operation.removed_fragment_ids, *emptied)
    return replace(
        operation, updated_fragments=tuple(updated), removed_fragment_ids=removed, updated_fragment_offsets=offsets
    )


def merged_onto(operation: Merge, base: FragmentList, newest: FragmentList) -> Merge | str:
    """The new columns of a merge on the newest fragments, or why that can't be: values of some rows are missing."""
    ours = {fragment.id: fragment for fragment in operation.fragments}
    unknown = [id for id in newest.ids.tolist() if id not in ours or not base.has(id)]
    if unknown:
        return f"fragments {unknown[:_OFFSETS_SHOWN]} came meanwhile, and have no values for the new columns"
    changed = drifts((id for id in ours if newest.has(id)), base, newest)
    for id, drift in changed.items():
        if drift.rewritten or drift.added:
            return f"columns of fragment {id} were rewritten meanwhile"
    fragments: list[Fragment] = []
    for fragment in newest:
        mine = ours[fragment.id]
        if fragment.id in changed:
            for file in new_files(mine, changed[fragment.id].before):
                fragment = fragment.with_column_file(file)
            mine = fragment
        fragments.append(mine)
    return replace(operation, fragments=tuple(fragments))
