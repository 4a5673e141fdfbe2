"""Take by position, row id and address, refereed by pylance on the same table."""

from __future__ import annotations

from typing import Any

import lance
import pyarrow as pa
import pytest

from tablewright.errors import InvalidRequest
from tablewright.operations import take
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World


@pytest.fixture(scope="module", params=["addresses", "stable"])
def tables(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Snapshot]:
    path = tmp_path_factory.mktemp(request.param) / "t.lance"
    table = pa.table(
        {
            "a": pa.array(range(100)),
            "s": [f"r{i}" for i in range(100)],
            "st": pa.array([{"p": i, "q": {"z": str(i), "w": i}} for i in range(100)]),
        }
    )
    stable = request.param == "stable"
    referee = lance.write_dataset(table, path, max_rows_per_file=30, enable_stable_row_ids=stable)
    referee.delete("a % 7 = 3")
    referee.update({"s": "'new'"}, where="a % 10 = 0")
    return referee, open_snapshot(World(store=open_store(str(path))))


COLUMNS: list[Any] = [
    None,
    ["a"],
    ["s", "a"],
    ["a", "a"],
    ["st.q.z", "a", "st.p"],
    ["st", "st.p"],
    ["`a`"],
    ["_rowid"],
    ["a", "_rowid", "s"],
    ["_rowaddr", "a"],
    {"z": "st.p", "i": "_rowid"},
    {"z": "a + 1"},
]


@pytest.mark.parametrize("columns", COLUMNS, ids=str)
@pytest.mark.parametrize("indices", [[1, 0], [], [84, 3, 3, 50, 0], list(range(86)), list(range(85, -1, -2))], ids=len)
def test_positions(tables: tuple[Any, Snapshot], columns: Any, indices: list[int]) -> None:
    referee, snapshot = tables
    ours, theirs = take.take_positions(snapshot, indices, columns), referee.take(indices, columns=columns)
    assert ours.schema.equals(theirs.schema, check_metadata=True)
    assert ours.to_pylist() == theirs.to_pylist()


def test_row_ids(tables: tuple[Any, Snapshot]) -> None:
    referee, snapshot = tables
    every = referee.to_table(columns=["_rowid", "a"])
    ids = every["_rowid"].to_pylist()[::-3]
    ours = take.take_row_ids(snapshot, ids, ["a", "_rowid"])
    assert ours.to_pylist() == referee._take_rows(ids, columns=["a", "_rowid"]).to_pylist()
    assert ours["_rowid"].to_pylist() == ids
    twice = [ids[5], ids[0], ids[5]]
    assert take.take_row_ids(snapshot, twice, ["_rowid"])["_rowid"].to_pylist() == twice


def test_row_ids_of_deleted_rows_are_left_out(tables: tuple[Any, Snapshot]) -> None:
    referee, snapshot = tables
    ids = [3, 4, 5]  # 3 was deleted
    expected = referee._take_rows(ids, columns=["a"]).to_pylist()
    assert take.take_row_ids(snapshot, ids, ["a"]).to_pylist() == expected == [{"a": 4}, {"a": 5}]


def test_row_ids_that_never_were(tables: tuple[Any, Snapshot]) -> None:
    referee, snapshot = tables
    if snapshot.manifest.stable_row_ids:
        assert take.take_row_ids(snapshot, [2**40, 2**63], ["a"]).num_rows == 0
        assert referee._take_rows([2**40], columns=["a"]).num_rows == 0
        return
    with pytest.raises(InvalidRequest, match="belongs to non-existent fragment: 99"):
        take.take_row_ids(snapshot, [99 << 32])
    with pytest.raises(InvalidRequest, match="out of range"):
        take.take_row_ids(snapshot, [1000])


def test_addresses(tables: tuple[Any, Snapshot]) -> None:
    referee, snapshot = tables
    every = referee.to_table(columns=["_rowaddr", "a"])
    addresses = every["_rowaddr"].to_pylist()[::-5]
    ours = take.take_addresses(snapshot, addresses, ["a", "_rowaddr"])
    assert ours["_rowaddr"].to_pylist() == addresses
    assert ours["a"].to_pylist() == every["a"].to_pylist()[::-5]
    assert take.take_addresses(snapshot, [3], ["a"]).num_rows == 0  # deleted


def test_positions_in_a_fragment(tables: tuple[Any, Snapshot]) -> None:
    referee, snapshot = tables
    fragment = referee.get_fragments()[1]
    ours = take.take_fragment_positions(snapshot, snapshot.fragments[1], [0, 2, 3], ["a"])
    assert ours.to_pylist() == fragment.take([0, 2, 3], columns=["a"]).to_pylist()
    assert take.take_fragment_positions(snapshot, snapshot.fragments[1], [3, 0], ["a"]).to_pylist() == [
        fragment.take([3], columns=["a"]).to_pylist()[0],
        fragment.take([0], columns=["a"]).to_pylist()[0],
    ]
    with pytest.raises(InvalidRequest, match="out of range: fragment"):
        take.take_fragment_positions(snapshot, snapshot.fragments[1], [30])
