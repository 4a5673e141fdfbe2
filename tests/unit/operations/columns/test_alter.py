"""Alterations of a schema: names, nullability, types."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.operations.columns.tables import small_table

import tablewright as tw
from tablewright.format.schema import Schema
from tablewright.operations.columns.alter import Alter, Alteration, alter_schema
from tablewright.operations.columns.schema import InvalidColumns


def _ids(schema: Schema) -> list[tuple[int, int, str, str]]:
    return [(field.id, field.parent_id, field.name, field.logical_type) for field in schema.fields]


def test_casts_get_new_ids_in_the_old_place(tmp_path: Path) -> None:
    snapshot = small_table(tmp_path)
    alterations = (Alteration(path="s.p", data_type=pa.int8()), Alteration(path="id", name="key", data_type=pa.int32()))
    altered = alter_schema(snapshot.manifest, alterations)
    assert _ids(altered.after) == [
        (5, -1, "key", "int32"),
        (1, -1, "s", "struct"),
        (4, 1, "p", "int8"),
        (3, 1, "q", "string"),
    ]
    assert set(altered.casts) == {(1, 1), (0, 5)}
    plan = Alter(alterations).plan(snapshot)
    assert [field.id for field in plan.written.fields] == [5, 1, 4, 3]
    assert plan.reads.names == ("id", "s")


def test_one_name_and_one_nullability_may_come_apart(tmp_path: Path) -> None:
    manifest = small_table(tmp_path).manifest
    both = [Alteration(path="id", name="key"), Alteration(path="id", nullable=False)]
    altered = alter_schema(manifest, both)
    assert altered.after.names == ("key", "s") and altered.made_strict == (0,)
    with pytest.raises(InvalidColumns, match="twice"):
        alter_schema(manifest, [*both, Alteration(path="id", name="again")])
    lists = tw.write_dataset({"l": [[1]]}, "memory://altered-twice")._snapshot.manifest
    below = [Alteration(path="l", data_type=pa.large_list(pa.int64())), Alteration(path="l.item", name="x")]
    with pytest.raises(InvalidColumns, match="twice"):
        alter_schema(lists, below)


def test_a_cast_keeps_metadata(tmp_path: Path) -> None:
    key = {"lance-schema:unenforced-primary-key": "true"}
    schema = pa.schema([pa.field("id", pa.int32(), nullable=False, metadata=key)])
    snapshot = small_table(tmp_path, pa.table({"id": pa.array([1], pa.int32())}, schema=schema))
    after = alter_schema(snapshot.manifest, [Alteration(path="id", data_type=pa.int64())]).after
    assert after.fields[0].unenforced_primary_key and after.fields[0].metadata == {
        k: v.encode() for k, v in key.items()
    }
    with pytest.raises(InvalidColumns, match="Primary key"):
        alter_schema(snapshot.manifest, [Alteration(path="id", nullable=True)])
