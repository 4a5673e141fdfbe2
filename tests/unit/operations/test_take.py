"""Take by position, row id and address, refereed by pylance on the same table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.data.read import FragmentReader
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


def test_positions_of_every_kind(tables: tuple[Any, Snapshot]) -> None:
    _, snapshot = tables
    expected = take.take_positions(snapshot, [4, 2], ["a"])
    for indices in (
        (4, 2),
        np.array([4, 2], np.uint8),
        pa.array([4, 2]),
        pa.chunked_array([[4], [2]]),
        range(4, 0, -2),
    ):
        assert take.take_positions(snapshot, indices, ["a"]).equals(expected)
    assert take.take_positions(snapshot, [1, 0, 1], []).num_rows == 3
    assert take.take_positions(snapshot, [1], ["_rowoffset", "a"])["_rowoffset"].to_pylist() == [1]
    versions = take.take_positions(snapshot, [1], ["_row_created_at_version"])
    assert versions.column(0).to_pylist() == [1]


@pytest.mark.parametrize(
    ("indices", "words"), [([86], "out of range"), ([-1], "negative"), ([0.5], "whole number"), (["a"], "whole number")]
)
def test_positions_refused(tables: tuple[Any, Snapshot], indices: list[Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        take.take_positions(tables[1], indices)


def test_unknown_columns(tables: tuple[Any, Snapshot]) -> None:
    for columns in (["nope"], ["st.nope"], {"z": "nope"}):
        with pytest.raises(InvalidRequest, match="No field named"):
            take.take_positions(tables[1], [0], columns)


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


def test_sample(tables: tuple[Any, Snapshot]) -> None:
    _, snapshot = tables
    rows = take.sample(snapshot, 20, ["a"], randomize_order=False)["a"].to_pylist()
    assert len(set(rows)) == 20
    positions = take.sample(snapshot, 20, ["_rowoffset"], randomize_order=False)["_rowoffset"].to_pylist()
    assert positions == sorted(positions)
    everything = take.sample(snapshot, 86, ["a"])["a"].to_pylist()
    assert len(set(everything)) == 86
    assert take.sample(snapshot, 5, seed=1).equals(take.sample(snapshot, 5, seed=1))
    assert take.sample(snapshot, 0).num_rows == 0
    for number in (-1, 87):
        with pytest.raises(InvalidRequest, match="Sample larger than population or is negative"):
            take.sample(snapshot, number)


def test_sparse_and_dense_in_one_large_fragment(tmp_path: Path) -> None:
    rows = 100_000
    table = pa.table({"a": pa.array(range(rows)), "s": [f"r{i}" for i in range(rows)]})
    lance.write_dataset(table, tmp_path / "t")
    snapshot = open_snapshot(World(store=open_store(str(tmp_path / "t"))))
    indices = [*range(20_000, 30_000), 5, 99_999, 60_000, *range(0, rows, 4_999)]
    taken = take.take_positions(snapshot, indices)
    assert taken["a"].to_pylist() == indices
    assert taken["s"].to_pylist() == [f"r{i}" for i in indices]


def test_one_row_in_a_hundred_is_read_without_those_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of narrow rows are read faster than single rows only where one in fifty is wanted."""
    ds = tw.write_dataset({"id": range(20_000)}, "memory://take-sparse", enable_stable_row_ids=True)

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("that was the other way")

    for never, step in (("read", 100), ("take", 10)):
        with monkeypatch.context() as patched:
            patched.setattr(FragmentReader, never, refuse)
            assert ds.take_rows(np.arange(0, 20_000, step))["id"].to_pylist() == list(range(0, 20_000, step))
