"""The fold: each kind of operation on a small manifest, ids and lineage included."""

from __future__ import annotations

import uuid
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap

from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.format.fragment import TOMBSTONE, DataFile, DeletionFile, DeletionFileType, Fragment
from tablewright.format.index import IndexMetadata
from tablewright.format.manifest import BasePath, Manifest
from tablewright.format.manifest_problems import problems_of_manifest
from tablewright.format.row_ids import decode_row_ids, decode_versions
from tablewright.format.row_set import RowSet
from tablewright.format.schema import Schema
from tablewright.format.transaction import (
    Append,
    CreateIndex,
    DataReplacement,
    DataReplacementGroup,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Transaction,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
    UpdateMode,
)
from tablewright.transaction.apply import Creation, apply
from tablewright.transaction.lineage import RowIdSequence, encode_row_ids

SCHEMA = Schema.from_arrow(pa.schema({"a": pa.int64(), "b": pa.int64()}))


def data_file(name: str, *fields: int) -> DataFile:
    return DataFile(
        path=f"{name}.lance",
        fields=fields,
        column_indices=tuple(range(len(fields))),
        file_major_version=2,
        file_minor_version=2,
    )


def new_fragment(name: str, rows: int = 10, row_ids: list[int] | None = None) -> Fragment:
    ids = None if row_ids is None else encode_row_ids(RowIdSequence.from_values(np.array(row_ids, np.uint64)))
    return Fragment(id=0, files=(data_file(name, 0, 1),), physical_rows=rows, row_ids=ids)


def deletion(rows: int) -> DeletionFile:
    return DeletionFile(file_type=DeletionFileType.ARROW_ARRAY, read_version=1, id=77, num_deleted_rows=rows)


def index(name: str, kind: str, field: int, coverage: set[int], version: int = 0) -> IndexMetadata:
    return IndexMetadata(
        uuid=uuid.uuid5(uuid.NAMESPACE_OID, name),
        fields=(field,),
        name=name,
        dataset_version=1,
        fragment_bitmap=BitMap(coverage).serialize(),
        details_type_url=f"/lance.table.{kind}IndexDetails",
        index_version=version,
    )


def step(manifest: Manifest | None, operation: Operation, **more: object) -> Manifest:
    read_version = 0 if manifest is None else manifest.version
    transaction = Transaction(read_version=read_version, uuid="u", operation=operation)
    after = apply(manifest, transaction, timestamp_ns=5, transaction_file="f.txn", **more)  # type: ignore[arg-type]
    assert problems_of_manifest(after) == ()
    assert after.version == read_version + 1
    return after


def created(stable: bool, *fragments: Fragment) -> Manifest:
    return step(
        None, Overwrite(fragments=fragments, schema=SCHEMA), creation=Creation(stable_row_ids=stable, config={"c": "d"})
    )


def ids_of(manifest: Manifest, fragment: int) -> list[int]:
    data = manifest.fragments.by_id(fragment).row_ids
    assert data is not None
    return [int(id) for id in decode_row_ids(data, "test").to_numpy()]


def versions_of(data: bytes | None) -> list[int]:
    assert data is not None
    return [int(version) for version in decode_versions(data, "test").to_numpy()]


def covered(manifest: Manifest) -> dict[str, set[int]]:
    return {index.name: set(index.coverage or ()) for index in manifest.indices}


class TestCreate:
    def test_ids_begin_at_zero_and_lineage_at_version_one(self) -> None:
        made = created(True, new_fragment("x", 3), new_fragment("y", 2))
        assert (list(made.fragments.ids), made.max_fragment_id, made.next_row_id) == ([0, 1], 1, 5)
        assert (ids_of(made, 0), ids_of(made, 1)) == ([0, 1, 2], [3, 4])
        assert versions_of(made.fragments[1].created_at) == [1, 1]

    def test_an_empty_table_never_had_a_fragment(self) -> None:
        made = created(False)
        assert (made.max_fragment_id, made.config, made.writer and made.writer.library) == (
            None,
            {"c": "d"},
            "tablewright",
        )

    def test_only_an_overwrite_begins_a_table(self) -> None:
        with pytest.raises(InvalidRequest, match="there is no table yet"):
            step(None, Append(fragments=()))

    def test_lineage_given_to_a_table_without_it_is_dropped(self) -> None:
        made = created(False, new_fragment("x", 3, [7, 8, 9]))
        assert made.fragments[0].row_ids is None


class TestAppendAndOverwrite:
    def test_append_takes_the_next_ids(self) -> None:
        after = step(created(True, new_fragment("x", 3)), Append(fragments=(new_fragment("y", 2),)))
        assert (list(after.fragments.ids), ids_of(after, 1), after.next_row_id) == ([0, 1], [3, 4], 5)
        assert versions_of(after.fragments[1].last_updated_at) == [2, 2]

    def test_overwrite_goes_on_counting_and_drops_indices(self) -> None:
        before = replace(created(True, new_fragment("x", 3)), indices=(index("i", "Bitmap", 0, {0}),))
        after = step(
            before, Overwrite(fragments=(new_fragment("y", 2),), schema=SCHEMA, config_upsert_values={"e": "f"})
        )
        assert (list(after.fragments.ids), ids_of(after, 1)) == ([1], [3, 4])
        assert (after.indices, after.config) == ((), {"c": "d", "e": "f"})

    def test_reserved_ids_are_skipped(self) -> None:
        reserved = step(created(False, new_fragment("x")), ReserveFragments(num_fragments=3))
        assert list(step(reserved, Append(fragments=(new_fragment("y"),))).fragments.ids) == [0, 4]


class TestDelete:
    def test_deletion_file_is_set_and_emptied_fragments_go(self) -> None:
        before = replace(
            created(False, new_fragment("x"), new_fragment("y")), indices=(index("i", "BTree", 0, {0, 1}),)
        )
        touched = replace(before.fragments[0], deletion=deletion(4))
        after = step(before, Delete(updated_fragments=(touched,), deleted_fragment_ids=(1,), predicate=""))
        assert (list(after.fragments.ids), after.fragments.total_live_rows) == ([0], 6)
        assert covered(after) == {"i": {0, 1}}

    def test_what_the_table_has_is_kept_beside_the_deletion(self) -> None:
        before = created(False, new_fragment("x"))
        stale = replace(before.fragments[0], files=(data_file("older", 0),), deletion=deletion(1))
        after = step(before, Delete(updated_fragments=(stale,), deleted_fragment_ids=(), predicate=""))
        assert after.fragments[0].files == before.fragments[0].files

    def test_unknown_fragment_is_refused(self) -> None:
        with pytest.raises(InvalidRequest, match=r"fragments \[9\]"):
            step(created(False), Delete(updated_fragments=(), deleted_fragment_ids=(9,), predicate=""))


class TestUpdateRows:
    def moved(self, **more: object) -> Manifest:
        before = step(created(True, new_fragment("x", 4)), Append(fragments=(new_fragment("y", 2),)))
        before = replace(
            before,
            indices=(
                index("unchanged", "Bitmap", 0, {0, 1}),
                index("changed", "Bitmap", 1, {0, 1}),
                index("partial", "Bitmap", 0, {0}),
                index("by-address", "BTree", 0, {0, 1}, version=1),
            ),
        )
        old = [replace(before.fragments[0], deletion=deletion(1)), replace(before.fragments[1], deletion=deletion(1))]
        update = Update(updated_fragments=tuple(old), fields_for_preserving_frag_bitmap=(1,), **more)  # type: ignore[arg-type]
        return step(before, update)

    def test_moved_rows_keep_id_and_creation(self) -> None:
        after = self.moved(new_fragments=(new_fragment("z", 2, [2, 5]),))
        new = after.fragments.by_id(2)
        assert ids_of(after, 2) == [2, 5]
        assert (versions_of(new.created_at), versions_of(new.last_updated_at)) == ([1, 2], [3, 3])
        assert after.next_row_id == 6

    def test_inserted_rows_come_after_moved_ones(self) -> None:
        after = self.moved(new_fragments=(new_fragment("z", 3, [2]),))
        assert (ids_of(after, 2), after.next_row_id) == ([2, 6, 7], 8)
        assert versions_of(after.fragments.by_id(2).created_at) == [1, 3, 3]

    def test_indices_follow_moved_rows_where_they_may(self) -> None:
        after = self.moved(new_fragments=(new_fragment("z", 2, [2, 5]),))
        expected = {"unchanged": {0, 1, 2}, "changed": {0, 1}, "partial": {0}, "by-address": {0, 1}}
        assert covered(after) == expected

    def test_a_fragment_with_inserted_rows_is_not_covered(self) -> None:
        assert covered(self.moved(new_fragments=(new_fragment("z", 3, [2]),)))["unchanged"] == {0, 1}

    def test_a_row_id_from_nowhere_is_refused(self) -> None:
        with pytest.raises(InvalidRequest, match="Row id 99"):
            self.moved(new_fragments=(new_fragment("z", 1, [99]),))

    def test_more_ids_than_rows_are_refused(self) -> None:
        with pytest.raises(InvalidRequest, match="carries 2 row ids"):
            self.moved(new_fragments=(new_fragment("z", 1, [2, 5]),))


def test_update_columns_tombstones_and_patches_lineage() -> None:
    before = created(True, new_fragment("x", 4))
    before = replace(before, indices=(index("a", "Bitmap", 0, {0}), index("b", "Bitmap", 1, {0})))
    rewritten = replace(
        before.fragments[0], files=(data_file("x", 0, TOMBSTONE), data_file("gone", TOMBSTONE), data_file("new", 1))
    )
    update = Update(
        updated_fragments=(rewritten,),
        fields_modified=(1,),
        update_mode=UpdateMode.REWRITE_COLUMNS,
        updated_fragment_offsets={0: RowSet.of([1, 2])},
    )
    after = step(before, update)
    assert [file.path for file in after.fragments[0].files] == ["x.lance", "new.lance"]
    assert versions_of(after.fragments[0].last_updated_at) == [1, 2, 2, 1]
    assert versions_of(after.fragments[0].created_at) == [1, 1, 1, 1]
    assert covered(after) == {"a": {0}, "b": set()}


def test_an_update_may_move_rows_of_one_fragment_and_rewrite_columns_of_another() -> None:
    before = step(created(True, new_fragment("x", 4)), Append(fragments=(new_fragment("y", 2),)))
    entries = (index("a", "Bitmap", 0, {0}), index("b", "Bitmap", 1, {0, 1}), index("far", "Bitmap", 0, {1}))
    before = replace(before, indices=entries)
    patched = before.fragments[1].with_column_file(data_file("new", 1))
    update = Update(
        updated_fragments=(replace(before.fragments[0], deletion=deletion(1)), patched),
        new_fragments=(new_fragment("z", 1, [2]),),
        fields_modified=(1,),
        fields_for_preserving_frag_bitmap=(1,),
        update_mode=UpdateMode.REWRITE_COLUMNS,
        updated_fragment_offsets={1: RowSet.of([1])},
    )
    after = step(before, update)
    assert (ids_of(after, 0), ids_of(after, 1), ids_of(after, 2)) == ([0, 1, 2, 3], [4, 5], [2])
    assert versions_of(after.fragments[1].last_updated_at) == [2, 3]
    assert versions_of(after.fragments[2].created_at) == [1]
    assert after.fragments[0].files == before.fragments[0].files
    assert covered(after) == {"a": {0, 2}, "b": {0}, "far": {1}}


class TestRewrite:
    def rewrite(self, stable: bool, **more: object) -> Manifest:
        before = created(stable, new_fragment("x", 4), new_fragment("y", 4), new_fragment("w", 4))
        before = step(before, ReserveFragments(num_fragments=1))
        before = replace(
            before,
            indices=(
                index("ids", "Bitmap", 0, {0, 1, 2}),
                index("zones", "ZoneMap", 0, {0, 1, 2}),
                index("outside", "Bitmap", 1, {2}),
            ),
        )
        new = replace(new_fragment("z", 8, list(range(8)) if stable else None), id=3)
        group = RewriteGroup(old_fragments=(before.fragments[0], before.fragments[1]), new_fragments=(new,))
        return step(before, Rewrite(groups=(group,), **more))  # type: ignore[arg-type]

    def test_stable_indices_of_row_ids_follow(self) -> None:
        after = self.rewrite(True)
        assert (list(after.fragments.ids), after.max_fragment_id) == ([2, 3], 3)
        assert covered(after) == {"ids": {2, 3}, "zones": {2}, "outside": {2}}

    def test_address_indices_follow_only_if_rewritten(self) -> None:
        old = index("ids", "Bitmap", 0, set()).uuid
        new_id = uuid.uuid4()
        rewritten = RewrittenIndex(old_id=old, new_id=new_id, new_index_version=3)
        after = self.rewrite(False, rewritten_indices=(rewritten,))
        assert covered(after) == {"ids": {2, 3}, "zones": {0, 1, 2}, "outside": {2}}
        assert (after.indices[0].uuid, after.indices[0].index_version) == (new_id, 3)

    def test_a_group_that_an_index_covers_in_part_leaves_its_coverage(self) -> None:
        before = created(True, new_fragment("x", 1), new_fragment("y", 1))
        before = replace(before, indices=(index("ids", "Bitmap", 0, {0}),))
        group = RewriteGroup(
            old_fragments=tuple(before.fragments), new_fragments=(replace(new_fragment("z", 2, [0, 1]), id=2),)
        )
        after = step(before, Rewrite(groups=(group,)))
        assert covered(after) == {"ids": set()}

    def test_ids_that_were_not_reserved_are_given(self) -> None:
        before = created(False, new_fragment("x", 2), new_fragment("y", 1))
        new = (new_fragment("z", 1), replace(new_fragment("w", 1), id=1))
        after = step(before, Rewrite(groups=(RewriteGroup(old_fragments=(before.fragments[0],), new_fragments=new),)))
        assert (list(after.fragments.ids), after.max_fragment_id) == ([1, 2, 3], 3)

    @pytest.mark.parametrize("stable", [False, True])
    def test_rows_that_others_deleted_are_hidden(self, stable: bool) -> None:
        """The old fragment has lost rows since it was read: the group names it as it was."""
        read = created(stable, new_fragment("x", 4), new_fragment("y", 4))
        now = step(read, Delete(updated_fragments=(replace(read.fragments[0], deletion=deletion(3)),)))
        new = replace(new_fragment("z", 8, list(range(8)) if stable else None), id=2, deletion=deletion(3))
        after = step(now, Rewrite(groups=(RewriteGroup(old_fragments=tuple(read.fragments), new_fragments=(new,)),)))
        (fragment,) = after.fragments
        assert (fragment.physical_rows, fragment.live_rows) == (8, 5)
        assert (fragment.row_ids is not None) == stable

    def test_an_output_without_live_rows_is_absent_and_its_id_is_used_up(self) -> None:
        read = created(True, new_fragment("x", 4), new_fragment("y", 4))
        now = step(read, Delete(deleted_fragment_ids=(0,)))
        new = (
            replace(new_fragment("z", 4, [0, 1, 2, 3]), id=2, deletion=deletion(4)),
            replace(new_fragment("w", 4, [4, 5, 6, 7]), id=3),
        )
        after = step(now, Rewrite(groups=(RewriteGroup(old_fragments=tuple(read.fragments), new_fragments=new),)))
        assert (list(after.fragments.ids), after.max_fragment_id) == ([3], 3)
        all_gone = (new[0], replace(new[1], id=5, deletion=deletion(4)))
        empty = step(now, Delete(deleted_fragment_ids=(1,)))
        after = step(
            empty, Rewrite(groups=(RewriteGroup(old_fragments=tuple(read.fragments), new_fragments=all_gone),))
        )
        assert (list(after.fragments.ids), after.max_fragment_id) == ([], 5), "no later fragment takes its id"

    def test_an_old_fragment_that_vanished_has_no_rows(self) -> None:
        read = created(False, new_fragment("x", 4), new_fragment("y", 4))
        now = step(read, Delete(deleted_fragment_ids=(1,)))
        new = replace(new_fragment("z", 8), id=2, deletion=deletion(4))
        group = RewriteGroup(old_fragments=tuple(read.fragments), new_fragments=(new,))
        after = step(now, Rewrite(groups=(group,)))
        assert [(fragment.id, fragment.live_rows) for fragment in after.fragments] == [(2, 4)]

    @pytest.mark.parametrize("hidden", [None, 1, 3])
    def test_other_row_counts_are_refused(self, hidden: int | None) -> None:
        """A row would be lost, or come back."""
        read = created(False, new_fragment("x", 4), new_fragment("y", 4))
        now = step(read, Delete(updated_fragments=(replace(read.fragments[0], deletion=deletion(2)),)))
        new = replace(new_fragment("z", 8), id=2, deletion=None if hidden is None else deletion(hidden))
        group = RewriteGroup(old_fragments=tuple(read.fragments), new_fragments=(new,))
        with pytest.raises(InvalidRequest, match=r"which have 6 rows in version 2, by fragments with"):
            step(now, Rewrite(groups=(group,)))

    def test_row_ids_are_needed(self) -> None:
        before = created(True, new_fragment("x", 4))
        group = RewriteGroup(
            old_fragments=tuple(before.fragments), new_fragments=(replace(new_fragment("z", 4), id=1),)
        )
        with pytest.raises(InvalidRequest, match="must carry the row ids"):
            step(before, Rewrite(groups=(group,)))


class TestRefusals:
    """What no reader could read is not committed."""

    @pytest.mark.parametrize(
        ("fragment", "words"),
        [
            (replace(new_fragment("x"), files=()), "data files and rows"),
            (new_fragment("x", 0), "data files and rows"),
            (replace(new_fragment("x"), deletion=deletion(1)), "can't have a deletion file"),
        ],
    )
    def test_new_fragments(self, fragment: Fragment, words: str) -> None:
        with pytest.raises(InvalidRequest, match=words):
            step(created(False), Append(fragments=(fragment,)))

    def test_a_column_that_may_not_be_null_has_to_be_there(self) -> None:
        strict = Schema.from_arrow(pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.int64())]))
        only_b = Fragment(id=0, files=(data_file("x", 1),), physical_rows=1)
        with pytest.raises(InvalidRequest, match=r"lacks columns \['a'\]"):
            step(None, Overwrite(fragments=(only_b,), schema=strict))

    def test_a_merge_keeps_every_fragment_and_row(self) -> None:
        before = created(False, new_fragment("x"), new_fragment("y"))
        with pytest.raises(InvalidRequest, match="has to list every one"):
            step(before, Merge(fragments=(before.fragments[0],), schema=SCHEMA))
        shorter = replace(before.fragments[1], physical_rows=3)
        with pytest.raises(InvalidRequest, match="number of rows"):
            step(before, Merge(fragments=(before.fragments[0], shorter), schema=SCHEMA))

    def test_a_merged_column_that_may_not_be_null_needs_files(self) -> None:
        before = created(False, new_fragment("x"))
        fields = [("a", pa.int64()), ("b", pa.int64()), pa.field("c", pa.int64(), nullable=False)]
        with pytest.raises(InvalidRequest, match="'c' may not be null"):
            step(before, Merge(fragments=tuple(before.fragments), schema=Schema.from_arrow(pa.schema(fields))))

    @pytest.mark.parametrize("fields", [{}, {"a": pa.string(), "b": pa.int64()}])
    def test_types_stay_and_some_column_does(self, fields: dict[str, pa.DataType]) -> None:
        schema = Schema.from_arrow(pa.schema(fields))
        before = created(False, new_fragment("x"))
        for operation in (Project(schema=schema), Merge(fragments=tuple(before.fragments), schema=schema)):
            with pytest.raises(InvalidRequest):
                step(before, operation)


class TestSchemaChanges:
    def test_project_drops_files_and_indices_of_dropped_columns(self) -> None:
        two_files = Fragment(id=0, files=(data_file("a", 0), data_file("b", 1)), physical_rows=3)
        before = replace(created(False, two_files), indices=(index("a", "BTree", 0, {0}), index("b", "BTree", 1, {0})))
        after = step(before, Project(schema=SCHEMA.project_ids([0]), preserves_nullability=True))
        assert [file.path for file in after.fragments[0].files] == ["a.lance"]
        assert list(covered(after)) == ["a"]

    def test_merge_takes_the_fragments_as_given(self) -> None:
        before = created(False, new_fragment("x"))
        wider = Schema.from_arrow(pa.schema({"a": pa.int64(), "b": pa.int64(), "c": pa.string()}))
        added = replace(before.fragments[0], files=(*before.fragments[0].files, data_file("c", 2)))
        after = step(before, Merge(fragments=(added,), schema=wider))
        assert (after.schema.names, len(after.fragments[0].files)) == (("a", "b", "c"), 2)


class TestDataReplacement:
    def replaced(self, file: DataFile, stable: bool = True) -> Manifest:
        before = created(stable, Fragment(id=0, files=(data_file("a", 0), data_file("b", 1)), physical_rows=3))
        before = replace(before, indices=(index("a", "Bitmap", 0, {0}), index("b", "Bitmap", 1, {0})))
        return step(before, DataReplacement(replacements=(DataReplacementGroup(fragment_id=0, new_file=file),)))

    def test_the_file_with_the_same_fields_is_exchanged(self) -> None:
        after = self.replaced(data_file("new", 1))
        assert [file.path for file in after.fragments[0].files] == ["a.lance", "new.lance"]
        assert covered(after) == {"a": {0}, "b": set()}
        assert versions_of(after.fragments[0].last_updated_at) == [2, 2, 2]

    def test_a_column_without_a_file_gets_one(self) -> None:
        assert len(self.replaced(data_file("new", 2)).fragments[0].files) == 3

    def test_half_a_file_is_refused(self) -> None:
        with pytest.raises(InvalidRequest, match="no file with exactly"):
            self.replaced(data_file("new", 1, 2))


def test_restore_keeps_the_high_water_marks() -> None:
    first = created(True, new_fragment("x", 3))
    second = step(first, Append(fragments=(new_fragment("y", 2),)))
    third = step(second, UpdateConfig(config_updates=MapUpdate(entries={"c": None})))
    after = step(third, Restore(version=1), restored=first)
    assert (list(after.fragments.ids), after.config) == ([0], {"c": "d"})
    assert (after.max_fragment_id, after.next_row_id) == (1, 5)


def test_update_config_sets_removes_and_replaces() -> None:
    before = created(False)
    after = step(
        before,
        UpdateConfig(
            config_updates=MapUpdate(entries={"x": "y", "c": None}),
            table_metadata_updates=MapUpdate(entries={"t": "u"}),
            schema_metadata_updates=MapUpdate(entries={"s": "v"}, replace=True),
            field_metadata_updates={1: MapUpdate(entries={"f": "g"})},
        ),
    )
    assert (after.config, after.table_metadata, after.schema.metadata) == ({"x": "y"}, {"t": "u"}, {"s": b"v"})
    assert after.schema.by_id(1).metadata == {"f": b"g"}
    with pytest.raises(InvalidRequest, match=r"Field ids \[9\]"):
        step(before, UpdateConfig(field_metadata_updates={9: MapUpdate(entries={})}))


def test_indices_and_bases_are_added_and_removed() -> None:
    one, two = index("one", "BTree", 0, {0}), index("two", "BTree", 1, {0})
    before = replace(created(False, new_fragment("x")), indices=(one,))
    after = step(before, CreateIndex(new_indices=(two,), removed_indices=(one,)))
    assert list(covered(after)) == ["two"]
    assert step(after, UpdateBases(new_bases=(BasePath(id=1, path="p"),))).base_paths[0].path == "p"


def test_what_we_do_not_write_is_refused() -> None:
    with pytest.raises(UnsupportedFeature, match="UpdateMemWalState"):
        step(created(False), UpdateMemWalState())
