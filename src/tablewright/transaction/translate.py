"""A transaction translated through a rewrite: the same change, made on the fragments that the rewrite wrote.

The transaction is one on the version before the rewrite, as the ordinary rebase leaves it. Rows that it hides are
hidden at their new addresses, whole fragments that it removes count as all their live rows, columns that it wrote are
carried (:mod:`.carry`). What comes out is complete: the state of each new fragment that it touches, on the version that
the rewrite made. Other writers decide from that transaction alone.

Tests: ``tests/unit/transaction/test_translate.py``, ``tests/concurrency/test_past_compaction.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tablewright.format.deletion_vectors.lance import choose_type
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.naming import data_path, deletion_path
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import Delete, Merge, Operation, Transaction, Update
from tablewright.snapshot.files import write_deletion_vector
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.uncommitted import UncommittedFiles, removed_on_failure
from tablewright.transaction.affected import AffectedRows
from tablewright.transaction.carry import ColumnFiles, carry_columns, check_columns
from tablewright.transaction.crossing import Crossing
from tablewright.transaction.rebase import new_files
from tablewright.transaction.touched import changed_fragments, updated_by_id
from tablewright.world import World

__all__ = ["Translated", "is_translated", "translate"]


@dataclass(frozen=True, slots=True)
class Translated:
    """The transaction on the version that the rewrite made, and what it took to get there.

    ``written`` are files that this version needs, ``left`` column files of the transaction that it does not need any
    more; ``rows`` were followed, ``bytes_carried`` were written for columns.
    """

    transaction: Transaction
    affected: AffectedRows | None
    written: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    rows: int = 0
    bytes_carried: int = 0


def is_translated(operation: Operation) -> bool:
    """Whether operations of this kind name rows or fragments that a rewrite replaces, and can follow them."""
    return isinstance(operation, Delete | Update | Merge)


def translate(world: World, transaction: Transaction, affected: AffectedRows | None, crossing: Crossing) -> Translated:
    """The transaction, which is one on the version before the rewrite, on the version after it.

    :class:`~tablewright.transaction.crossing.NotFollowed` if that can't be. Then no file of it stays.
    """
    operation = transaction.operation
    ours = crossing.rewritten(changed_fragments(operation))
    if not ours or not isinstance(operation, Delete | Update | Merge):
        return Translated(replace(transaction, read_version=crossing.after.version), affected)
    columns = _column_files(operation, crossing.before, ours)
    hidden = {} if isinstance(operation, Merge) else _hidden(operation, crossing.before, ours)
    check_columns(crossing, columns)
    _check_rows(crossing, hidden, affected, columns)
    with removed_on_failure(world.store) as files:
        carried = carry_columns(world, crossing, columns) if columns.files else {}
        written = [data_path(file.path) for file in carried.values()]
        files.add(written)
        if isinstance(operation, Merge):
            changed: Delete | Update | Merge = _merge(operation, crossing, carried)
        else:
            changes = _Changes(world, crossing, files)
            changed = _rows(operation, crossing, changes.made(crossing.forward(hidden), carried))
            written += changes.written
        followed = None if affected is None else replace(affected, offsets=crossing.forward(affected.offsets))
    return Translated(
        replace(transaction, operation=changed, read_version=crossing.after.version),
        followed,
        written=tuple(written),
        left=tuple(data_path(file.path) for each in columns.files.values() for file in each if file.base_id is None),
        rows=sum(map(len, hidden.values())) or (0 if affected is None else sum(len(affected.of(id)) for id in ours)),
        bytes_carried=sum(file.file_size_bytes for file in carried.values()),
    )


# ------------------------------------------------------------------------------------------------- what ours does
def _hidden(operation: Delete | Update, before: Snapshot, ours: list[int]) -> dict[int, RowSet]:
    """The rows that go, by fragment; of fragments that are removed all live rows."""
    updated, hidden = updated_by_id(operation), dict[int, RowSet]()
    for id in ours:
        fragment = before.fragments.by_id(id)
        gone = before.deletion_vector(fragment) or RowSet()
        if id in updated:
            hidden[id] = (before.deletion_vector(updated[id]) or RowSet()) - gone
        else:
            hidden[id] = gone.complement(fragment.physical_rows)
    return hidden


def _column_files(operation: Delete | Update | Merge, before: Snapshot, ours: list[int]) -> ColumnFiles:
    if isinstance(operation, Merge):
        wanted = frozenset(ours)
        fragments = {fragment.id: fragment for fragment in operation.fragments if fragment.id in wanted}
        schema = operation.schema
    else:
        fragments, schema = updated_by_id(operation), before.schema
    files = {id: new_files(fragments[id], before.fragments.by_id(id)) for id in ours if id in fragments}
    return ColumnFiles({id: some for id, some in files.items() if some}, schema)


def _check_rows(
    crossing: Crossing, hidden: Mapping[int, RowSet], affected: AffectedRows | None, columns: ColumnFiles
) -> None:
    """Compare every row that is followed, but for those of fragments whose rows were all compared."""
    given: Mapping[int, RowSet] = {} if affected is None else affected.offsets
    both = crossing.rewritten((hidden.keys() | given.keys()) - columns.files.keys())
    crossing.check({id: hidden.get(id, RowSet()) | given.get(id, RowSet()) for id in both})


# ---------------------------------------------------------------------------------------------- what it becomes
class _Changes:
    """The new fragments as we leave them. ``written`` are the deletion files for it."""

    def __init__(self, world: World, crossing: Crossing, files: UncommittedFiles) -> None:
        self._world, self._after, self._files = world, crossing.after, files
        self.written: list[str] = []

    def made(self, hidden: Mapping[int, RowSet], carried: Mapping[int, DataFile]) -> dict[int, Fragment | None]:
        """By id; ``None`` for a fragment without live rows."""
        changed: dict[int, Fragment | None] = {}
        for id in sorted(hidden.keys() | carried.keys()):
            fragment = self._after.fragments.by_id(id)
            if id in carried:
                fragment = fragment.with_column_file(carried[id])
            changed[id] = self._hidden(fragment, hidden[id]) if hidden.get(id) else fragment
        return changed

    def _hidden(self, fragment: Fragment, rows: RowSet) -> Fragment | None:
        union = (self._after.deletion_vector(fragment) or RowSet()) | rows
        if len(union) == fragment.physical_rows:
            return None
        kind = choose_type(len(union), None if fragment.deletion is None else fragment.deletion.file_type)
        version, file_id = self._after.version, self._world.ids.u64()
        file, _ = write_deletion_vector(self._world.store, fragment.id, union, version, file_id, kind)
        self.written.append(deletion_path(fragment.id, file))
        self._files.add(self.written[-1:])
        return fragment.with_deletion(file)


def _rows(operation: Delete | Update, crossing: Crossing, new: Mapping[int, Fragment | None]) -> Delete | Update:
    old = frozenset(crossing.rewritten(changed_fragments(operation)))
    kept = [fragment for fragment in operation.updated_fragments if fragment.id not in old]
    kept += [fragment for fragment in new.values() if fragment is not None]
    updated = tuple(sorted(kept, key=lambda fragment: fragment.id))
    emptied = [id for id, fragment in new.items() if fragment is None]
    if isinstance(operation, Delete):
        gone = [id for id in operation.deleted_fragment_ids if id not in old]
        return replace(operation, updated_fragments=updated, deleted_fragment_ids=tuple(sorted([*gone, *emptied])))
    gone = [id for id in operation.removed_fragment_ids if id not in old]
    offsets = crossing.forward(crossing.live(operation.updated_fragment_offsets))
    return replace(
        operation,
        updated_fragments=updated,
        removed_fragment_ids=tuple(sorted([*gone, *emptied])),
        updated_fragment_offsets={id: rows for id, rows in offsets.items() if id not in emptied},
    )


def _merge(operation: Merge, crossing: Crossing, carried: Mapping[int, DataFile]) -> Merge:
    """All fragments of the version after the rewrite: ours where it left them alone, its own with our columns."""
    mine, alive = {fragment.id: fragment for fragment in operation.fragments}, operation.schema.ids

    def merged(fragment: Fragment) -> Fragment:
        if fragment.id in mine:
            return mine[fragment.id]
        if fragment.id not in carried:
            return fragment
        grown = fragment.with_column_file(carried[fragment.id])
        return grown.with_files(tuple(each for each in grown.files if any(id in alive for id in each.live_fields)))

    return replace(operation, fragments=tuple(merged(fragment) for fragment in crossing.after.fragments))
