"""Values for rows that nobody asked a function about."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tablewright.operations.columns.fill import Filler, placeholder

KINDS = [
    pa.bool_(),
    pa.uint64(),
    pa.float16(),
    pa.string(),
    pa.large_binary(),
    pa.binary(4),
    pa.date64(),
    pa.timestamp("us", "UTC"),
    pa.time64("ns"),
    pa.duration("s"),
    pa.decimal128(3, 2),
    pa.decimal256(40, 3),
    pa.dictionary(pa.int8(), pa.string()),
    pa.large_list(pa.string()),
    pa.list_(pa.float32(), 3),
    pa.struct([pa.field("a", pa.int8(), nullable=False), pa.field("l", pa.list_(pa.int8()))]),
    pa.map_(pa.string(), pa.int8()),
    pa.uuid(),
]


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_fillers(kind: pa.DataType, nullable: bool) -> None:
    schema = pa.schema([pa.field("x", kind, nullable)])
    filler = Filler(schema, "2.2")
    values = pa.RecordBatch.from_arrays([pa.concat_arrays([placeholder(kind)] * 2)], schema=schema)
    wide = filler.widen(values, np.array([11, 13]), 10, 15)
    wide.validate(full=True)
    assert wide.column(0).is_valid().to_pylist() == [not nullable, True, not nullable, True, not nullable]
    assert filler.widen(values, np.array([10, 11]), 10, 12) is values
    assert filler.rows(3).num_rows == 3


def test_files_of_2_0_have_no_null_structs() -> None:
    schema = pa.schema({"s": pa.struct({"a": pa.int8()})})
    assert Filler(schema, "2.0").rows(1).column(0).null_count == 0
    assert Filler(schema, "2.1").rows(1).column(0).null_count == 1
