"""Matches of small batches together: the same rows, of the same schema, as those of one batch."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tablewright.data.rows import Rows
from tablewright.reading.gather import Gathered

SCHEMA = pa.schema([pa.field("n", pa.int32(), nullable=False), ("x", pa.float64()), ("b", pa.bool_())])


@pytest.mark.parametrize("with_offsets", [False, True])
@pytest.mark.parametrize("names", [["n", "x", "b"], ["x"], []])
def test_many_batches_give_what_one_gives(names: list[str], with_offsets: bool) -> None:
    numbers = np.arange(100)
    columns = [
        pa.array(numbers, pa.int32()),
        pa.array([None if n % 9 == 0 and n > 20 else n / 7 for n in numbers]),
        pa.array(numbers % 3 == 0),
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    mask = (numbers % 4 == 1) | ((numbers > 40) & (numbers < 60))
    mask[10:20] = False
    gathered = Gathered(names, with_offsets=with_offsets)
    for start in range(0, 100, 10):
        gathered.add(Rows(batch.slice(start, 10), start=1000 + start), mask[start : start + 10])
    found = gathered.rows()
    expected = batch.select(names).take(pa.array(np.flatnonzero(mask)))
    assert len(gathered) == len(found) == np.count_nonzero(mask)
    assert found.batch.schema == expected.schema and found.batch.to_pylist() == expected.to_pylist()
    if with_offsets:
        assert found.offsets.tolist() == (1000 + np.flatnonzero(mask)).tolist()


def test_nothing_matches() -> None:
    gathered = Gathered(["a"], with_offsets=True)
    gathered.add(Rows(pa.record_batch({"a": [1, 2]})), np.zeros(2, np.bool_))
    assert not len(gathered)


def test_rows_do_not_keep_the_batch() -> None:
    gathered = Gathered(["a"], with_offsets=False)
    gathered.add(Rows(pa.record_batch({"a": np.arange(1000)})), np.arange(1000) < 3)
    assert gathered.rows().batch.get_total_buffer_size() == 24
