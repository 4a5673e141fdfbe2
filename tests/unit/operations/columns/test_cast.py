"""Values cast inside nested types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.operations.columns.cast import recast
from tablewright.operations.columns.schema import InvalidColumns


def test_recast_walks_nested_values() -> None:
    kind = pa.list_(pa.struct({"x": pa.int64(), "l": pa.list_(pa.int64())}))
    array = pa.array([[{"x": 1, "l": [1]}], None, [], [{"x": None, "l": None}, None], [{"x": 300, "l": []}]], kind)
    wanted = pa.list_(pa.struct({"y": pa.int8(), "l": pa.list_(pa.int32())}))
    made = recast(array.slice(1, 3), wanted, "c")
    assert made.type == wanted
    assert made.to_pylist() == [None, [], [{"y": None, "l": None}, None]]
    with pytest.raises(InvalidColumns, match="Can't cast value 300 to type Int8"):
        recast(array, wanted, "c")
