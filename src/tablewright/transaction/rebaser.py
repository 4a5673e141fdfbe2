"""The input and output of a rebase: load deletion vectors, write united ones, remove files that are not used.

The decisions are the pure functions of :mod:`.rebase`. Every rebase starts from the original transaction and the
version it was made from, so a commit that loses several races does not rebase a rebased transaction. A rewrite of
fragments that the transaction touches begins a new epoch (:meth:`Rebaser.past`): from there on the translated
transaction is the original one, and the version that the rewrite made the one it was made from.

Tests: ``tests/unit/transaction/test_rebase.py``, ``tests/unit/transaction/test_commit.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tablewright.errors import CommitConflict, InvalidRequest
from tablewright.format.fragment import DeletionFile, DeletionFileType, Fragment
from tablewright.format.naming import data_path, deletion_path
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import Append, Delete, Merge, Operation, Project, Rewrite, Transaction, Update
from tablewright.lazy import cached_property
from tablewright.snapshot.files import write_deletion_vector
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.uncommitted import discard_files
from tablewright.transaction.affected import AffectedRows
from tablewright.transaction.drift import Drift, Meanwhile, drifts
from tablewright.transaction.rebase import (
    Moved,
    Vectors,
    clash,
    held_fields,
    merged_onto,
    moved_onto,
    replaced_columns,
    with_moved,
)
from tablewright.transaction.row_id_switch import enable_row_ids, enables_row_ids
from tablewright.transaction.touched import changed_fragments, dropped_fields, removed_fragments, updated_by_id
from tablewright.transaction.translate import Translated
from tablewright.world import World

__all__ = ["Rebaser"]


class Rebaser:
    """The rebase of one transaction. ``united`` are the deletion files that it wrote last."""

    def __init__(self, world: World, base: Snapshot, asked: Transaction, affected: AffectedRows | None) -> None:
        self._world, self._base, self._asked, self._given = world, base, asked, affected
        self._meanwhile = Meanwhile()
        self._blamed = ("unknown", 0)
        self._columns = base.schema  # those that the values of ours were written for
        self._dropped: frozenset[int] = frozenset()
        self._earlier: tuple[str, ...] = ()
        self._is_tried = False
        self.affected = affected
        self.united: list[str] = []

    @cached_property
    def _ours(self) -> frozenset[int]:
        """The fragments that the transaction changes."""
        return changed_fragments(self._asked.operation)

    @cached_property
    def _brought(self) -> frozenset[str]:
        """The deletion files that came with the transaction, of this and of earlier epochs."""
        return frozenset(_deletion_files(self._asked, self._base))

    def learn(self, theirs: Operation, version: int) -> None:
        """One more transaction came in between."""
        self._meanwhile = self._meanwhile.then(theirs)
        if isinstance(theirs, Merge | Project):
            self._dropped |= dropped_fields(self._columns.ids, theirs.schema)
        if not self._blamed[1] or not self._ours.isdisjoint(changed_fragments(theirs)):
            self._blamed = type(theirs).__name__, version

    def is_rewritten_by(self, theirs: Rewrite) -> bool:
        """Whether a rewrite replaces fragments that the transaction names, so that it has to be translated."""
        if not isinstance(self._asked.operation, Delete | Update | Merge) or enables_row_ids(self._asked):
            return False
        return not self._ours.isdisjoint(removed_fragments(theirs))

    def past(self, base: Snapshot, translated: Translated) -> Rebaser:
        """The rebase from the version on that a rewrite made, of the transaction translated for it."""
        following = Rebaser(self._world, base, translated.transaction, translated.affected)
        following._columns, following._dropped = self._columns, self._dropped
        following._brought = self._brought.union(translated.left)
        following._earlier = (*self.written, *translated.written)
        following._is_tried = True
        return following

    @property
    def written(self) -> list[str]:
        """All files that were written for the rebase, in this and in earlier epochs."""
        return [*self._earlier, *self.united]

    def onto(self, newest: Snapshot) -> Transaction | None:
        """The transaction rebased past all versions in between; ``None`` if it stays as it is."""
        self._is_tried = True
        self._check_columns(newest)
        match self._asked.operation:
            case Delete() | Update() as operation:
                known = self._base.schema.ids
                changed = drifts(self._ours, self._base.fragments, newest.fragments, known)
                return self._rows_onto(operation, newest, changed) if changed else None
            case Merge() if enables_row_ids(self._asked):
                return enable_row_ids(newest.manifest, self._asked.uuid)
            case Merge() as operation:
                merged = merged_onto(operation, self._base.fragments, newest.fragments)
                if isinstance(merged, str):
                    raise self._conflict(merged)
                return None if merged == operation else self._as_of(newest, merged)
            case _:
                return None

    def _check_columns(self, newest: Snapshot) -> None:
        """Values whose columns are other fields by now have to be written again."""
        match self._asked.operation:
            case Append(fragments=added):
                written = held_fields(added)
            case Update(new_fragments=added, fields_modified=modified):
                written = held_fields(added).union(modified)
            case _:
                return
        replaced = replaced_columns(written, self._columns, newest.schema, self._dropped)
        if replaced:
            raise self._conflict(f"columns {replaced} were cast, or replaced by other columns, meanwhile")

    def needless(self, made: Snapshot) -> list[str]:
        """Files that were written for this transaction, and that the version it made does not use.

        None if no version came in between: then it was committed as it is.
        """
        candidates = self._brought.union(self.written) if self._is_tried else frozenset()
        if not candidates:
            return []
        kept = (made.fragments.by_id(id) for id in self._ours if made.fragments.has(id))
        return sorted(candidates.difference(path for fragment in kept for path in _files(fragment)))

    def _as_of(self, newest: Snapshot, operation: Operation) -> Transaction:
        return replace(self._asked, operation=operation, read_version=newest.version)

    def _rows_onto(self, operation: Delete | Update, newest: Snapshot, changed: Mapping[int, Drift]) -> Transaction:
        ours = updated_by_id(operation)
        moved: dict[int, Moved] = {}
        for id, drift in changed.items():
            vectors = self._vectors(ours.get(id), drift, newest)
            reason = clash(operation, ours.get(id), drift, vectors, self._given, self._meanwhile)
            if reason is not None:
                raise self._conflict(reason, id)
            if id in ours:
                self._check_affected(ours[id], drift, vectors)
                moved[id] = moved_onto(ours[id], drift, vectors)
        rebased = with_moved(operation, moved, self._write(moved, newest.version))
        if self._given is not None:
            gone = {id: change.gone for id, change in moved.items()}
            left = {id: rows - gone.get(id, RowSet()) for id, rows in self._given.offsets.items()}
            self.affected = replace(self._given, offsets={id: rows for id, rows in left.items() if rows})
        return self._as_of(newest, rebased)

    def _vectors(self, ours: Fragment | None, drift: Drift, newest: Snapshot) -> Vectors:
        none = RowSet()
        base = self._base.deletion_vector(drift.before) or none
        mine = base if ours is None else self._base.deletion_vector(ours) or none
        return Vectors(base, mine, none if drift.after is None else newest.deletion_vector(drift.after) or none)

    def _check_affected(self, ours: Fragment, drift: Drift, vectors: Vectors) -> None:
        """The rows that a caller says are affected have to be those that our files hide or change."""
        if self._given is None:
            return
        touched = self._given.of(ours.id)
        in_place = ours.files != drift.before.files
        if not (vectors.mine <= touched if in_place else vectors.mine == touched):
            raise InvalidRequest(
                f"affected_rows names {len(touched)} rows of fragment {ours.id}, but the operation hides "
                f"{len(vectors.mine)} rows there: name exactly the rows that it deletes, moves or changes."
            )

    def _write(self, moved: Mapping[int, Moved], version: int) -> dict[int, DeletionFile]:
        """United deletion files; those of an earlier rebase go."""
        discard_files(self._world.store, self.united)
        self.united = []
        files: dict[int, DeletionFile] = {}
        for id, change in moved.items():
            if change.deletions is not None:
                file, _ = write_deletion_vector(
                    self._world.store, id, change.deletions, version, self._world.ids.u64(), DeletionFileType.BITMAP
                )
                files[id] = file
                self.united.append(deletion_path(id, file))
        return files

    def _conflict(self, reason: str, *fragments: int) -> CommitConflict:
        name, version = self._blamed
        return CommitConflict(type(self._asked.operation).__name__, name, version, fragments=fragments, reason=reason)


def _deletion_files(asked: Transaction, base: Snapshot) -> Iterator[str]:
    """The deletion files that came with the transaction."""
    for id, fragment in updated_by_id(asked.operation).items():
        if fragment.deletion is not None and not (
            base.fragments.has(id) and fragment.deletion == base.fragments.by_id(id).deletion
        ):
            yield deletion_path(id, fragment.deletion)


def _files(fragment: Fragment) -> Iterator[str]:
    """The paths of its files in the table's own directory."""
    yield from (data_path(file.path) for file in fragment.files if file.base_id is None)
    if fragment.deletion is not None:
        yield deletion_path(fragment.id, fragment.deletion)
