"""Columns of old data files in the form of the table's newest schema."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tablewright.errors import UnsupportedFeature
from tablewright.paimon.columns import match_columns
from tablewright.paimon.format.manifest import DataFile
from tablewright.paimon.format.schema import TableSchema
from tablewright.paimon.format.types import decode_field

FILE = DataFile(partition=b"", bucket=0, level=0, name="f.parquet", size=1, row_count=1, schema_id=0)


def schema(id: int, *fields: tuple[int, str, Any]) -> TableSchema:
    problems: list[str] = []
    decoded = tuple(decode_field({"id": n, "name": name, "type": kind}, problems, "x") for n, name, kind in fields)
    assert not problems
    return TableSchema(id=id, fields=decoded, partition_keys=(), primary_keys=(), options={})


def row(*fields: tuple[int, str, Any], null: str = "") -> dict[str, Any]:
    return {"type": f"ROW{null}", "fields": [{"id": n, "name": name, "type": kind} for n, name, kind in fields]}


def test_structs_change_inside() -> None:
    old = schema(0, (0, "s", row((1, "a", "INT"), (2, "gone", "STRING"), (3, "in", row((4, "x", "FLOAT"))))))
    new = schema(1, (0, "t", row((3, "inner", row((5, "y", "STRING"), (4, "x", "DOUBLE"))), (1, "a", "BIGINT"))))
    (source,) = match_columns(new, old, FILE, ["t"])
    stored = pa.array([{"a": 1, "gone": "g", "in": {"x": 0.5}}, None, {"a": None, "gone": None, "in": None}])
    stored = stored.cast(old.to_arrow().field(0).type)
    wanted = [{"inner": {"y": None, "x": 0.5}, "a": 1}, None, {"inner": None, "a": None}]
    for start in range(3):
        values = source.values(stored.slice(start), 3 - start)
        assert source.name == "s" and values.type == new.to_arrow().field(0).type
        assert values.to_pylist() == wanted[start:]


WIDER = [
    ("TINYINT", "BIGINT", [1, None]),
    ("INT", "DOUBLE", [1, None]),
    ("INT", "DECIMAL(12, 2)", [1]),
    ("DECIMAL(5, 2)", "DECIMAL(10, 3)", [Decimal("1.25")]),
    ("CHAR(3)", "STRING", ["abc"]),
    ("VARCHAR(3)", "VARCHAR(5)", ["abc"]),
    ("BINARY(2)", "BYTES", [b"ab"]),
    ("DATE", "TIMESTAMP(3)", [date(2024, 2, 29)]),
    ("TIMESTAMP(3)", "TIMESTAMP(6)", [5]),
    ("INT", "INT NOT NULL", [5]),
    ({"type": "ARRAY", "element": "INT NOT NULL"}, {"type": "ARRAY", "element": "INT"}, [[1]]),
]
NOT_WIDER: list[tuple[Any, Any]] = [
    ("BIGINT", "INT"),
    ("INT", "STRING"),
    ("STRING", "INT"),
    ("BIGINT", "DOUBLE"),
    ("DOUBLE", "FLOAT"),
    ("INT", "DECIMAL(11, 2)"),
    ("DECIMAL(5, 2)", "DECIMAL(5, 3)"),
    ("STRING", "VARCHAR(5)"),
    ("VARCHAR(6)", "VARCHAR(5)"),
    ("STRING", "BYTES"),
    ("TIMESTAMP(6)", "TIMESTAMP(3)"),
    ("TIMESTAMP(3)", "TIMESTAMP_LTZ(3)"),
    ("TIMESTAMP(3)", "DATE"),
    ({"type": "ARRAY", "element": "INT"}, {"type": "ARRAY", "element": "BIGINT"}),
    ({"type": "ARRAY", "element": row((1, "a", "INT"))}, {"type": "ARRAY", "element": row((1, "b", "INT"))}),
    ("INT", {"type": "ARRAY", "element": "INT"}),
    (row((1, "a", "BIGINT")), row((1, "a", "INT"))),
]


@pytest.mark.parametrize(("old", "new", "values"), WIDER)
def test_wider_types(old: Any, new: Any, values: list[Any]) -> None:
    before, after = schema(0, (0, "c", old)), schema(1, (0, "c", new))
    (source,) = match_columns(after, before, FILE, ["c"])
    stored = pa.array(values, before.to_arrow().field(0).type)
    got = source.values(stored, len(stored))
    assert got.type == after.to_arrow().field(0).type
    assert got.cast(stored.type).to_pylist() == stored.to_pylist()


@pytest.mark.parametrize(("old", "new"), NOT_WIDER)
def test_other_types_are_refused(old: Any, new: Any) -> None:
    with pytest.raises(UnsupportedFeature, match=r"Column c.* in schema 0"):
        match_columns(schema(1, (0, "c", new)), schema(0, (0, "c", old)), FILE, ["c"])


def test_files_with_some_columns() -> None:
    both = schema(0, (0, "a", "INT"), (1, "b", "STRING"))
    part = DataFile(
        partition=b"", bucket=0, level=0, name="f", size=1, row_count=1, schema_id=0, write_cols=("b", "_ROW_ID")
    )
    one, other = match_columns(both, both, part, ["a", "b"])
    assert (one.name, other.name) == (None, "b") and one.values(None, 2).to_pylist() == [None, None]
    assert match_columns(both, both, FILE, ["a", "b"])[0].name == "a"
