"""Changes of rows and columns moved past others, by what the fragments have become."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pyarrow as pa
import pytest

from tablewright.errors import CommitConflict, InvalidRequest
from tablewright.format.envelope import encode_manifest_file
from tablewright.format.fragment import TOMBSTONE, DataFile, DeletionFileType, Fragment
from tablewright.format.naming import manifest_path
from tablewright.format.row_set import RowSet
from tablewright.format.schema import Schema
from tablewright.format.transaction import (
    Append,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Transaction,
    Update,
    UpdateConfig,
    UpdateMode,
    encode_transaction,
)
from tablewright.snapshot.files import write_deletion_vector
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.testing.worlds import seeded_world
from tablewright.transaction.affected import AffectedRows
from tablewright.transaction.commit import Committed, commit
from tablewright.transaction.drift import Drift
from tablewright.world import World

A, B, C = 0, 1, 2
SCHEMA = Schema.from_arrow(pa.schema({"a": pa.int64(), "b": pa.int64(), "c": pa.int64()}))
WIDER = Schema.from_arrow(pa.schema({"a": pa.int64(), "b": pa.int64(), "c": pa.int64(), "d": pa.int64()}))
D = 3


def data_file(name: str, *fields: int) -> DataFile:
    indices = tuple(range(len(fields)))
    return DataFile(
        path=f"{name}.lance", fields=fields, column_indices=indices, file_major_version=2, file_minor_version=2
    )


class Table:
    """A table of metadata only: two fragments of ten rows, and changes of it made from its first version."""

    def __init__(self, *, stable: bool = False) -> None:
        self.world: World = seeded_world(open_store(f"memory://{uuid.uuid4()}"), 1)
        fragments = tuple(Fragment(id=0, files=(data_file(name, A, B, C),), physical_rows=10) for name in "xy")
        self.base = self.do(None, Overwrite(fragments=fragments, schema=SCHEMA)).snapshot

    def do(self, base: Snapshot | None, operation: Operation, affected: AffectedRows | None = None) -> Committed:
        version = 0 if base is None else base.version
        transaction = Transaction(read_version=version, uuid=str(self.world.ids.uuid()), operation=operation)
        return commit(self.world, transaction, base=base, affected=affected)

    def stale(self, change: tuple[Operation, AffectedRows | None]) -> Committed:
        return self.do(self.base, *change)

    def hiding(self, rows: set[int], fragment: int = 0) -> Fragment:
        file, _ = write_deletion_vector(
            self.world.store,
            fragment,
            RowSet.of(sorted(rows)),
            self.base.version,
            self.world.ids.u64(),
            DeletionFileType.ARROW_ARRAY,
        )
        return self.base.fragments.by_id(fragment).with_deletion(file)

    def delete(self, rows: set[int]) -> tuple[Delete, AffectedRows]:
        return Delete(updated_fragments=(self.hiding(rows),)), AffectedRows({0: RowSet.of(rows)}, frozenset({A}))

    def move(self, rows: set[int]) -> tuple[Update, AffectedRows]:
        new = Fragment(id=0, files=(data_file(f"moved-{min(rows)}", A, B, C),), physical_rows=len(rows))
        update = Update(
            updated_fragments=(self.hiding(rows),), new_fragments=(new,), fields_for_preserving_frag_bitmap=(B,)
        )
        return update, AffectedRows({0: RowSet.of(rows)}, frozenset({A, B}))

    def patch(self, rows: set[int], field: int = B, reads: frozenset[int] | None = None) -> tuple[Update, AffectedRows]:
        changed = self.base.fragments.by_id(0).with_column_file(data_file(f"patched-{field}-{min(rows)}", field))
        update = Update(
            updated_fragments=(changed,),
            fields_modified=(field,),
            update_mode=UpdateMode.REWRITE_COLUMNS,
            updated_fragment_offsets={0: RowSet.of(rows)},
        )
        return update, AffectedRows({0: RowSet.of(rows)}, reads if reads is not None else frozenset({A, field}))

    def add_column(self) -> tuple[Merge, None]:
        fragments = tuple(
            fragment.with_column_file(data_file(f"d-{fragment.id}", D)) for fragment in self.base.fragments
        )
        return Merge(fragments=fragments, schema=WIDER, preserves_nullability=True), None


@pytest.fixture
def table() -> Table:
    return Table()


def deleted(snapshot: Snapshot, fragment: int = 0) -> list[int]:
    vector = snapshot.deletion_vector(snapshot.fragments.by_id(fragment))
    return [] if vector is None else [int(offset) for offset in vector.to_numpy()]


def columns(snapshot: Snapshot, fragment: int = 0) -> dict[int, str]:
    files = snapshot.fragments.by_id(fragment).files
    return {field: file.path for file in files for field in file.fields if field != TOMBSTONE}


def assert_truthful(snapshot: Snapshot) -> None:
    """The transaction carries the fragments as they are now, and the version it was moved onto."""
    transaction = snapshot.file.transaction
    assert transaction is not None
    assert transaction.read_version == snapshot.version - 1
    operation = transaction.operation
    assert isinstance(operation, Delete | Update)
    for fragment in operation.updated_fragments:
        now = snapshot.fragments.by_id(fragment.id)
        assert (fragment.files, fragment.deletion) == (now.files, now.deletion)


class TestSideBySide:
    def test_columns_rewritten_past_a_delete_of_other_rows(self, table: Table) -> None:
        table.stale(table.delete({1}))
        after = table.stale(table.patch({5})).snapshot
        assert deleted(after) == [1]
        assert columns(after)[B] == "patched-1-5.lance"
        assert_truthful(after)

    def test_a_delete_past_columns_rewritten_in_other_rows(self, table: Table) -> None:
        table.stale(table.patch({5}))
        after = table.stale(table.delete({1})).snapshot
        assert deleted(after) == [1]
        assert columns(after)[B] == "patched-1-5.lance"
        assert_truthful(after)

    def test_rows_moved_past_columns_rewritten_in_other_rows(self, table: Table) -> None:
        table.stale(table.patch({5}))
        after = table.stale(table.move({1})).snapshot
        assert (deleted(after), columns(after)[B], len(after.fragments)) == ([1], "patched-1-5.lance", 3)
        assert_truthful(after)

    def test_columns_rewritten_past_rows_that_moved(self, table: Table) -> None:
        table.stale(table.move({1}))
        after = table.stale(table.patch({5})).snapshot
        assert (deleted(after), columns(after)[B]) == ([1], "patched-1-5.lance")
        assert_truthful(after)

    @pytest.mark.parametrize("rows", [{1}, {2}])
    def test_two_columns_rewritten_in_the_same_or_other_rows(self, table: Table, rows: set[int]) -> None:
        table.stale(table.patch({1}, B))
        after = table.stale(table.patch(rows, C)).snapshot
        assert columns(after) == {A: "x.lance", B: "patched-1-1.lance", C: f"patched-2-{min(rows)}.lance"}
        assert_truthful(after)

    def test_several_in_between_and_a_fragment_that_empties(self, table: Table) -> None:
        table.stale(table.patch({1}, B))
        table.stale(table.delete({0, 2, 3, 4}))
        table.do(open_snapshot(table.world), UpdateConfig())
        table.do(open_snapshot(table.world), Append(fragments=(replace(table.base.fragments[0], id=0),)))
        committed = table.stale(table.delete({1, 5, 6, 7, 8, 9} - {1}))
        assert deleted(committed.snapshot) == [0, 2, 3, 4, 5, 6, 7, 8, 9]
        last = table.do(committed.snapshot, Delete(deleted_fragment_ids=(0,))).snapshot
        assert not last.fragments.has(0)

    def test_the_last_row_goes_by_uniting(self, table: Table) -> None:
        table.stale(table.delete(set(range(9))))
        after = table.stale(table.delete({9})).snapshot
        assert not after.fragments.has(0)
        transaction = after.file.transaction
        assert transaction is not None
        assert isinstance(transaction.operation, Delete)
        assert transaction.operation.deleted_fragment_ids == (0,)
        assert transaction.operation.updated_fragments == ()

    def test_nothing_left_to_delete_changes_nothing(self, table: Table) -> None:
        first = table.stale(table.delete({1, 2})).snapshot
        second = table.stale(table.delete({1}))
        assert second.affected is not None
        assert len(second.affected) == 0
        assert second.snapshot.fragments.by_id(0) == first.fragments.by_id(0)

    def test_rows_deleted_beside_columns_that_were_added(self, table: Table) -> None:
        table.stale(table.add_column())
        after = table.stale(table.delete({1})).snapshot
        assert (deleted(after), columns(after)[D]) == ([1], "d-0.lance")
        assert_truthful(after)

    def test_columns_rewritten_beside_columns_that_were_added(self, table: Table) -> None:
        table.stale(table.add_column())
        after = table.stale(table.patch({1})).snapshot
        assert (columns(after)[B], columns(after)[D]) == ("patched-1-1.lance", "d-0.lance")
        assert_truthful(after)

    def test_columns_added_beside_rows_that_were_deleted(self, table: Table) -> None:
        table.stale(table.delete({1}))
        table.do(open_snapshot(table.world), Delete(deleted_fragment_ids=(1,)))
        after = table.stale(table.add_column()).snapshot
        assert (deleted(after), columns(after)[D], len(after.fragments)) == ([1], "d-0.lance", 1)


class TestTrueConflicts:
    @pytest.mark.parametrize("second", ["delete", "move", "patch"])
    @pytest.mark.parametrize("first", ["delete", "move", "patch"])
    def test_the_same_row(self, table: Table, first: str, second: str) -> None:
        table.stale(getattr(table, first)({1, 2}))
        if (first, second) == ("delete", "delete"):
            table.stale(table.delete({1}))
            return
        with pytest.raises(CommitConflict) as caught:
            table.stale(getattr(table, second)({1}))
        assert (caught.value.retryable, caught.value.version, caught.value.fragments) == (True, 2, (0,))

    def test_the_same_column_in_other_rows(self, table: Table) -> None:
        table.stale(table.patch({1}))
        with pytest.raises(CommitConflict, match="both rewrote the columns of fields"):
            table.stale(table.patch({2}))

    def test_a_column_that_was_made_from_the_one_they_rewrote(self, table: Table) -> None:
        table.stale(table.patch({1}, B))
        with pytest.raises(CommitConflict, match="both modified 1 rows"):
            table.stale(table.patch({1}, C, frozenset({B})))

    def test_columns_rewritten_in_rows_that_nobody_names(self, table: Table) -> None:
        silent, _ = table.patch({1})
        table.do(table.base, replace(silent, updated_fragment_offsets={}))
        with pytest.raises(CommitConflict, match="without saying in which rows"):
            table.stale(table.delete({5}))

    def test_a_whole_fragment(self, table: Table) -> None:
        table.stale(table.delete({1}))
        with pytest.raises(CommitConflict, match="removes the whole fragment"):
            table.do(table.base, Delete(deleted_fragment_ids=(0,)), AffectedRows({0: RowSet.of(range(10))}))

    def test_a_row_that_was_moved_and_then_deleted_elsewhere(self, table: Table) -> None:
        table.stale(table.move({1}))
        with pytest.raises(CommitConflict, match="both modified 1 rows"):
            table.stale(table.delete({1}))

    def test_rows_that_move_lack_columns_that_were_added(self, table: Table) -> None:
        table.stale(table.add_column())
        with pytest.raises(CommitConflict):
            table.stale(table.move({1}))

    def test_new_columns_have_no_values_for_rows_that_came_or_moved(self, table: Table) -> None:
        table.stale(table.move({1}))
        with pytest.raises(CommitConflict):
            table.stale(table.add_column())

    def test_a_conflict_names_who_touched_the_fragment(self, table: Table) -> None:
        table.stale(table.move({1}))
        table.do(open_snapshot(table.world), UpdateConfig())
        with pytest.raises(CommitConflict) as caught:
            table.stale(table.delete({1}))
        assert (caught.value.theirs, caught.value.version) == ("Update", 2)

    def test_affected_rows_that_are_not_the_hidden_ones(self, table: Table) -> None:
        table.stale(table.delete({1}))
        operation, _ = table.delete({5})
        with pytest.raises(InvalidRequest, match="name exactly the rows"):
            table.do(table.base, operation, AffectedRows({0: RowSet.of([6])}))


class TestSilentWriters:
    """A manifest that changed more than its transaction tells."""

    def lie(self, table: Table, fragment: Fragment) -> None:
        manifest = replace(
            table.base.manifest,
            version=2,
            fragments=table.base.fragments.replaced({0: fragment}, ()),
        )
        silent = Transaction(read_version=1, uuid=str(uuid.uuid4()), operation=UpdateConfig())
        data = encode_manifest_file(manifest, encode_transaction(silent))
        table.world.store.put(manifest_path(2, v2=True), data)

    def test_deletions_are_seen_in_the_vectors(self, table: Table) -> None:
        self.lie(table, table.hiding({3}))
        after = table.stale(table.delete({5})).snapshot
        assert deleted(after) == [3, 5]

    def test_the_same_row_is_a_conflict_for_an_update(self, table: Table) -> None:
        self.lie(table, table.hiding({3}))
        with pytest.raises(CommitConflict, match="both modified 1 rows"):
            table.stale(table.move({3}))

    def test_a_row_that_is_gone_may_live_elsewhere(self, table: Table) -> None:
        self.lie(table, table.hiding({3}))
        with pytest.raises(CommitConflict, match="both modified 1 rows"):
            table.stale(table.delete({3}))

    def test_a_rewritten_column_is_seen_in_the_files(self, table: Table) -> None:
        self.lie(table, table.base.fragments.by_id(0).with_column_file(data_file("secret", B)))
        with pytest.raises(CommitConflict, match="without saying in which rows"):
            table.stale(table.delete({5}))

    def test_new_fragments_are_seen_by_a_merge(self, table: Table) -> None:
        self.lie(table, table.base.fragments.by_id(0).with_column_file(data_file("secret", B)))
        with pytest.raises(CommitConflict, match="rewritten meanwhile"):
            table.stale(table.add_column())


def test_a_drift_tells_rewritten_from_added_fields() -> None:
    before = Fragment(id=0, files=(data_file("x", A, B),), physical_rows=1)
    after = before.with_column_file(data_file("y", B, C))
    drift = Drift(before, after)
    assert (drift.rewritten, drift.added) == ({B}, {C})
    filled = Drift(before, after, known=frozenset({A, B, C}))
    assert (filled.rewritten, filled.added) == ({B, C}, frozenset())
    assert Drift(before, None).added == Drift(before, None).rewritten == frozenset()
