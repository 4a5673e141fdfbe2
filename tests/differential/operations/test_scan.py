"""Scans, refereed by pylance on the same table."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.unit.operations.test_scan import _rows

from tablewright.errors import InvalidRequest
from tablewright.operations.scan import (
    ScanOptions,
    count_rows,
    plan_scan,
    scan_table,
)
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World


@pytest.fixture(scope="module", params=["addresses", "stable"])
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Snapshot]:
    path = tmp_path_factory.mktemp(request.param) / "t.lance"
    stable = request.param == "stable"
    referee = lance.write_dataset(_rows(), path, max_rows_per_file=4, enable_stable_row_ids=stable)
    referee.delete("a in (1, 5, 6)")
    referee.update({"s": "'new'"}, where="a = 9")
    return referee, _snapshot(path)


def _snapshot(path: Path | str) -> Snapshot:
    return open_snapshot(World(store=open_store(str(path))))


def _table(snapshot: Snapshot, **options: Any) -> pa.Table:
    return scan_table(plan_scan(snapshot, ScanOptions(**options)), snapshot)


def _same(tables: tuple[Any, Snapshot], **options: Any) -> None:
    referee, snapshot = tables
    ours, theirs = _table(snapshot, **options), referee.to_table(**options)
    assert ours.schema.equals(theirs.schema, check_metadata=True), (ours.schema, theirs.schema)
    assert ours.num_rows == theirs.num_rows
    assert ours.to_pylist() == theirs.to_pylist()


COLUMNS: list[Any] = [
    None,
    ["a"],
    ["s", "a"],
    ["st.p"],
    ["st.p", "st"],
    ["st", "st.p"],
    ["st.q.z", "a", "st.p"],
    ["`a`"],
    ["st.`p`"],
    ["ST.p"],
    [],
    ["_rowid"],
    ["a", "_rowid"],
    ["_rowid", "a"],
    ["_rowaddr", "a", "_rowid"],
    ["_rowoffset", "a"],
    ["_row_created_at_version", "_row_last_updated_at_version", "a"],
    {"z": "a + 1"},
    {"z": "a", "y": "st.q.z", "x": "lower(s)"},
    {"z": "a", "_rowid": "_rowid"},
    {"z": "_rowoffset"},
]


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
def test_columns(tables: tuple[Any, Snapshot], columns: Any) -> None:
    _same(tables, columns=columns)


@pytest.mark.parametrize("columns", [None, ["a"], [], ["_rowid", "a"], ["a", "_rowaddr"], {"z": "a + 1"}], ids=str)
@pytest.mark.parametrize("flags", [("with_row_id",), ("with_row_address",), ("with_row_id", "with_row_address")])
def test_row_id_and_address_come_last(tables: tuple[Any, Snapshot], columns: Any, flags: tuple[str, ...]) -> None:
    _same(tables, columns=columns, **dict.fromkeys(flags, True))


REFUSED = {
    "duplicate": ({"columns": ["a", "a"]}, "Duplicate column name: a"),
    "unknown": ({"columns": ["nope"]}, "No field named nope"),
    "member": ({"columns": ["st.nope"]}, "No field named st"),
    "case": ({"columns": ["A"]}, "No field named "),
    "list": ({"columns": ["l.x"]}, "No field named l"),
    "expression": ({"columns": {"z": "nope"}}, "No field named nope"),
    "filter": ({"filter": "nope > 1"}, "No field named nope"),
    "not boolean": ({"filter": "a"}, "does not return a boolean"),
    "limit": ({"limit": -1}, "Limit must be non-negative"),
    "offset": ({"offset": -1}, "Offset must be non-negative"),
    "deleted": ({"include_deleted_rows": True}, "with_row_id is false"),
    "order": ({"order_by": ["nope"]}, "Column nope not found"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(tables: tuple[Any, Snapshot], case: str) -> None:
    referee, snapshot = tables
    options, words = REFUSED[case]
    with pytest.raises(InvalidRequest, match=words):
        _table(snapshot, **options)
    with pytest.raises(ValueError, match=words.split(" named ")[0]):
        referee.to_table(**options)


FILTERS: list[Any] = [
    "a > 3",
    "a > 3 and s like 'r%'",
    "s is null",
    "st.q.w >= 4",
    "st is null",
    "_rowid > 2",
    "_rowaddr > 4294967296",
    "_row_last_updated_at_version > 1",
    "a > 300",
    "true",
    "false",
    "a in (0, 9)",
]


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("columns", [None, ["a"], ["s"], ["st.p", "_rowid"], ["st"], [], {"z": "a + st.p"}], ids=str)
@pytest.mark.parametrize("late", [None, True, False])
def test_filters(tables: tuple[Any, Snapshot], filter: str, columns: Any, late: bool | None) -> None:
    _same(tables, columns=columns, filter=filter, **({} if late is None else {"late_materialization": late}))


def test_arrow_filters(tables: tuple[Any, Snapshot]) -> None:
    _same(tables, columns=["s"], filter=(pc.field("a") > 3) & (pc.field("a") < 9))


@pytest.mark.parametrize("filter", [None, "a > 2", "s is not null"])
@pytest.mark.parametrize(("limit", "offset"), [(0, None), (3, None), (3, 2), (None, 3), (2, 5), (100, 100), (1, 6)])
def test_limit_and_offset(tables: tuple[Any, Snapshot], filter: str | None, limit: int | None, offset: int) -> None:
    given = {name: value for name, value in (("limit", limit), ("offset", offset)) if value is not None}
    _same(tables, columns=["a", "_rowid"], filter=filter, **given)


@pytest.mark.parametrize("filter", [None, "a > 4", "s = 'r5'"])
@pytest.mark.parametrize("columns", [["a"], ["_rowaddr", "a"], ["a", "_row_created_at_version"]], ids=str)
def test_deleted_rows_included(tables: tuple[Any, Snapshot], filter: str | None, columns: list[str]) -> None:
    _same(tables, columns=columns, filter=filter, include_deleted_rows=True, with_row_id=True)


def test_deleted_rows_included_with_limit(tables: tuple[Any, Snapshot]) -> None:
    _same(tables, columns=["a"], include_deleted_rows=True, with_row_id=True, limit=3, offset=1)


def test_count_rows(tables: tuple[Any, Snapshot]) -> None:
    referee, snapshot = tables
    for filter in [None, *FILTERS]:
        assert count_rows(plan_scan(snapshot, ScanOptions(filter=filter)), snapshot) == referee.count_rows(filter)
    deleted = ScanOptions(include_deleted_rows=True, with_row_id=True)
    assert count_rows(plan_scan(snapshot, deleted), snapshot) == sum(f.physical_rows for f in snapshot.fragments)
    assert count_rows(plan_scan(snapshot, ScanOptions(limit=3, offset=5)), snapshot) == 2


def test_fragments_in_the_order_given(tables: tuple[Any, Snapshot]) -> None:
    referee, snapshot = tables
    second, first = referee.get_fragments()[1], referee.get_fragments()[0]
    theirs = referee.scanner(columns=["a", "_rowoffset"], fragments=[second, first]).to_table()
    ours = _table(snapshot, columns=["a", "_rowoffset"], fragments=[second.fragment_id, first.fragment_id])
    assert ours.to_pylist() == theirs.to_pylist()
    assert _table(snapshot, columns=["a"], fragments=[]).num_rows == 0


ORDERS: list[Any] = [
    ["a"],
    "a",
    [("a", False, False)],
    [("a", True, True)],
    [("a", False, True)],
    ["f"],
    [("f", False, False)],
    ["s", "a"],
    ["a", ("f", False, False)],
    ["d"],
    ["b", "a"],
]


@pytest.fixture(scope="module")
def unordered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Snapshot]:
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
    return lance.write_dataset(table, path, max_rows_per_file=2), _snapshot(path)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_order_by(unordered: tuple[Any, Snapshot], order: Any) -> None:
    from lance.dataset import ColumnOrdering

    referee, snapshot = unordered
    theirs = [key if isinstance(key, str) else ColumnOrdering(*key) for key in order]
    ours = [key if isinstance(key, str) else _ordering(*key) for key in order] if isinstance(order, list) else order
    expected = referee.to_table(columns=["a", "s"], order_by=theirs).to_pylist() if _all_in(order) else None
    found = _table(snapshot, columns=["a", "s"], order_by=ours).to_pylist()
    assert expected is None or found == expected
    everything = referee.to_table(order_by=theirs)["a"].to_pylist()
    assert [row["a"] for row in found] == everything
    assert _table(snapshot, columns=["a"], order_by=ours, limit=2, offset=1)["a"].to_pylist() == everything[1:3]


def _ordering(name: str, ascending: bool, nulls_first: bool) -> SimpleNamespace:
    return SimpleNamespace(column_name=name, ascending=ascending, nulls_first=nulls_first)


def _all_in(order: Any) -> bool:
    """pylance fails where a key is not among the columns."""
    return all((key if isinstance(key, str) else key[0]) in ("a", "s") for key in order)


def test_empty_tables(tmp_path: Path) -> None:
    referee = lance.write_dataset(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "t")
    snapshot = _snapshot(tmp_path / "t")
    assert _table(snapshot).equals(referee.to_table())
    assert _table(snapshot, filter="a > 1", order_by=["a"], limit=3).num_rows == 0
    assert count_rows(plan_scan(snapshot, ScanOptions()), snapshot) == 0
    assert plan_scan(snapshot, ScanOptions()).tasks == ()


def test_schema_metadata_is_kept(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), metadata={"k": "v"})], metadata={"m": "1"})
    referee = lance.write_dataset(pa.table({"a": [1]}, schema=schema), tmp_path / "t")
    snapshot = _snapshot(tmp_path / "t")
    for columns in (None, ["a"], {"z": "a"}, ["_rowid"]):
        assert _table(snapshot, columns=columns).schema.equals(
            referee.to_table(columns=columns).schema, check_metadata=True
        )
