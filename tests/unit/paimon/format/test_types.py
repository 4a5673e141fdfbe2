"""Types as schema files spell them, by Java and by pypaimon."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tablewright.errors import UnsupportedFeature
from tablewright.paimon.format.types import decode_type

ROW = {"type": "ROW NOT NULL", "fields": [{"id": 4, "name": "a", "type": "INT NOT NULL", "description": "the a"}]}


@pytest.mark.parametrize(
    ("stored", "arrow", "text"),
    [
        ("INT", pa.int32(), "INT"),
        ("BIGINT NOT NULL", pa.int64(), "BIGINT NOT NULL"),
        ("DECIMAL", pa.decimal128(10, 0), "DECIMAL"),
        ("DECIMAL(7)", pa.decimal128(7, 0), "DECIMAL(7)"),
        ("DECIMAL(12,2) NOT NULL", pa.decimal128(12, 2), "DECIMAL(12, 2) NOT NULL"),
        ("VARCHAR(2147483647)", pa.string(), "VARCHAR(2147483647)"),
        ("CHAR(3)", pa.string(), "CHAR(3)"),
        ("VARBINARY(10)", pa.binary(), "VARBINARY(10)"),
        ("TIME(0)", pa.time32("ms"), "TIME(0)"),
        ("TIMESTAMP(0)", pa.timestamp("s"), "TIMESTAMP(0)"),
        ("TIMESTAMP(1)", pa.timestamp("ms"), "TIMESTAMP(1)"),
        ("TIMESTAMP", pa.timestamp("us"), "TIMESTAMP"),
        ("TIMESTAMP(9)", pa.timestamp("ns"), "TIMESTAMP(9)"),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", pa.timestamp("ms", "UTC"), "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        ("TIMESTAMP_LTZ(6) NOT NULL", pa.timestamp("us", "UTC"), "TIMESTAMP(6) WITH LOCAL TIME ZONE NOT NULL"),
        ({"type": "ARRAY", "element": "INT"}, pa.list_(pa.int32()), "ARRAY<INT>"),
        ({"type": "VECTOR", "element": "FLOAT", "length": 3}, pa.list_(pa.float32(), 3), "VECTOR<FLOAT>"),
        (
            {"type": "MAP", "key": "STRING NOT NULL", "value": "INT"},
            pa.map_(pa.string(), pa.int32()),
            "MAP<STRING NOT NULL, INT>",
        ),
        (
            {"type": "MULTISET NOT NULL", "element": "STRING"},
            pa.map_(pa.string(), pa.field("value", pa.int32(), nullable=False)),
            "MULTISET<STRING, INT NOT NULL> NOT NULL",
        ),
        (ROW, pa.struct([pa.field("a", pa.int32(), nullable=False)]), "ROW<a INT NOT NULL> NOT NULL"),
    ],
)
def test_known_types(stored: Any, arrow: pa.DataType, text: str) -> None:
    problems: list[str] = []
    found = decode_type(stored, problems, "field x")
    assert not problems and found.to_arrow() == arrow and str(found) == text
    assert found.nullable == (not text.endswith("NOT NULL"))
    found.check_readable("x")


@pytest.mark.parametrize(
    "stored",
    [
        None,
        7,
        "",
        "INTERVAL",
        "INT(3)",
        "DECIMAL(39)",
        "DECIMAL(5, 6)",
        "DECIMAL(1,2,3)",
        "TIMESTAMP(10)",
        "INT WITH LOCAL TIME ZONE",
        "ARRAY",
        {"type": "ARRAY"},
        {"element": "INT"},
        {"type": "MAP", "key": "INT"},
        {"type": "VECTOR", "element": "FLOAT"},
        {"type": "VECTOR", "element": "FLOAT", "length": 0},
        {"type": "ROW"},
        {"type": "ROW", "fields": [{"id": "x", "name": "a", "type": "INT"}]},
        {"type": "ROW", "fields": ["a"]},
    ],
)
def test_what_is_no_type(stored: Any) -> None:
    problems: list[str] = []
    decode_type(stored, problems, "field x")
    assert problems and all(problem.startswith("field x") for problem in problems)


def test_unreadable_types_are_named() -> None:
    blob = {"type": "ARRAY", "element": {"type": "ROW", "fields": [{"id": 1, "name": "b", "type": "BLOB"}]}}
    for stored, name in (("VARIANT", "VARIANT"), (blob, "BLOB")):
        with pytest.raises(UnsupportedFeature, match=f"Column x is of type {name}"):
            decode_type(stored, [], "field x").check_readable("x")
