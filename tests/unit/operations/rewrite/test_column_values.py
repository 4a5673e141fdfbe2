"""Values of a column at some rows: one for each, or nothing is written."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tablewright.operations.rewrite.column_values import placed


@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.dictionary(pa.int8(), pa.string())], ids=str)
def test_values_come_to_their_rows(kind: pa.DataType) -> None:
    old, new = pa.array([1, 2, 3], pa.int64()).cast(pa.string()), pa.array(["9", None])
    found = placed(old.cast(kind), np.array([0, 2]), new.cast(kind))
    assert found.type == kind
    assert found.cast(pa.string()).to_pylist() == ["9", "2", None]


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()], ids=str)
def test_one_value_is_not_spread_over_several_rows(kind: pa.DataType) -> None:
    with pytest.raises(AssertionError, match="1 values for 2 rows"):
        placed(pa.nulls(3, kind), np.array([0, 2]), pa.nulls(1, kind))
