"""Columns from a stream, row by row."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.operations.columns.schema import InvalidColumns
from tablewright.operations.columns.stream import RowStream


def test_rows_of_a_stream() -> None:
    batches = [pa.record_batch({"x": list(range(start, stop))}) for start, stop in ((0, 3), (3, 3), (3, 4), (4, 9))]
    stream = RowStream(batches)
    assert [stream.take(n)["x"].to_pylist() for n in (2, 4, 1)] == [[0, 1], [2, 3, 4, 5], [6]]
    with pytest.raises(InvalidColumns, match="Stream produced more values than expected for dataset"):
        stream.end()
    with pytest.raises(InvalidColumns, match="Stream ended before producing values for all rows in dataset"):
        RowStream(batches).take(10)
