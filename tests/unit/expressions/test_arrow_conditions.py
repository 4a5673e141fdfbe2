from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest
from tests.unit.expressions.tree_truth import truth

from tablewright.expressions.arrow_conditions import arrow_tree
from tablewright.expressions.arrow_sets import with_unknown_nulls
from tablewright.expressions.filters import compile_filter

X, S, F, B = pc.field("x"), pc.field("s"), pc.field("f"), pc.field("b")
COLUMNS = {
    "x": pa.array([None, -1, 0, 1, 5, 127], pa.int8()),
    "s": pa.array([None, "", "a", 'q"uo\\te', "b", "ä b"]),
    "f": pa.array([None, 0.0, -0.0, 1.5, float("nan"), 2.0]),
    "b": pa.array([None, True, False, True, False, True]),
}
BATCH = pa.record_batch(list(COLUMNS.values()), names=list(COLUMNS))

READ: list[Any] = [
    X == 5, X != 5, X < 5, X <= 5, X > 5, X >= 5, S == "a", S > "a", S == 'q"uo\\te', S == "ä b", S != "", B, ~B,
    S == "a\nb", X.is_null(), X.is_valid(), F.is_null(), (X > 0) & (S == "a"), (X > 0) | S.is_null(), ~(X > 0),
    ~((X > 0) & B) | (S == "b"), (X > 0) & (X < 6) & (S != "a"),
]  # fmt: skip

OTHER: list[Any] = [
    X + 1 > 5, F > 1.5, F == 0.0, X == 300, X.isin([1, 2]), X.is_null(nan_is_null=True), X == 1.5,
    pc.starts_with(S, "a"), pc.scalar(1).cast("int8") == X, pc.field(0) == 5, (X > 1) & (F > 1.5),
]  # fmt: skip


@pytest.mark.parametrize("expression", READ, ids=str)
def test_the_tree_is_true_for_the_rows_that_arrow_keeps(expression: Any) -> None:
    tree = arrow_tree(expression, BATCH.schema)
    assert str(tree) != "?"
    rows = [{name: array[place].as_py() for name, array in COLUMNS.items()} for place in range(BATCH.num_rows)]
    asked = {"answer": with_unknown_nulls(expression)}
    expected = pads.dataset(BATCH).to_table(columns=asked)["answer"].to_pylist()
    assert compile_filter(expression, BATCH.schema).mask(BATCH).tolist() == [answer is True for answer in expected]
    assert [truth(tree, row) for row in rows] == expected


@pytest.mark.parametrize("expression", OTHER, ids=str)
def test_what_is_not_plain_stays_unknown(expression: Any) -> None:
    assert str(arrow_tree(expression, BATCH.schema)) == "?"


def test_columns_whose_names_are_no_words_stay_unknown() -> None:
    schema = pa.schema([("a b", pa.int64()), ("(x", pa.int64())])
    for name in schema.names:
        assert str(arrow_tree(pc.field(name) == 5, schema)) == "?"
