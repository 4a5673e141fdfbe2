"""Clauses as SQL has them, on Spark: a few merges beside the model, keys sent to tasks, shuffled, or looked up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.depth import deep
from tests.property.clause_model import (
    CONDITIONS_OF_MATCH,
    CONDITIONS_OF_SOURCE,
    CONDITIONS_OF_TARGET,
    TABLE,
    VALUES_OF_MATCH,
    VALUES_OF_SOURCE,
    VALUES_OF_TARGET,
    Clause,
    ClauseMerge,
)
from tests.property.test_merge_clauses import check_outcome, sorted_rows
from tests.spark.helpers import frame_of

import tablewright as tw
from tablewright.operations.merge_insert.limits import MatchLimits, MergeLimits

LIMITS = {
    "broadcast": MergeLimits(),
    "shuffle": MergeLimits(match=MatchLimits(keys_per_worker=2)),
    "index": MergeLimits(match=MatchLimits(lookup_ns=0, lookup_key_ns=0.001, take_row_ns=0)),
}


def _row(i: int, **changes: Any) -> dict[str, Any]:
    return {"id": i, "v": None if i % 5 == 0 else i % 7, "w": i % 4 - 1, "s": [None, "a", "b"][i % 3]} | changes


def _clauses(number: int) -> ClauseMerge:
    def pick(values: Any) -> dict[str, Any]:
        return {name: sqls[number % len(sqls)] for name, sqls in values.items()}

    match, source, target = (
        conditions[number % len(conditions)]
        for conditions in (CONDITIONS_OF_MATCH, CONDITIONS_OF_SOURCE, CONDITIONS_OF_TARGET)
    )
    return ClauseMerge(
        (Clause("delete", None, match), Clause("update", pick(VALUES_OF_MATCH))),
        (Clause("insert", pick(VALUES_OF_SOURCE), source), Clause("insert", {"id": VALUES_OF_SOURCE["id"][0]})),
        (Clause("update", pick(VALUES_OF_TARGET), target),) * (number % 2),
    )


@pytest.mark.parametrize("number", range(deep(4, 10)))
@pytest.mark.parametrize("by_frame", [False, True])
def test_clauses_on_spark(spark: Any, tmp_path: Path, number: int, by_frame: bool) -> None:
    way, mode = sorted(LIMITS)[number % 3], ["auto", "rewrite_rows", "rewrite_columns"][number // 2 % 3]
    rows = [_row(i) for i in range(40)]
    source = [_row(i, v=i % 9 - 1, op=[None, "d", "i", "u"][i % 4]) for i in range(25, 60, 2)]
    stable = bool(number % 2)
    uri = str(tmp_path / "t.lance")
    tw.write_dataset(pa.Table.from_pylist(rows, TABLE), uri, max_rows_per_file=11, enable_stable_row_ids=stable)
    ds = tw.dataset(uri, engine="spark", spark=spark)
    if way == "index":
        ds.create_scalar_index("id", "BTREE")
    merge = _clauses(number)
    expected = merge.after(rows, source)
    builder = merge.configure(ds.merge_insert("id")._with(limits=LIMITS[way]).write_mode(mode))
    data = merge.source(source)
    result = builder.execute(frame_of(data, spark) if by_frame else data)
    assert {name: result[name] for name in expected.counts} == expected.counts
    check_outcome(tw.dataset(uri), expected, list(range(40)) if stable else None)
    assert sorted_rows(lance.dataset(uri).to_table().to_pylist()) == sorted_rows(tw.dataset(uri).to_table().to_pylist())
