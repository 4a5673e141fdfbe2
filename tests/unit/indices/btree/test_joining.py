"""Large builds on a local disk: parts become the index's file as they are, with the entries of any other build."""

from __future__ import annotations

import errno
import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.indices.btree.tables import built, check_lookup, entries_of, plan_of, stage_of, tiny

import tablewright as tw
from tablewright.errors import CorruptTable, StorageError
from tablewright.indices import btree
from tablewright.indices.btree import joining, pages
from tablewright.indices.query import Between, IsIn, IsNull
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.storage.subtree import put_pieces
from tablewright.world import World

CHANCE = random.Random(1)
VALUES = {
    "numbers": pa.array([CHANCE.choice([None, *range(-9, 30)]) for _ in range(200)], pa.int64()),
    "few nulls": pa.array([5, None, 3, 8, 8, 8, 8, 1, None, 2], pa.int32()),
    "nulls alone": pa.nulls(30, pa.float64()),
    "one value": pa.array([7] * 50),
    "texts": pa.array([CHANCE.choice([None, "", "a", "ab" * 40, "é"]) for _ in range(90)]),
    "floats": pa.array([0.0, -0.0, float("nan"), None, 1.5, float("-inf")] * 9),
}


def table_at(place: Path, values: pa.Array, rows_per_file: int = 7) -> Snapshot:
    tw.write_dataset(pa.table({"c": values}), place, max_rows_per_file=rows_per_file)
    return open_snapshot(World(open_store(str(place))))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What each call of `join_parts` returned."""
    found: list[Any] = []
    build = sys.modules["tablewright.indices.btree.build"]  # the package has the function under this name

    def noted(*given: Any) -> Any:
        found.append(joining.join_parts(*given))
        return found[-1]

    monkeypatch.setattr(build, "join_parts", noted)
    return found


@pytest.mark.parametrize("name", VALUES)
def test_the_entries_are_those_of_a_small_build(tmp_path: Path, name: str, calls: list[Any]) -> None:
    snapshot = table_at(tmp_path / "t", VALUES[name])
    small = built(snapshot)
    with tiny():
        joined = built(snapshot)
    assert len(calls) == 1 and calls[0] is not None
    assert [str(entry) for entry in entries_of(snapshot, joined)] == [
        str(entry) for entry in entries_of(snapshot, small)
    ]
    check_lookup(snapshot, joined, 4)
    for query in (IsNull(), Between(), IsIn(VALUES[name].drop_null().unique()[:3])):
        expected = np.sort(btree.search(snapshot, small, query).ids).tolist()
        assert np.sort(btree.search(snapshot, joined, query).ids).tolist() == expected
    names = {path.name for path in (tmp_path / "t" / "_indices" / str(joined.uuid)).iterdir()}
    assert names == {"page_data.lance", "page_lookup.lance"}
    assert {file.path: file.size_bytes for file in joined.files} == {
        path.name: path.stat().st_size for path in (tmp_path / "t" / "_indices" / str(joined.uuid)).iterdir()
    }


def test_parts_of_real_pages(tmp_path: Path, calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Page boundaries lie anywhere in the parts."""
    build = sys.modules["tablewright.indices.btree.build"]  # the package has the function under this name
    monkeypatch.setattr(build, "SMALL_BYTES", -1)
    monkeypatch.setattr(build, "SORT_BYTES", 150_000)
    keys = np.random.default_rng(3).permutation(50_000) // 3
    snapshot = table_at(tmp_path / "t", pa.array(keys), 9_000)
    index = built(snapshot)
    assert calls[0] is not None
    entries = entries_of(snapshot, index)
    assert [value for value, _ in entries] == sorted(keys.tolist())
    check_lookup(snapshot, index, pages.ROWS_PER_PAGE)


def test_stores_that_can_not_write_pieces_get_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = table_at(tmp_path / "t", VALUES["numbers"])
    with tiny():
        joined = built(snapshot)
        monkeypatch.setattr(joining, "takes_pieces", lambda store: False)
        monkeypatch.setattr(joining, "read_end", _raise)  # which would be requests in vain
        other = built(snapshot)
    assert entries_of(snapshot, other) == entries_of(snapshot, joined)
    check_lookup(snapshot, other, 4)


def test_parts_with_an_odd_end_are_not_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: list[Any]
) -> None:
    snapshot = table_at(tmp_path / "t", VALUES["numbers"])
    for name in ("file_part", "join_ends"):
        with monkeypatch.context() as patch, tiny():
            patch.setattr(joining, name, lambda *given: None)
            check_lookup(snapshot, built(snapshot), 4)
    assert calls == [None, None]


@pytest.mark.parametrize("where", ["a part", "the disk", "the bounds", "the lookup"])
def test_nothing_is_left_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    snapshot = table_at(tmp_path / "t", VALUES["numbers"])
    plan, store = plan_of(snapshot), snapshot.world.store
    expected: type[Exception] = StorageError
    if where == "a part":
        expected, real = CorruptTable, type(store).get_range

        def shorter(self: Any, path: str, start: int, end: int) -> bytes:
            return real(self, path, start, end)[:-1]

        def put(*given: Any) -> None:
            monkeypatch.setattr(type(store), "get_range", shorter)
            put_pieces(*given)

        monkeypatch.setattr(joining, "put_pieces", put)
    elif where == "the disk":

        def full(self: Any, path: str, pieces: Any) -> None:
            real_write, written = os.write, []

            def write(descriptor: int, data: Any) -> int:
                written.append(1)
                if len(written) > 3:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return real_write(descriptor, data)

            with monkeypatch.context() as patch:
                patch.setattr(os, "write", write)
                self._write(path, pieces, os.replace)

        monkeypatch.setattr(type(store), "put_pieces", full)
    elif where == "the bounds":
        expected = RuntimeError
        monkeypatch.setattr(joining, "_lookup", _raise)
    else:
        expected = RuntimeError
        monkeypatch.setattr(pages, "write_index_file", _raise)
    with tiny(), pytest.raises(expected):
        btree.build(plan, snapshot.world, stage_of(snapshot.world))
    assert not [path for path in (tmp_path / "t" / "_indices").rglob("*") if path.is_file()]


def _raise(*given: Any, **options: Any) -> Any:
    raise RuntimeError("no")
