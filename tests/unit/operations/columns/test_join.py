"""Columns joined by a key."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.operations.columns.tables import small_table

from tablewright.operations.columns.join import Join, Lookup
from tablewright.operations.columns.schema import InvalidColumns
from tablewright.reading.projection import RowLayout


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([3, 1, None, 3], pa.int64()),
        pa.array([3, 1, None, 3], pa.uint8()),
        pa.array([3.5, -0.5, None, 3.5], pa.float32()),
        pa.array([3.5, float("nan"), None, 3.5], pa.float16()),
        pa.array(["c", "a", None, "c"]),
        pa.array([b"c", b"a", None, b"c"], pa.binary(1)),
        pa.array(["c", "a", None, "c"]).dictionary_encode(),
        pa.array([3, 1, None, 3], pa.timestamp("us", "UTC")),
        pa.array([3, 1, None, 3], pa.date32()),
        pa.array([True, False, None, True]),
        pa.array([3, 1, None, 3], pa.decimal128(20, 2)),
    ],
    ids=lambda array: str(array.type),
)
def test_lookup_by_any_key(keys: pa.Array) -> None:
    lookup = Lookup(pa.table({"k": keys, "v": ["first", "one", "null", "last"]}), "k")
    probe = pa.concat_arrays([keys, keys.slice(2, 1)])
    assert lookup.take(lookup.find(probe))["v"].to_pylist() == ["last", "one", "null", "last", "null"]
    without = Lookup(pa.table({"k": keys.slice(0, 1), "v": ["x"]}), "k")
    assert without.find(keys).tolist() == [0, -1, -1, 0]
    empty = Lookup(pa.table({"k": keys.slice(0, 0), "v": pa.array([], pa.string())}), "k")
    assert empty.take(empty.find(keys))["v"].to_pylist() == [None] * 4


def test_joined_columns_are_planned(tmp_path: Path) -> None:
    snapshot = small_table(tmp_path)
    lookup = Lookup(pa.table({"k": [1], "v": ["x"]}), "k")
    plan = Join(lookup, "id").plan(snapshot)
    assert plan.reads == RowLayout.of(snapshot.schema, [("id",)]) and plan.written.names == ("v",)
    for wrong, message in (
        (Join(lookup, "nope"), "left side"),
        (Join(lookup, "s"), "type mismatch"),
        (Join(Lookup(pa.table({"k": [1], "s": ["x"]}), "k"), "id"), "both sides"),
        (Join(Lookup(pa.table({"k": [1]}), "k"), "id"), "besides the key"),
    ):
        with pytest.raises(InvalidColumns, match=message):
            wrong.plan(snapshot)
