"""A nested column of several files: each has to hold it as what it is."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.data.assemble import FieldValues, assemble
from tablewright.data.layout import FileLayout, FileMap
from tablewright.errors import CorruptTable
from tablewright.format.schema import Schema

STRUCT, LIST = pa.struct({"a": pa.int64(), "b": pa.int64()}), pa.list_(pa.struct({"a": pa.int64(), "b": pa.int64()}))


def source(table: Schema, where: str, array: pa.Array) -> FieldValues:
    layout = FileLayout(schema=table, columns=())
    return FieldValues(array, FileMap(layout=layout, nodes={field.id: field.id for field in table.fields}), where)


@pytest.mark.parametrize(("kind", "value"), [(STRUCT, {"a": 1}), (LIST, [{"a": 1}])], ids=["struct", "list"])
def test_another_type_in_a_file_is_corrupt(kind: pa.DataType, value: object) -> None:
    table = Schema.from_arrow(pa.schema([pa.field("x", kind)]))
    inner = pa.struct({"a": pa.int64()})
    held = pa.array([value], inner if kind is STRUCT else pa.list_(inner))
    sources = [source(table, "good.lance", held), source(table, "bad.lance", pa.array([1]))]
    with pytest.raises(CorruptTable, match=r"bad\.lance.*is int64 there"):
        assemble(table, 0, kind, sources, 1)
