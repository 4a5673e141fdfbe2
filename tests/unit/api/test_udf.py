"""Functions that make columns: what they are made of. What they do: tests/unit/api/test_columns.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tablewright.api.udf import BatchUDF, batch_udf
from tablewright.errors import WrongType


def double(batch: pa.RecordBatch) -> Any:
    return batch.num_rows * 2


def test_a_function_with_what_is_known_of_it() -> None:
    schema = pa.schema({"n": pa.int64()})
    made = batch_udf(output_schema=schema, checkpoint_file=Path("x"))(double)
    assert (made.output_schema, made.checkpoint_file) == (schema, Path("x"))
    assert made(pa.record_batch({"a": [1, 2]})) == 4
    assert repr(made) == "BatchUDF(double)"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("text",), "made of a function"),
        ((double, {"n": "int"}), r"output_schema must be a pyarrow\.Schema"),
        ((double, None, 3), "checkpoint_file must be a path"),
    ],
    ids=["no function", "no schema", "no path"],
)
def test_what_is_refused(given: tuple[Any, ...], words: str) -> None:
    with pytest.raises(WrongType, match=words):
        BatchUDF(*given)
