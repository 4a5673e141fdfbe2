"""The conflict table, cell by cell."""

from __future__ import annotations

import uuid
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyroaring import BitMap

from tablewright.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment
from tablewright.format.index import IndexMetadata
from tablewright.format.manifest import BasePath
from tablewright.format.schema import Schema
from tablewright.format.transaction import (
    Append,
    Clone,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    DataReplacementGroup,
    Delete,
    KeyExistenceFilter,
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
    UnknownOperation,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
    UpdateMode,
)
from tablewright.transaction.conflicts import KINDS, MATRIX, RULES, Outcome, as_markdown, expected, judge, kinds_of

SCHEMA = Schema.from_arrow(pa.schema({"a": pa.int64(), "b": pa.int64()}))
FILE = DataFile(
    path="x.lance", fields=(0, 1), column_indices=(0, 1), file_major_version=2, file_minor_version=2, file_size_bytes=9
)


def fragment(id: int, deletion_id: int | None = None, file: DataFile = FILE) -> Fragment:
    deletion = None
    if deletion_id is not None:
        deletion = DeletionFile(file_type=DeletionFileType.BITMAP, read_version=1, id=deletion_id, num_deleted_rows=1)
    return Fragment(id=id, files=(file,), physical_rows=10, deletion=deletion)


def index(name: str, fields: tuple[int, ...], coverage: set[int] | None) -> IndexMetadata:
    bitmap = None if coverage is None else BitMap(coverage).serialize()
    return IndexMetadata(
        uuid=uuid.uuid5(uuid.NAMESPACE_OID, name), fields=fields, name=name, dataset_version=1, fragment_bitmap=bitmap
    )


def replacement(id: int, *fields: int) -> DataReplacement:
    new = replace(FILE, fields=fields, column_indices=tuple(range(len(fields))))
    return DataReplacement(replacements=(DataReplacementGroup(fragment_id=id, new_file=new),))


def config(**updates: MapUpdate) -> UpdateConfig:
    return UpdateConfig(**updates)


SAMPLES: dict[str, Operation] = {
    "Append": Append(fragments=(fragment(0),)),
    "Delete": Delete(updated_fragments=(fragment(1, 5),), deleted_fragment_ids=(), predicate="a = 1"),
    "UpdateRows": Update(updated_fragments=(fragment(1, 6),), new_fragments=(fragment(0),)),
    "UpdateColumns": Update(
        updated_fragments=(fragment(1),), fields_modified=(1,), update_mode=UpdateMode.REWRITE_COLUMNS
    ),
    "CreateIndex": CreateIndex(new_indices=(index("i", (0,), {1, 2}),), removed_indices=()),
    "Rewrite": Rewrite(groups=(RewriteGroup(old_fragments=(fragment(1),), new_fragments=(fragment(9),)),)),
    "MergeKeep": Merge(fragments=(fragment(1),), schema=SCHEMA, preserves_nullability=True),
    "MergeNull": Merge(fragments=(fragment(1),), schema=SCHEMA),
    "ProjectKeep": Project(schema=SCHEMA, preserves_nullability=True),
    "ProjectNull": Project(schema=SCHEMA),
    "DataReplacement": replacement(1, 0),
    "Config": config(config_updates=MapUpdate(entries={"k": "v"})),
    "SchemaMetadata": config(schema_metadata_updates=MapUpdate(entries={"k": "v"})),
    "FieldMetadata": UpdateConfig(field_metadata_updates={0: MapUpdate(entries={"k": "v"})}),
    "Overwrite": Overwrite(fragments=(), schema=SCHEMA, config_upsert_values={"k": "v"}),
    "Restore": Restore(version=1),
    "ReserveFragments": ReserveFragments(num_fragments=2),
    "UpdateBases": UpdateBases(new_bases=(BasePath(id=1, path="p"),)),
    "Clone": Clone(is_shallow=True, ref_version=1, ref_path="p"),
    "UpdateMemWalState": UpdateMemWalState(),
}
# What each rule says about the samples above, which all touch fragment 1, key k, column 0 and so on.
ON_SAMPLES = (
    dict.fromkeys("abceghstuv", Outcome.RETRY)
    | dict.fromkeys("fwxy", Outcome.REBASE)
    | {"d": Outcome.FINE, "k": Outcome.FINE, "m": Outcome.FINE, "z": Outcome.FINE}
)
ON_SAMPLES |= {"o": Outcome.FINE, "p": Outcome.FINE, "q": Outcome.FINE, "r": Outcome.INCOMPATIBLE}
ON_SAMPLES |= {"i": Outcome.INCOMPATIBLE, "j": Outcome.INCOMPATIBLE, "l": Outcome.INCOMPATIBLE, "n": Outcome.RETRY}
PLAIN = {".": Outcome.FINE, "R": Outcome.RETRY, "I": Outcome.INCOMPATIBLE}


def test_every_kind_has_a_row_a_column_and_a_sample() -> None:
    assert set(MATRIX) == set(KINDS) == set(SAMPLES)
    assert {cell for row in MATRIX.values() for cell in row.values()} <= set(RULES) | set(PLAIN)
    for kind, operation in SAMPLES.items():
        assert kinds_of(operation) == (kind,)


@pytest.mark.parametrize("ours", KINDS)
@pytest.mark.parametrize("theirs", KINDS)
def test_cell(ours: str, theirs: str) -> None:
    cell = MATRIX[ours][theirs]
    wanted = (PLAIN | ON_SAMPLES)[cell]
    if cell == "c" and ours.startswith("Merge"):  # it names no rows
        wanted = Outcome.REBASE
    assert judge(SAMPLES[ours], SAMPLES[theirs]).outcome == wanted


@pytest.mark.parametrize("kind", KINDS)
def test_what_we_do_not_know_is_a_conflict(kind: str) -> None:
    for unknown in (UnknownOperation(field_number=199, raw=b""), DataOverlay()):
        assert judge(SAMPLES[kind], unknown).outcome == Outcome.RETRY
        assert judge(unknown, SAMPLES[kind]).outcome == Outcome.RETRY


class TestRules:
    def test_a_disjoint_fragments_are_fine(self) -> None:
        other = Delete(updated_fragments=(fragment(2, 5),), deleted_fragment_ids=(3,), predicate="")
        assert judge(SAMPLES["Delete"], other).outcome == Outcome.FINE

    def test_a_common_fragment_rebases_with_affected_rows(self) -> None:
        verdict = judge(SAMPLES["Delete"], SAMPLES["UpdateRows"], has_affected_rows=True)
        assert (verdict.outcome, verdict.fragments) == (Outcome.REBASE, (1,))

    def test_a_whole_fragment_removed_by_either_is_retried(self) -> None:
        removes = Delete(updated_fragments=(), deleted_fragment_ids=(1,), predicate="")
        for ours, theirs in ((removes, SAMPLES["Delete"]), (SAMPLES["UpdateRows"], removes)):
            assert judge(ours, theirs, has_affected_rows=True).outcome == Outcome.RETRY

    def test_x_rows_that_move_lack_columns_that_were_added(self) -> None:
        update = SAMPLES["UpdateColumns"]
        assert isinstance(update, Update)
        mixed = replace(update, new_fragments=(fragment(0),))
        assert judge(mixed, SAMPLES["MergeKeep"], has_affected_rows=True).outcome == Outcome.RETRY

    def test_x_a_cast_column_that_we_rewrite_is_retried(self) -> None:
        cast = Merge(fragments=(fragment(1),), schema=SCHEMA.project_ids([0]))
        assert judge(SAMPLES["UpdateColumns"], cast, has_affected_rows=True).outcome == Outcome.RETRY

    def test_b_rewrite_of_other_fragments_is_fine(self) -> None:
        other = Rewrite(groups=(RewriteGroup(old_fragments=(fragment(2),), new_fragments=(fragment(9),)),))
        assert judge(SAMPLES["Delete"], other).outcome == judge(other, SAMPLES["Delete"]).outcome == Outcome.FINE

    def test_d_a_dropped_column_that_we_rewrite_is_retried(self) -> None:
        dropped = Project(schema=SCHEMA.project_ids([0]), preserves_nullability=True)
        assert judge(SAMPLES["UpdateColumns"], dropped).outcome == Outcome.RETRY

    def test_e_other_index_name_is_fine(self) -> None:
        other = CreateIndex(new_indices=(index("j", (0,), {1}),), removed_indices=())
        assert judge(SAMPLES["CreateIndex"], other).outcome == Outcome.FINE

    @pytest.mark.parametrize("kind", ["Delete", "UpdateRows", "UpdateColumns", "MergeKeep", "MergeNull"])
    def test_c_rewritten_fragments_are_followed(self, kind: str) -> None:
        verdict = judge(SAMPLES[kind], SAMPLES["Rewrite"], has_affected_rows=True)
        assert (verdict.outcome, verdict.fragments) == (Outcome.REBASE, (1,))
        assert judge(SAMPLES["Rewrite"], SAMPLES[kind], has_affected_rows=True).outcome == Outcome.RETRY
        removes = Delete(deleted_fragment_ids=(1,))
        assert judge(removes, SAMPLES["Rewrite"], has_affected_rows=True).outcome == Outcome.REBASE
        assert judge(removes, SAMPLES["Rewrite"]).outcome == Outcome.RETRY

    @pytest.mark.parametrize(
        ("coverage", "outcome"), [({2}, Outcome.FINE), ({1}, Outcome.REBASE), (None, Outcome.RETRY)]
    )
    def test_f_coverage_against_rewritten_fragments(self, coverage: set[int] | None, outcome: Outcome) -> None:
        create = CreateIndex(new_indices=(index("i", (0,), coverage),), removed_indices=())
        assert judge(create, SAMPLES["Rewrite"]).outcome == outcome
        assert judge(SAMPLES["Rewrite"], create).outcome == Outcome.FINE

    def test_f_an_index_that_was_rewritten_can_not_be_replaced(self) -> None:
        old = index("i", (0,), {2})
        renamed = RewrittenIndex(old_id=old.uuid, new_id=uuid.uuid5(uuid.NAMESPACE_OID, "new"))
        rewrite = replace(SAMPLES["Rewrite"], rewritten_indices=(renamed,))  # type: ignore[type-var]
        optimized = CreateIndex(new_indices=(index("i", (0,), {2, 3}),), removed_indices=(old,))
        assert judge(optimized, rewrite).outcome == Outcome.RETRY
        assert judge(optimized, SAMPLES["Rewrite"]).outcome == Outcome.FINE

    def test_g_replaced_column_without_index_is_fine(self) -> None:
        assert judge(SAMPLES["CreateIndex"], replacement(1, 1)).outcome == Outcome.FINE

    def test_h_other_column_or_other_fragment_is_fine(self) -> None:
        for other in (replacement(1, 1), replacement(2, 0)):
            assert judge(SAMPLES["DataReplacement"], other).outcome == Outcome.FINE

    def test_i_keys(self) -> None:
        other_key = config(config_updates=MapUpdate(entries={"x": None}))
        same_key_elsewhere = config(table_metadata_updates=MapUpdate(entries={"k": "v"}))
        replaces_all = config(config_updates=MapUpdate(entries={"x": "y"}, replace=True))
        assert judge(SAMPLES["Config"], other_key).outcome == Outcome.FINE
        assert judge(SAMPLES["Config"], same_key_elsewhere).outcome == Outcome.FINE
        assert judge(SAMPLES["Config"], replaces_all).outcome == Outcome.INCOMPATIBLE

    def test_r_field_metadata_of_different_fields_is_fine(self) -> None:
        ours = UpdateConfig(field_metadata_updates={0: MapUpdate(entries={"k": "v"})})
        theirs = UpdateConfig(field_metadata_updates={1: MapUpdate(entries={"k": "v"})})
        assert judge(ours, theirs).outcome == Outcome.FINE
        assert judge(ours, ours).outcome == Outcome.INCOMPATIBLE

    def test_j_overwrite_that_sets_no_config_is_fine(self) -> None:
        assert judge(Overwrite(fragments=(), schema=SCHEMA), SAMPLES["Config"]).outcome == Outcome.FINE

    def test_k_index_on_a_dropped_column_is_retried(self) -> None:
        dropped = Project(schema=SCHEMA.project_ids([1]), preserves_nullability=True)
        assert judge(SAMPLES["CreateIndex"], dropped).outcome == Outcome.RETRY

    def test_l_other_base_is_fine(self) -> None:
        other = UpdateBases(new_bases=(BasePath(id=2, path="q"),))
        assert judge(SAMPLES["UpdateBases"], other).outcome == Outcome.FINE

    def test_m_inserted_keys_against_new_rows_are_retried(self) -> None:
        upsert = Update(new_fragments=(fragment(0),), inserted_rows=KeyExistenceFilter(field_ids=(0,)))
        assert judge(upsert, SAMPLES["Append"]).outcome == Outcome.RETRY
        assert judge(upsert, SAMPLES["UpdateRows"]).outcome == Outcome.RETRY

    def test_o_a_removed_fragment_can_not_be_replaced(self) -> None:
        removes = Delete(updated_fragments=(), deleted_fragment_ids=(1,), predicate="")
        assert judge(SAMPLES["DataReplacement"], removes).outcome == Outcome.INCOMPATIBLE

    def test_p_a_rewritten_column_can_not_be_replaced(self) -> None:
        assert judge(replacement(1, 1), SAMPLES["UpdateColumns"]).outcome == Outcome.RETRY

    def test_q_a_dropped_column_can_not_be_replaced(self) -> None:
        dropped = Project(schema=SCHEMA.project_ids([1]), preserves_nullability=True)
        assert judge(SAMPLES["DataReplacement"], dropped).outcome == Outcome.INCOMPATIBLE

    def test_both_kinds_of_config_at_once_take_the_worse(self) -> None:
        both = UpdateConfig(
            config_updates=MapUpdate(entries={"x": "y"}), schema_metadata_updates=MapUpdate(entries={"s": "t"})
        )
        assert kinds_of(both) == ("SchemaMetadata", "Config")
        assert judge(both, SAMPLES["Overwrite"]).outcome == Outcome.INCOMPATIBLE
        assert judge(both, SAMPLES["Config"]).outcome == Outcome.FINE


@pytest.mark.parametrize("ours", ["Append", "Delete", "UpdateRows", "UpdateColumns", "MergeKeep", "MergeNull"])
@pytest.mark.parametrize("theirs", ["Append", "Delete", "UpdateRows", "UpdateColumns", "MergeKeep", "MergeNull"])
def test_every_pair_of_row_changes_says_what_comes_of_it(ours: str, theirs: str) -> None:
    far = expected(ours, theirs, "other fragments")
    near = expected(ours, theirs, "other rows")
    same = expected(ours, theirs, "same rows")
    assert far <= near <= same, "the closer they meet, the worse"
    if "Merge" not in ours + theirs:
        assert far == Outcome.FINE


def test_the_docs_print_the_same_table() -> None:
    text = as_markdown()
    assert all(f"| {kind} | " in text for kind in KINDS)
    assert all(f"**{letter}**" in text for letter in RULES)
    assert text in (Path(__file__).parents[3] / "docs/format/conflicts.md").read_text()
