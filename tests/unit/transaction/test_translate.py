"""Transactions translated through a rewrite: rows, whole fragments, columns, and the files that come and go."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from tests.compactor import plan_compaction
from tests.unit.transaction.crossings import crossed, crossing_to, sixteen_rows

import tablewright as tw
from tablewright.data.write import write_data_file
from tablewright.format.fragment import DeletionFileType, Fragment
from tablewright.format.naming import data_path, deletion_path
from tablewright.format.row_set import RowSet
from tablewright.format.schema import Schema
from tablewright.format.transaction import Append, Delete, Merge, Operation, Transaction, Update, UpdateMode
from tablewright.snapshot.files import write_deletion_vector
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.affected import AffectedRows
from tablewright.transaction.crossing import Crossing, NotFollowed
from tablewright.transaction.translate import Translated, translate


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def base(request: pytest.FixtureRequest) -> Snapshot:
    return sixteen_rows(stable=request.param)


def hiding(base: Snapshot, id: int, *rows: int) -> Fragment:
    fragment = base.fragments.by_id(id)
    union = (base.deletion_vector(fragment) or RowSet()) | RowSet.of(rows)
    file, _ = write_deletion_vector(
        base.world.store, id, union, base.version, base.world.ids.u64(), DeletionFileType.BITMAP
    )
    return fragment.with_deletion(file)


def translated(base: Snapshot, operation: Operation, affected: dict[int, list[int]], crossing: Crossing) -> Translated:
    transaction = Transaction(read_version=base.version, uuid=str(base.world.ids.uuid()), operation=operation)
    rows = AffectedRows({id: RowSet.of(some) for id, some in affected.items()}, frozenset({0}))
    return translate(base.world, transaction, rows, crossing)


def new_ids(crossing: Crossing) -> list[int]:
    return [id for id in crossing.after.fragments.ids.tolist() if not crossing.before.fragments.has(id)]


def files(base: Snapshot) -> set[str]:
    return {info.path for folder in ("data/", "_deletions/") for info in base.world.store.list(folder)}


def test_rows_are_hidden_at_their_new_addresses(base: Snapshot) -> None:
    ours = Delete(updated_fragments=(hiding(base, 1, 0, 3), hiding(base, 2, 2), hiding(base, 3, 1)))
    crossing = crossed(base, [[0, 1], [3]], rows_per_file=5)
    known = files(base)
    made = translated(base, ours, {1: [0, 3], 2: [2], 3: [1]}, crossing)
    first, second, third = new_ids(crossing)
    operation = made.transaction.operation
    assert isinstance(operation, Delete)
    assert [fragment.id for fragment in operation.updated_fragments] == [2, first, third]  # the second is empty now
    assert operation.deleted_fragment_ids == (second,)
    assert operation.updated_fragments[0] == ours.updated_fragments[1]
    vectors = [crossing.after.deletion_vector(fragment) for fragment in operation.updated_fragments[1:]]
    assert vectors == [RowSet.of([3]), RowSet.of([1])]
    assert made.affected == AffectedRows(
        {2: RowSet.of([2]), first: RowSet.of([3]), second: RowSet.of([0]), third: RowSet.of([1])}, frozenset({0})
    )
    assert made.transaction.read_version == crossing.after.version
    assert files(base) - known == set(made.written)
    assert (made.rows, made.left, made.bytes_carried) == (3, (), 0)


def test_a_fragment_that_we_remove_counts_as_its_rows(base: Snapshot) -> None:
    crossing = crossed(base, [[0, 1, 2]], rows_per_file=100)
    made = translated(base, Delete(deleted_fragment_ids=(1, 3)), {1: [0, 1, 3], 3: [0, 1, 2, 3]}, crossing)
    operation, (new,) = made.transaction.operation, new_ids(crossing)
    assert isinstance(operation, Delete)
    assert operation.deleted_fragment_ids == (3,)
    assert [crossing.after.deletion_vector(each) for each in operation.updated_fragments] == [RowSet.of([3, 4, 5])]
    assert made.affected is not None and made.affected.of(new) == RowSet.of([3, 4, 5])


def test_deletions_of_the_rewrite_stay(base: Snapshot) -> None:
    planned = plan_compaction(base, [[0, 1]])
    tw.dataset(base.location.uri).delete("id = 2")
    crossing = crossing_to(planned.commit())
    current = crossing.before.fragments.by_id(0)
    union = RowSet.of([0, 1, 2])
    file, _ = write_deletion_vector(base.world.store, 0, union, 3, 99, DeletionFileType.BITMAP)
    made = translated(base, Delete(updated_fragments=(current.with_deletion(file),)), {0: [0]}, crossing)
    operation, (new,) = made.transaction.operation, new_ids(crossing)
    assert isinstance(operation, Delete)
    assert [crossing.after.deletion_vector(each) for each in operation.updated_fragments] == [RowSet.of([0, 1])]
    theirs = crossing.after.fragments.by_id(new)
    assert theirs.deletion is not None
    assert deletion_path(new, theirs.deletion) not in made.written, "it is theirs, and must never be removed"


def test_columns_are_carried_and_offsets_follow(base: Snapshot) -> None:
    planned = plan_compaction(base, [[0, 1]])
    tw.dataset(base.location.uri).delete("id = 7")
    crossing = crossing_to(planned.commit())
    schema = base.schema.project_ids([1])
    batch = pa.record_batch([pa.array(["a", "-", "c", "d"])], names=["s"])
    file, _ = write_data_file(base.world, schema, [batch], "2.2")
    patched = crossing.before.fragments.by_id(0).with_column_file(file)
    ours = Update(
        updated_fragments=(patched,),
        fields_modified=(1,),
        update_mode=UpdateMode.REWRITE_COLUMNS,
        updated_fragment_offsets={0: RowSet.of([0, 1, 3])},  # row 1 is deleted, and takes its neighbours' version
    )
    made = translated(base, ours, {0: [0, 3]}, crossing)
    operation, (new,) = made.transaction.operation, new_ids(crossing)
    assert isinstance(operation, Update)
    (fragment,) = operation.updated_fragments
    theirs = crossing.after.fragments.by_id(new)
    assert (fragment.id, fragment.deletion) == (new, theirs.deletion), "the deletion of row 7 stays"
    assert fragment.files[-1].fields == (1,)
    assert operation.updated_fragment_offsets == {new: RowSet.of([0, 2])}
    assert made.written == (data_path(fragment.files[-1].path),), "and nothing of theirs"
    assert made.left == (data_path(file.path),)
    assert made.bytes_carried == fragment.files[-1].file_size_bytes > 0


def test_a_merge_has_all_fragments(base: Snapshot) -> None:
    schema = Schema.from_arrow(pa.schema([*base.schema.to_arrow(), ("new", pa.int32())]))
    wanted = schema.project_ids([2])
    grown = []
    for fragment in base.fragments:
        batch = pa.record_batch([pa.array(range(4), pa.int32())], names=["new"])
        grown.append(fragment.with_column_file(write_data_file(base.world, wanted, [batch], "2.2")[0]))
    crossing = crossed(base, [[1, 2]])
    made = translated(base, Merge(fragments=tuple(grown), schema=schema, preserves_nullability=True), {}, crossing)
    operation = made.transaction.operation
    assert isinstance(operation, Merge)
    assert [each.id for each in operation.fragments] == crossing.after.fragments.ids.tolist()
    assert [each for each in operation.fragments if each.id in (0, 3)] == [grown[0], grown[3]]
    assert all(2 in each.live_fields for each in operation.fragments)
    assert len(made.left) == len(made.written) == 2


def test_what_touches_nothing_of_it_stays(base: Snapshot) -> None:
    crossing = crossed(base, [[0, 1]])
    for operation in (Delete(updated_fragments=(hiding(base, 2, 1),)), Append(fragments=())):
        made = translated(base, operation, {2: [1]}, crossing)
        assert made.transaction.operation == operation
        assert made.transaction.read_version == crossing.after.version
        assert (made.rows, made.written, made.left) == (0, (), ())


def test_rows_that_differ_end_it_and_leave_nothing(base: Snapshot) -> None:
    ours = Delete(updated_fragments=(hiding(base, 0, 0),))
    crossing = crossed(base, [[0, 1]], reorder=True)
    known = files(base)
    with pytest.raises(NotFollowed):
        translated(base, ours, {0: [0]}, crossing)
    assert files(base) == known


def test_affected_rows_that_are_gone_end_it(base: Snapshot) -> None:
    ours = Delete(updated_fragments=(hiding(base, 0, 0),))
    planned = plan_compaction(base, [[0, 1]])
    tw.dataset(base.location.uri).delete("id = 2")
    crossing = crossing_to(planned.commit())
    known = files(base)
    moved = replace(ours, updated_fragments=(hiding(crossing.before, 0, 0),))
    with pytest.raises(NotFollowed, match="deleted in fragment"):
        translated(base, moved, {0: [0, 2]}, crossing)
    assert len(files(base) - known) == 1, "only the file of the transaction itself"
