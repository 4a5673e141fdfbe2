from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.reading.indexed import indexed_table

from tablewright.operations.change_feed.runs import Picks


@pytest.fixture(scope="module")
def table() -> Any:
    return indexed_table(stable=True)


@pytest.mark.parametrize("net", [False, True])
@pytest.mark.parametrize("sql", ["few = 3", "id < 30", "zone > 100", "id > 5 and _change_type = 'delete'", "v = 26"])
def test_the_feed_is_the_same_with_and_without_indices(table: Any, sql: str, net: bool) -> None:
    flat = table.changes(1, filter=sql, net=net, use_scalar_index=False).to_table()
    found = table.changes(1, filter=sql, net=net, use_scalar_index=True)
    assert found.to_table() == flat
    assert flat.num_rows


def test_explain_names_the_index(table: Any) -> None:
    text = table.changes(table.version - 3, filter="few = 3", use_scalar_index=True).explain_plan()
    assert "ScalarIndexQuery: query=[few = 3]@few_idx(Bitmap)" in text


def test_some_rows_of_picks() -> None:
    picks = Picks(
        np.array([0, 2]), np.array([5, 1]), np.array([3, 2]), np.array([10, 40], np.uint64), np.array([0, 1], np.int8)
    )
    assert picks.row_offsets().tolist() == [5, 6, 7, 1, 2]
    some = picks.where(np.array([True, False, True, False, True]))
    assert (some.offsets.tolist(), some.ids.tolist(), some.kinds.tolist()) == ([5, 7, 2], [10, 12, 41], [0, 0, 1])
    assert Picks.joined([picks, some]).total_rows == 8
    assert Picks.joined([]).total_rows == 0
