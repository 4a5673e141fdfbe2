"""Rows in an order: keys of every kind, nulls, and the best of many batches."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest
from tablewright.expressions.scope import Scope
from tablewright.operations.scan import (
    ScanOptions,
    plan_scan,
    scan_table,
)
from tablewright.operations.scan_order import best_rows, orderings_of
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World


def _snapshot(path: Path | str) -> Snapshot:
    return open_snapshot(World(store=open_store(str(path))))


def _table(snapshot: Snapshot, **options: Any) -> pa.Table:
    return scan_table(plan_scan(snapshot, ScanOptions(**options)), snapshot)


@pytest.fixture(scope="module")
def unordered(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    table = pa.table(
        {
            "a": [3, 1, None, 2, 5],
            "f": [float("nan"), 1.0, None, -1.0, 2.0],
            "s": ["b", None, "a", "c", "a"],
            "d": pa.array(["z", "y", None, "y2", "x"]).dictionary_encode(),
            "b": [True, False, None, True, False],
            "st": pa.array([{"p": i} for i in (5, 4, 3, 2, 1)]),
        }
    )
    path = tmp_path_factory.mktemp("unordered") / "t.lance"
    tw.write_dataset(table, path, max_rows_per_file=2)
    return _snapshot(path)


def _ordering(name: str, ascending: bool, nulls_first: bool) -> SimpleNamespace:
    return SimpleNamespace(column_name=name, ascending=ascending, nulls_first=nulls_first)


def test_order_by_more_than_pylance_can(unordered: Snapshot) -> None:
    snapshot = unordered
    assert _table(snapshot, columns=["a"], order_by=["st.p"])["a"].to_pylist() == [5, 2, None, 1, 3]
    last_first = [_ordering("_rowid", False, False)]
    assert _table(snapshot, columns=["a"], order_by=last_first)["a"].to_pylist() == [5, 2, None, 1, 3]
    assert _table(snapshot, columns={"z": "a * 2"}, order_by=["a"], filter="a < 5")["z"].to_pylist() == [2, 4, 6]


def test_order_by_extension_types(tmp_path: Path) -> None:
    ids = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"c" * 16, None, b"a" * 16], pa.binary(16)))
    tw.write_dataset(pa.table({"a": [0, 1, 2], "id": ids}), tmp_path / "t")
    assert _table(_snapshot(tmp_path / "t"), columns=["a"], order_by=["id"])["a"].to_pylist() == [2, 0, 1]


def test_the_best_of_many_batches() -> None:
    table = pa.table({"a": [(i * 37) % 1000 for i in range(1000)]})
    orderings = orderings_of(["a"], Scope(table.schema))
    batches = table.to_batches(max_chunksize=50)
    best = best_rows(batches, table.schema, ["a"], orderings, 5, gathered_rows_min=10)
    assert best["a"].to_pylist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("a", "a asc nulls last"),
        (_ordering("a", False, True), "a desc nulls first"),
        ("st.p", "st.p asc nulls last"),
    ],
    ids=str,
)
def test_orderings_in_words(unordered: Snapshot, order: Any, text: str) -> None:
    (found,) = orderings_of([order], Scope(unordered.schema.to_arrow()))
    assert str(found) == text
    assert orderings_of(None, Scope(unordered.schema.to_arrow())) == ()


@pytest.mark.parametrize(
    ("order", "words"), [(["nope"], "Column nope not found"), (["st"], "can't be ordered by st"), ([3], "column names")]
)
def test_what_is_no_order(unordered: Snapshot, order: Any, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        orderings_of(order, Scope(unordered.schema.to_arrow()))
