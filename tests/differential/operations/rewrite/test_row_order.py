"""The order of moved rows on tables that pylance changed too; nothing gets mixed up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from tests.unit.operations.merge_insert.merge_model import builder
from tests.unit.operations.updates import update_rows

import tablewright as tw
from tablewright.format.row_ids import decode_row_ids
from tablewright.format.segments import Array
from tablewright.operations.merge_insert.limits import MergeLimits
from tablewright.operations.rewrite.limits import RewriteLimits
from tablewright.transaction import commit

ROWS = 200


def _update(ds: Any, ids: Any, turn: int, limits: RewriteLimits) -> Any:
    return update_rows(ds, {"x": f"id + {turn * 1000}"}, f"id in ({', '.join(map(str, ids))})", limits)


def _upsert(ds: Any, ids: Any, turn: int, limits: RewriteLimits) -> None:
    source = pa.table({"id": ids, "x": ids + turn * 1000, "s": [f"row {i}" for i in ids]})
    builder(ds, "id", MergeLimits(rewrite=limits)).when_matched_update_all().write_mode("rewrite_rows").execute(source)


def _table(uri: str, *, stable: bool = True) -> Any:
    rows = pa.table({"id": range(ROWS), "x": range(ROWS), "s": [f"row {i}" for i in range(ROWS)]})
    return tw.write_dataset(rows, uri, max_rows_per_file=50, enable_stable_row_ids=stable)


def test_fragments_out_of_order_are_not_read_up_and_down(tmp_path: Path) -> None:
    """pylance leaves ids as it found the rows. Many of them are not put in order if that means reading up and down."""
    uri = str(tmp_path / "t.lance")
    _table(uri)
    for first in (100, 40, 120):
        lance.dataset(uri).update({"x": "x + 1"}, where=f"id >= {first} and id < {first + 30}")
    lance.dataset(uri).update({"x": "x + 1"}, where="id % 2 = 0")
    ds = tw.dataset(uri)
    few = RewriteLimits(up_and_down_rows=50)
    before = dict(zip(*ds.to_table(columns=["id", "x"]).to_pydict().values(), strict=True))

    def ids() -> list[int]:
        newest = tw.dataset(uri)._snapshot.fragments[-1]
        return [int(i) for i in decode_row_ids(newest.row_ids, "", newest.physical_rows).to_numpy()]

    ds = _update(ds, range(0, ROWS, 2), 1, few)
    assert ids() != sorted(ids())
    _upsert(ds, np.arange(0, ROWS, 2), 2, few)  # nothing is read for these
    assert ids() == list(range(0, ROWS, 2))
    ds = _update(ds, range(0, 90, 3), 3, few)
    assert ids() == list(range(0, 90, 3))
    after = dict(zip(*lance.dataset(uri).to_table(columns=["id", "x"]).to_pydict().values(), strict=True))
    changed = {i: i + 2000 for i in range(0, ROWS, 2)} | {i: i + 3000 for i in range(0, 90, 3)}
    assert after == before | changed
    assert not any(isinstance(s, Array) for s in decode_row_ids(ds._snapshot.fragments[-1].row_ids or b"", "").segments)


def test_large_transactions_stay_out_of_the_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes late, we or pylance, finds them in their own file."""
    monkeypatch.setattr(commit, "_INLINE_BYTES_MAX", 100)
    uri = str(tmp_path / "t.lance")
    _table(uri)
    late, later = lance.dataset(uri), tw.dataset(uri)
    ds = tw.dataset(uri)
    evens = ", ".join(map(str, range(0, ROWS, 2)))
    ds.update({"x": "id + 1000"}, where=f"id in ({evens})", write_mode="rewrite_rows")
    assert ds._snapshot.file.transaction is not None
    assert tw.dataset(uri)._snapshot.file.transaction_bytes is None
    assert ds.read_transaction(2) == tw.dataset(uri).read_transaction(2)
    assert type(lance.dataset(uri).read_transaction(2).operation).__name__ == "Update"
    late.delete("id % 4 = 1")
    later.delete("id % 4 = 3")
    late.update({"x": "-1"}, where="id = 10")
    rows = dict(zip(*lance.dataset(uri).to_table(columns=["id", "x"]).to_pydict().values(), strict=True))
    assert rows == {i: i + 1000 for i in range(0, ROWS, 2)} | {10: -1}
