"""The schema with its field ids, as pylance shows it."""

from __future__ import annotations

import pyarrow as pa

from tablewright.api.schema import LanceSchema

ARROW = pa.schema({"a": pa.int64(), "st": pa.struct({"x": pa.int8(), "y.z": pa.string()})}, metadata={"k": "v"})


def test_fields_by_path_and_below_each_other() -> None:
    schema = LanceSchema.from_pyarrow(ARROW)
    assert [(field.name(), field.id()) for field in schema.fields()] == [("a", 0), ("st", 1)]
    struct = schema.fields()[1]
    assert [(field.name(), field.id()) for field in struct.children()] == [("x", 2), ("y.z", 3)]
    inner = schema.field("st.`y.z`")
    assert inner is not None and (inner.id(), inner.to_pyarrow()) == (3, pa.field("y.z", pa.string()))
    assert schema.field("nope") is None and schema.field("st.") is None
    assert struct.to_pyarrow() == ARROW.field("st")
    assert schema.to_pyarrow().equals(ARROW, check_metadata=True)
