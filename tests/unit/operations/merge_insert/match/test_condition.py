from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tablewright.format.schema import Schema
from tablewright.operations.merge_insert.match.condition import compile_condition

TABLE = Schema.from_arrow(
    pa.schema(
        {
            "id": pa.int64(),
            "X": pa.float64(),
            "t": pa.struct({"a": pa.int64(), "v": pa.list_(pa.float32(), 2)}),
            "d": pa.dictionary(pa.int32(), pa.string()),
        }
    )
)
SOURCE = pa.record_batch({"id": [1, 2, 3], "X": [1.0, None, 9.0], "t": [{"a": 1}, None, {"a": 3}]})
TARGET = pa.record_batch({"X": [5.0, 5.0, 5.0], "t": [{"a": 1}, {"a": 2}, {"a": 3}], "_rowid": [7, 8, 9]})


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("source.X > target.X", [False, False, True]),
        ("SOURCE.x > Target.x", [False, False, True]),
        ("source.t.a = target.t.a", [True, False, True]),
        ("target._rowid <> 8 and source.id < 3", [True, False, False]),
        ("source.X is null", [False, True, False]),
        ("true", [True, True, True]),
        ("cast(null as boolean)", [False, False, False]),
        ("target.X = 5", [True, True, True]),
        ("_rowid <> 8", [True, False, True]),
    ],
)
def test_conditions(text: str, answer: list[bool]) -> None:
    condition = compile_condition(text, TABLE, TABLE.to_arrow(), 0)
    source = SOURCE.select(list(condition.source_columns)) if condition.source_columns else SOURCE
    mask = condition.mask(source, TARGET.select([path[0] for path in dict.fromkeys(condition.target_paths)]))
    assert mask.dtype == np.bool_ and mask.tolist() == answer


def test_only_what_is_named_is_read() -> None:
    condition = compile_condition("source.t.a > target.t.a and source.id > 0", TABLE, TABLE.to_arrow(), 0)
    assert condition.source_columns == ("t", "id")
    assert condition.target_paths == (("t", "a"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x > 1", "x is a column of the source and of the table. Write source.x or target.x."),
        ("t.a > 1", "t is a column of the source and of the table. Write source.t or target.t."),
        ("nope > 1", "No field named nope. The columns are: source, target."),
        ("source.nope > 1", "No field named source.nope"),
        ("source.X", "does not return a boolean"),
        ("source > target", "a side of the merge, not a column"),
        ("source.X >", "Expected: an expression"),
        ("", "empty"),
    ],
)
def test_bad_conditions(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        compile_condition(text, TABLE, TABLE.to_arrow(), 0)
    assert isinstance(caught.value, OSError)
    assert "source.<column> and target.<column>" in str(caught.value)
