"""Small data files of a slow store cost one request each, and leave no local file behind."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import tablewright as tw
from tablewright.data.held import small_files_held
from tablewright.errors import CorruptTable
from tablewright.testing import FaultyStore, memory_world
from tablewright.world import World


class Slow(FaultyStore):
    """A store that answers slowly."""

    answers_slowly = True


@pytest.fixture
def world() -> World:
    world = memory_world()
    return replace(world, store=Slow(world.store))


def _table(world: World, rows: int = 20) -> tw.LanceDataset:
    columns = {"id": list(range(rows)), "text": [f"row {number}" for number in range(rows)]}
    return tw.write_dataset(columns, world, max_rows_per_file=1)


def _reads(world: World, since: int) -> Counter[str]:
    assert isinstance(world.store, Slow)
    return Counter(call.path for call in world.store.calls[since:] if call.path.startswith("data/"))


def test_each_file_is_read_once(world: World) -> None:
    ds = _table(world)
    ds.delete("id = 3")
    assert isinstance(world.store, Slow)
    since = len(world.store.calls)
    assert ds.to_table()["id"].to_pylist() == [number for number in range(20) if number != 3]
    assert len(ds.to_table(filter="text != 'row 4'")) == 18
    files = [f"data/{file.path}" for fragment in ds._snapshot.fragments for file in fragment.files]
    assert _reads(world, since) == Counter(dict.fromkeys(files, 2))


def test_no_local_file_is_left(world: World) -> None:
    snapshot = _table(world, 2)._snapshot
    file = snapshot.fragments[0].files[0]
    with small_files_held(snapshot) as context:
        (store, path), (again, _) = context.data_place(file), context.data_place(file)
        place = store.codec_location(path)
        assert place is not None and again.codec_location(path) == place
        assert (store.location, path) == (world.store.location, f"data/{file.path}")
        assert Path(place.uri).read_bytes() == store.get(path) == world.store.get(path)
        assert context.data_place(replace(file, file_size_bytes=1 << 30)) == (world.store, path)
        assert (context.place, context.store_of(None)) == (snapshot.place, world.store)
    assert not os.path.exists(place.uri)
    assert os.path.isdir(os.path.dirname(place.uri))


def test_a_store_that_answers_quickly_is_left_alone() -> None:
    snapshot = _table(memory_world(), 1)._snapshot
    with small_files_held(snapshot) as context:
        assert context is snapshot


def test_a_file_that_is_gone_is_named(world: World) -> None:
    ds = _table(world)
    path = f"data/{ds._snapshot.fragments[7].files[0].path}"
    world.store.delete(path)
    with pytest.raises(CorruptTable, match=rf"{path}.*missing"):
        ds.to_table()
