"""New columns in the schema: ids above all that files hold, members of structs, what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.operations.columns.tables import small_table

from tablewright.format.schema import Schema
from tablewright.operations.columns.add import Nulls
from tablewright.operations.columns.schema import InvalidColumns, add_to_schema


def _ids(schema: Schema) -> list[tuple[int, int, str, str]]:
    return [(field.id, field.parent_id, field.name, field.logical_type) for field in schema.fields]


def test_new_columns_are_numbered_behind_all_that_files_hold(tmp_path: Path) -> None:
    snapshot = small_table(tmp_path)
    incoming = pa.schema({"n": pa.list_(pa.int8()), "m": pa.struct({"x": pa.int8()})})
    added = add_to_schema(snapshot.manifest, incoming)
    assert _ids(added.new) == [
        (4, -1, "n", "list"),
        (5, 4, "item", "int8"),
        (6, -1, "m", "struct"),
        (7, 6, "x", "int8"),
    ]
    assert added.after.fields == (*snapshot.schema.fields, *added.new.fields)
    dropped = replace(snapshot.manifest, schema=snapshot.schema.project_ids([0]))
    assert add_to_schema(dropped, pa.schema({"n": pa.int8()})).new.fields[0].id == 4


def test_members_join_their_struct(tmp_path: Path) -> None:
    snapshot = small_table(tmp_path)
    added = add_to_schema(snapshot.manifest, pa.schema({"s": pa.struct({"w": pa.int8()}), "z": pa.int8()}))
    assert _ids(added.after)[1:] == [
        (1, -1, "s", "struct"),
        (2, 1, "p", "int64"),
        (3, 1, "q", "string"),
        (4, 1, "w", "int8"),
        (5, -1, "z", "int8"),
    ]
    assert added.grown == (1,)


@pytest.mark.parametrize(
    ("incoming", "message"),
    [
        (pa.schema([]), "no columns"),
        (pa.schema({"id": pa.int64()}), "already exists"),
        (pa.schema({"id": pa.int8()}), "Type conflicts"),
        (pa.schema({"s": pa.struct({"p": pa.int64()})}), "already exists"),
        (pa.schema({"s": pa.int64()}), "already exists"),
        (pa.schema({"_rowid": pa.int64()}), "reserved"),
        (pa.schema({"": pa.int64()}), "read back"),
        (pa.schema({"a`b": pa.int64()}), "read back"),
        (pa.schema({"a.b": pa.int64()}), "cannot contain"),
        (pa.schema([pa.field("x", pa.int8()), pa.field("x", pa.int8())]), "Duplicate"),
        (pa.schema({"x": pa.list_(pa.string(), 2)}), "fixed-size list"),
        (pa.schema({"x": pa.month_day_nano_interval()}), "x"),
    ],
    ids=range(12),
)
def test_refused_columns(tmp_path: Path, incoming: pa.Schema, message: str) -> None:
    with pytest.raises(InvalidColumns, match=message) as raised:
        Nulls(incoming).plan(small_table(tmp_path))
    assert isinstance(raised.value, ValueError) and isinstance(raised.value, OSError)
