"""What a function may return."""

from __future__ import annotations

import pandas
import pyarrow as pa
import pytest

from tablewright.operations.columns.compute import result_batch
from tablewright.operations.columns.schema import InvalidColumns


def test_what_a_function_may_return() -> None:
    schema = pa.schema({"x": pa.int32()})
    assert result_batch(pandas.DataFrame({"x": [1]}, index=[7]), schema).to_pydict() == {"x": [1]}
    assert result_batch(pandas.DataFrame({"x": [1]})).schema.types == [pa.int64()]
    strict = pa.schema([pa.field("x", pa.int64(), nullable=False)])
    assert result_batch(pa.record_batch({"x": [1]}), strict).num_rows == 1
    for wrong in (pa.record_batch({"y": [1]}), pandas.DataFrame({"x": ["a"]}), pandas.DataFrame({"x": [1], "y": [1]})):
        with pytest.raises(InvalidColumns):
            result_batch(wrong, schema)
    with pytest.raises(TypeError):
        result_batch(pa.table({"x": [1]}), schema)
