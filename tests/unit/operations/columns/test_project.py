"""Columns and members that are dropped."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest
from tablewright.format.schema import Schema
from tablewright.operations.columns.project import plan_drop


def _ids(schema: Schema) -> list[tuple[int, int, str, str]]:
    return [(field.id, field.parent_id, field.name, field.logical_type) for field in schema.fields]


def test_a_parent_goes_with_its_last_member() -> None:
    rows = {
        "id": [1],
        "s": [{"p": 1, "q": {"z": 1}}],
        "l": [[1]],
        "m": pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8())),
    }
    snapshot = tw.write_dataset(rows, "memory://drop-parents")._snapshot
    assert _ids(plan_drop(snapshot, ["s.q.z"]).after)[1:3] == [(1, -1, "s", "struct"), (2, 1, "p", "int64")]
    assert plan_drop(snapshot, ["s.q.z", "s.p", "l.item"]).after.names == ("id", "m")
    for paths in (["id", "s", "l", "m"], ["nope"], ["ID"], ["m.entries.key"]):
        with pytest.raises(InvalidRequest):
            plan_drop(snapshot, paths)
