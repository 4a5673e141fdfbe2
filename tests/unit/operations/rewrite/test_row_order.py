"""Rows that move are written in the order of their row ids, whichever way they change; nothing gets mixed up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.format.row_ids import decode_row_ids
from tablewright.format.segments import RangeWithBitmap
from tablewright.reading.fragment import FragmentScan

ROWS = 200
Change = Callable[[Any, np.ndarray, int], None]  # type: ignore[type-arg]


def _update(ds: Any, ids: Any, turn: int) -> None:
    ds.update({"x": f"id + {turn * 1000}"}, where=f"id in ({', '.join(map(str, ids))})", write_mode="rewrite_rows")


def _upsert(ds: Any, ids: Any, turn: int) -> None:
    source = pa.table({"id": ids, "x": ids + turn * 1000, "s": [f"row {i}" for i in ids]})
    ds.merge_insert("id").when_matched_update_all().write_mode("rewrite_rows").execute(source)


def _partial(ds: Any, ids: Any, turn: int) -> None:
    source = pa.table({"x": ids + turn * 1000, "id": ids})
    ds.merge_insert("id").when_matched_update_all().write_mode("rewrite_rows").execute(source)


CHANGES: dict[str, Change] = {"update": _update, "upsert": _upsert, "partial": _partial}


def _table(uri: str, *, stable: bool = True) -> Any:
    rows = pa.table({"id": range(ROWS), "x": range(ROWS), "s": [f"row {i}" for i in range(ROWS)]})
    return tw.write_dataset(rows, uri, max_rows_per_file=50, enable_stable_row_ids=stable)


@pytest.mark.parametrize("name", CHANGES)
def test_moved_rows_keep_together_what_belongs_together(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FragmentScan, "rows_at_a_time", 7)
    ds = _table(f"memory://row-order-{name}")
    chance, model = np.random.default_rng(4), {i: i for i in range(ROWS)}
    for turn in range(1, 7):
        ids = chance.choice(ROWS, 60, replace=False)
        CHANGES[name](ds, ids, turn)
        model |= {int(i): int(i) + turn * 1000 for i in ids}
        ds.validate()
        table = ds.to_table(columns=["id", "x", "s", "_rowid", "_row_created_at_version"])
        assert table["_rowid"].to_pylist() == table["id"].to_pylist()
        assert dict(zip(table["id"].to_pylist(), table["x"].to_pylist(), strict=True)) == model
        assert table["s"].to_pylist() == [f"row {i}" for i in table["id"].to_pylist()]
        assert set(table["_row_created_at_version"].to_pylist()) == {1}
        newest = ds._snapshot.fragments[-1]
        sequence = decode_row_ids(newest.row_ids, "", 60)
        assert np.all(np.diff(sequence.to_numpy().astype(np.int64)) > 0)
        assert [type(segment) for segment in sequence.segments] == [RangeWithBitmap]


@pytest.mark.parametrize("name", CHANGES)
def test_addresses_stay_in_their_order(name: str) -> None:
    ds = _table(f"memory://row-order-addresses-{name}", stable=False)
    for turn, first in enumerate((100, 40)):
        CHANGES[name](ds, np.arange(first, first + 30), turn + 1)
    CHANGES[name](ds, np.array([45, 105, 7]), 9)
    assert ds.to_table(columns=["id"])["id"].to_pylist()[-3:] == [7, 105, 45]
