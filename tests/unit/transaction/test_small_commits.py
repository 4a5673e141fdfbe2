"""The price of a small commit, counted: calls of the store, bytes of the manifest, and calls in Python.

Nothing of it grows with the number of versions or fragments, except the manifest's own bytes (and, for changes that
look for rows, the data files that are read).
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import tablewright as tw
from tablewright.testing import FaultyStore, memory_world
from tablewright.world import World

COMMIT = [
    "list _versions",  # the newest version
    "head _versions",  # is there one above it, which the listing did not show yet? Under its V2 name,
    "head _versions",  # and under its V1 name
    "put _transactions",
    "head _transactions",  # the version that was read is still there
    "put_if_absent _versions",
    "head _transactions",  # the version below ours is still there
]
OPEN = ["list _versions", "get _versions"]


class Ordered(FaultyStore):
    """Lists the newest version first, as object stores do: no hint is written."""

    lists_in_order = True


class Scene:
    """A table of ``fragments`` one-row fragments, in as many versions, and what is asked of its store."""

    def __init__(self, fragments: int, versions: int = 1) -> None:
        world = memory_world()
        self.store = Ordered(world.store)
        self.world: World = replace(world, store=self.store)
        rows = {"id": list(range(fragments)), "text": ["x"] * fragments}
        self.ds = tw.write_dataset(rows, self.world, max_rows_per_file=1)
        for number in range(versions - 1):
            self.ds.update_config({"n": str(number)})

    def calls(self, work: Callable[[Any], object]) -> list[str]:
        """The calls that ``work`` makes, but for those that read data files, by method and directory."""
        begin = len(self.store.calls)
        work(self.ds)
        made = [f"{call.method} {call.path.split('/')[0]}" for call in self.store.calls[begin:]]
        return [call for call in made if call not in ("get data", "get_range data", "head data")]


CHANGES: dict[str, tuple[Callable[[Any], object], list[str]]] = {
    "append": (lambda ds: ds.insert({"id": [-1], "text": ["y"]}), ["put data", *COMMIT]),
    "delete": (lambda ds: ds.delete("id = 0"), COMMIT),
    "update": (lambda ds: ds.update({"text": "'z'"}, where="id = 0"), ["put data", *COMMIT]),
    "upsert": (
        lambda ds: (
            ds.merge_insert("id")
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute({"id": [0], "text": ["z"]})
        ),
        ["put data", *COMMIT],
    ),
    "config": (lambda ds: ds.update_config({"a": "b"}), COMMIT),
}
READS: dict[str, tuple[Callable[[Scene], object], list[str]]] = {
    "open and count": (lambda scene: tw.dataset(scene.world).count_rows(), OPEN),
    "open and list indices": (lambda scene: tw.dataset(scene.world).list_indices(), OPEN),
    "indices": (lambda scene: scene.ds.list_indices(), []),
    "tags": (lambda scene: scene.ds.tags.list(), ["list _refs"]),
    "branches": (lambda scene: scene.ds.branches.list(), ["list _refs"]),
    "latest version": (lambda scene: scene.ds.latest_version, ["list _versions"]),
}


@pytest.mark.parametrize("fragments", [1, 30])
@pytest.mark.parametrize("name", CHANGES)
def test_the_calls_of_a_change_of_one_row(name: str, fragments: int) -> None:
    change, expected = CHANGES[name]
    scene = Scene(fragments)
    assert scene.calls(change) == expected
    assert Scene(fragments, versions=9).calls(change) == expected


@pytest.mark.parametrize("data", [{"id": [7], "text": ["y"]}, None], ids=["columns", "table"])
def test_the_calls_of_an_append_by_address(data: Any) -> None:
    scene = Scene(3)
    rows = scene.ds.to_table(limit=1) if data is None else data
    expected = [*OPEN, "put data", *COMMIT]
    assert scene.calls(lambda _: tw.write_dataset(rows, scene.world, mode="append")) == expected


@pytest.mark.parametrize("name", READS)
def test_the_calls_of_a_look_at_a_table(name: str) -> None:
    look, expected = READS[name]
    for versions in (1, 9):
        scene = Scene(2, versions)
        assert scene.calls(lambda _, scene=scene: look(scene)) == expected


def test_a_list_of_versions_reads_each_manifest_once() -> None:
    scene = Scene(2, versions=9)
    assert scene.calls(lambda ds: ds.versions()) == ["list _versions", *["get _versions"] * 9]


def test_a_manifest_grows_by_the_fragment_that_was_added() -> None:
    scene = Scene(20)
    sizes = []
    for number in range(4):
        scene.ds.insert({"id": [100 + number], "text": ["y"]})
        sizes.append(scene.ds._snapshot.entry.size)
    fragment = len(scene.ds._snapshot.fragments.raw[-1]) + 2  # with its tag and length
    assert [after - before for before, after in itertools.pairwise(sizes)] == [fragment] * 3


def python_calls(work: Callable[[], object]) -> int:
    """How many calls of functions ``work`` makes, built-in ones included, in this thread."""
    made = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return made


def test_no_python_call_for_a_fragment_that_is_not_touched() -> None:
    """300 fragments cost an append, an open and a count no more calls than 40 do."""
    found = []
    for fragments in (40, 300):
        scene = Scene(fragments)
        for number in range(3):  # what is learnt at the first time is not counted
            scene.ds.insert({"id": [-number], "text": ["y"]})
        append = python_calls(lambda scene=scene: scene.ds.insert({"id": [-9], "text": ["y"]}))
        look = python_calls(lambda scene=scene: tw.dataset(scene.world).count_rows())
        found.append((append, look))
    (few_append, few_look), (many_append, many_look) = found
    assert abs(many_append - few_append) < 100, found
    assert abs(many_look - few_look) < 50, found
    assert many_append < 2000, found  # 1,556
    assert many_look < 350, found  # 298; a process that has imported pyspark asks whether it runs: 304


def test_a_handle_that_has_committed_often_pays_no_more() -> None:
    ds = tw.write_dataset({"id": [0], "text": ["x"]}, memory_world())
    made = [python_calls(lambda number=number: ds.insert({"id": [number], "text": ["y"]})) for number in range(60)]
    assert max(made[-5:]) < max(made[5:10]) + 20, made
