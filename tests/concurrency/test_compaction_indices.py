"""Compactions that remap indices or defer it, with a fault at every storage call, and beside writers and index builds.

Afterwards the index answers for exactly the rows that it covers, at their addresses of now; no file of an index is left
that no version names. A compaction that was not disturbed leaves every index with all rows that it covered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.concurrency.scene import FAULTS, leftovers, one_thread, outcome_of
from tests.concurrency.stage import ADDRESS, Judged, copied, makes_sense, new_store, on_stage, set_up
from tests.depth import stride

import tablewright as tw
from tablewright.errors import CommitUnknown, CompactionIncomplete
from tablewright.format.index_kinds import BTREE, is_system, kind_of
from tablewright.indices.btree import find_rows
from tablewright.indices.reuse import reused_coverage
from tablewright.storage import Store
from tablewright.testing import Call, FaultyStore, Pause, SimulatedCrash, at_call

WAYS = pytest.mark.parametrize("way", ["remap", "defer", "stable"])


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(monkeypatch)
    one_thread(monkeypatch)
    monkeypatch.setattr("tablewright.jobs.compact.spread", lambda function, items: [function(item) for item in items])


@dataclass(frozen=True)
class Scene:
    """Four fragments of three rows, row 7 deleted, with a BTREE, a BITMAP and a ZONEMAP."""

    store: Store
    way: str

    def compact(self) -> Any:
        options = {"defer_index_remap": True} if self.way == "defer" else {}
        return tw.dataset(ADDRESS).optimize.compact_files(target_rows_per_fragment=5, **options)


def scene_of(way: str) -> Scene:
    store = new_store()

    def make() -> None:
        values = {"id": range(12), "b": [f"b{n % 3}" for n in range(12)], "z": range(12)}
        dataset = tw.write_dataset(values, ADDRESS, max_rows_per_file=3, enable_stable_row_ids=way == "stable")
        for column, kind in (("id", "BTREE"), ("b", "BITMAP"), ("z", "ZONEMAP")):
            dataset.create_scalar_index(column, kind)
        dataset.delete("id = 7")

    on_stage(store, make, seed=99)
    return Scene(store, way)


def check(store: Store, wanted: set[int]) -> dict[str, set[int]]:
    """Rows are these, and BTREEs find each covered one where it is. The live fragments that no segment covers, by
    index.
    """

    def read() -> dict[str, set[int]]:
        dataset = tw.dataset(ADDRESS)
        dataset.validate()
        rows = dataset.scanner(columns=["id"], with_row_address=True).to_table()
        places = dict(zip(rows["id"].to_pylist(), rows["_rowaddr"].to_pylist(), strict=True))
        assert set(places) == wanted and rows.num_rows == len(wanted)
        snapshot = dataset._snapshot
        left: dict[str, set[int]] = {}
        for index in (each for each in snapshot.manifest.indices if not is_system(each)):
            covered = reused_coverage(snapshot, index)
            live = set(snapshot.fragments.ids.tolist())
            left[index.name] = left.get(index.name, live) - set(covered)
            if kind_of(index) is BTREE:
                keys = pa.array(range(200), pa.int64())
                positions, addresses = find_rows(snapshot, (index,), keys)
                found = dict(zip(positions.tolist(), addresses.tolist(), strict=True))
                assert found == {id: at for id, at in places.items() if at >> 32 in covered}
                assert len(found) == len(np.unique(addresses))
        return left

    return on_stage(store, read)


ROWS = set(range(12)) - {7}


@pytest.mark.slow
@WAYS
def test_a_fault_at_every_call(way: str) -> None:
    scene, judged = scene_of(way), Judged()
    recording = FaultyStore(copied(scene.store))
    assert outcome_of(recording, scene.compact) is None
    assert check(recording, ROWS) == {"id_idx": set(), "b_idx": set(), "z_idx": set()}
    calls = recording.calls
    for call in calls[:: stride(4)]:
        for fault in FAULTS:
            if not makes_sense(fault, call):
                continue
            store, where = copied(scene.store), f"{fault} at {call}"
            error = outcome_of(FaultyStore(store, at_call(call.index, fault)), scene.compact)
            if not judged.is_new(store, error):
                continue
            left = check(store, ROWS)
            if error is None:
                assert not any(left.values()), f"{where}: coverage was lost: {left}"
            if not isinstance(error, SimulatedCrash | CommitUnknown | CompactionIncomplete):
                assert not leftovers(store), f"{where}: left behind"
            on_stage(store, scene.compact, seed=8)
            assert not any(check(store, ROWS).values()), f"{where}: running it again"
    assert {None, SimulatedCrash} < judged.endings


# ------------------------------------------------------------------------------------------------- while others commit
def recreate() -> None:
    tw.dataset(ADDRESS).create_scalar_index("id", "BTREE", replace=True)


def add_index() -> None:
    tw.dataset(ADDRESS).create_scalar_index("id", "BTREE", name="second")


def drop() -> None:
    tw.dataset(ADDRESS).drop_index("id_idx")


def optimize() -> None:
    tw.dataset(ADDRESS).optimize.optimize_indices()


def delete() -> None:
    tw.dataset(ADDRESS).delete("id = 1")


def append() -> None:
    tw.write_dataset({"id": [100], "b": ["b0"], "z": [100]}, ADDRESS, mode="append")


def rewrite_column() -> None:
    source = pa.table({"id": [0, 1, 2, 3], "z": [7, 7, 7, 7]})
    tw.dataset(ADDRESS).merge_insert("id").when_matched_update_all().execute(source)


def compact_some() -> None:
    """T20, case 9: another compaction of other fragments remaps the same segments."""
    tw.dataset(ADDRESS).optimize.compact_files(target_rows_per_fragment=5, excluded_fragment_ids=[0, 1])


def compact_deferred() -> None:
    if not tw.dataset(ADDRESS).has_stable_row_ids:
        tw.dataset(ADDRESS).optimize.compact_files(excluded_fragment_ids=[2, 3], defer_index_remap=True)


CHANGES: dict[Callable[[], None], set[int]] = {
    recreate: ROWS,
    add_index: ROWS,
    drop: ROWS,
    optimize: ROWS,
    delete: ROWS - {1},
    append: ROWS | {100},
    rewrite_column: ROWS,
    compact_some: ROWS,
    compact_deferred: ROWS,
}
KEEPS_COVERAGE = (recreate, add_index, drop, optimize, delete, compact_some, compact_deferred)


@pytest.mark.slow
@WAYS
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_T20_another_commits_at_every_call(way: str, change: Callable[[], None]) -> None:
    scene = scene_of(way)
    recording = FaultyStore(copied(scene.store))
    assert outcome_of(recording, scene.compact) is None
    step = stride(10)
    for number in range(list(CHANGES).index(change) % step, len(recording.calls), step):
        store, done = copied(scene.store), []

        def commit(call: Call, store: Store = store, done: list[int] = done) -> None:
            on_stage(store, change, seed=50)
            done.append(1)

        error = outcome_of(FaultyStore(store, at_call(number, Pause(commit))), scene.compact)
        assert error is None and done, f"at call {number}: {error!r}"
        left = check(store, CHANGES[change])
        if change in KEEPS_COVERAGE:
            assert not any(left.values()), f"at call {number}: coverage was lost: {left}"
        assert not leftovers(store), f"at call {number}"


@pytest.mark.slow
@WAYS
@pytest.mark.parametrize("verb", [recreate, optimize], ids=["build", "optimize"])
def test_an_index_is_built_while_the_table_is_compacted(way: str, verb: Callable[[], None]) -> None:
    """The other order: the compaction is committed at some call of the build; the new index has new addresses."""
    scene = scene_of(way)
    on_stage(scene.store, append, seed=98)
    recording = FaultyStore(copied(scene.store))
    assert outcome_of(recording, verb) is None
    for number in range(0, len(recording.calls), stride(6)):
        store = copied(scene.store)
        pause = Pause(lambda call, store=store: on_stage(store, scene.compact, seed=50))
        error = outcome_of(FaultyStore(store, at_call(number, pause)), verb)
        assert error is None, f"at call {number}: {error!r}"
        left = check(store, ROWS | {100})
        assert not left["id_idx"], f"at call {number}: coverage was lost: {left}"
        assert not leftovers(store), f"at call {number}"
