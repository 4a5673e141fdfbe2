"""The plan that switches stable row ids on."""

from __future__ import annotations

import pyarrow as pa

import tablewright as tw
from tablewright.operations.enable_row_ids import plan_enable


def test_the_plan_is_printed_and_an_empty_table_goes_along() -> None:
    empty = tw.write_dataset(pa.table({"id": pa.array([], pa.int64())}), "memory://enable-empty")
    assert str(plan_enable(empty._snapshot)).startswith("version 1: 0 rows in 0 fragments")
    empty.enable_stable_row_ids()
    assert (empty.version, empty.has_stable_row_ids) == (2, True)
    assert str(plan_enable(empty._snapshot)) == "version 2 has stable row ids already: nothing to do"
    empty.insert({"id": [5, 6]})
    assert empty.to_table(columns=["id", "_rowid", "_row_created_at_version"]).to_pylist() == [
        {"id": 5, "_rowid": 0, "_row_created_at_version": 3},
        {"id": 6, "_rowid": 1, "_row_created_at_version": 3},
    ]
