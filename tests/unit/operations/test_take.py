"""Take by position and samples. Take beside pylance, by row id and address too: tests/differential."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
def snapshot(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    path = tmp_path_factory.mktemp(request.param) / "t.lance"
    table = pa.table(
        {
            "a": pa.array(range(100)),
            "s": [f"r{i}" for i in range(100)],
            "st": pa.array([{"p": i, "q": {"z": str(i), "w": i}} for i in range(100)]),
        }
    )
    stable = request.param == "stable"
    dataset = tw.write_dataset(table, path, max_rows_per_file=30, enable_stable_row_ids=stable)
    dataset.delete("a % 7 = 3")
    dataset.update({"s": "'new'"}, where="a % 10 = 0", write_mode="rewrite_rows")
    return open_snapshot(World(store=open_store(str(path))))


def test_positions_of_every_kind(snapshot: Snapshot) -> None:
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
def test_positions_refused(snapshot: Snapshot, indices: list[Any], words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        take.take_positions(snapshot, indices)


def test_unknown_columns(snapshot: Snapshot) -> None:
    for columns in (["nope"], ["st.nope"], {"z": "nope"}):
        with pytest.raises(InvalidRequest, match="No field named"):
            take.take_positions(snapshot, [0], columns)


def test_sample(snapshot: Snapshot) -> None:
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
    tw.write_dataset(table, tmp_path / "t")
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
