"""A fault at every storage call of a delete, an update and new columns; and such changes interleaved at every call.

What must hold after a fault is in `scene`. Writers switched at every call by a seed come out in some serial order, and
each counts the rows that were its own in that order.
"""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.concurrency.scene import (
    Rows,
    Scene,
    calls_of,
    fault_at_every_call,
    judge,
    leftovers,
    newest,
    one_thread,
    small_scene,
)
from tests.concurrency.stage import (
    ADDRESS,
    Judged,
    copied,
    has_effect,
    listing,
    new_store,
    on_stage,
    set_up,
    within,
)
from tests.depth import deep, stride
from tests.property.row_model import (
    AddColumns,
    Append,
    Change,
    Delete,
    Model,
    Update,
    ids_in,
    literal,
    new_rows,
    plus,
)

import tablewright as tw
from tablewright.data.encoder import DataFileWriter
from tablewright.errors import CommitUnknown, StorageError
from tablewright.storage import Store, open_store
from tablewright.testing import (
    EVERY_FAULT,
    Call,
    CrashAfter,
    CrashBefore,
    DenyCreation,
    FailBefore,
    Fault,
    FaultyStore,
    LoseReply,
    Plan,
    SimulatedCrash,
    at_call,
    interleave,
    on_call,
    seeded_world,
)


@pytest.fixture(autouse=True)
def _stage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables stand in the test's own world; a writer is one thread, so that its calls come in one order."""
    set_up(monkeypatch)
    if "several_threads" not in request.node.name:
        one_thread(monkeypatch)


# ------------------------------------------------------------------------------------------------------- the changes

SOME, WHOLE = frozenset({1, 4}), frozenset({0, 1, 2})
"""Rows of two fragments; all rows of the first one."""

CHANGES: dict[str, Change] = {
    "delete": Delete(ids_in(SOME)),
    "delete a fragment": Delete(ids_in(WHOLE | {3})),
    "update rows": Update({"a": plus("a", 100)}, ids_in(SOME), "rewrite_rows"),
    "update columns": Update({"a": plus("a", 100), "st.x": literal(0)}, ids_in(SOME), "rewrite_columns"),
    "update both ways": Update({"a": literal(5), "b": literal("x"), "st.x": literal(9)}, ids_in(WHOLE | {4}), "auto"),
    "add columns": AddColumns("n", pa.int64(), plus("id", 1)),
}
ON_TABLES = [
    pytest.param(name, stable, id=f"{name}, {'stable' if stable else 'addresses'}")
    for stable in (False, True)
    for number, name in enumerate(CHANGES)
    if deep(1, 2) > 1 or (number + stable) % 2 == 0
]
"""Each change on both kinds of table; in CI they take turns."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stable"), ON_TABLES)
def test_a_fault_at_every_call(name: str, stable: bool) -> None:
    endings = fault_at_every_call(small_scene(new_store(), stable=stable), CHANGES[name])
    assert {None, SimulatedCrash, StorageError} <= endings


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("name", ["delete", "delete a fragment", "update rows", "update columns"])
def test_a_fault_at_every_call_of_a_change_by_key(monkeypatch: pytest.MonkeyPatch, name: str, stable: bool) -> None:
    """An index finds the rows: a scan is never planned."""

    def scans(*given: object) -> None:
        raise AssertionError("a scan was planned")

    scene = small_scene(new_store(), stable=stable)
    on_stage(scene.store, lambda: tw.dataset(ADDRESS).create_scalar_index("id", "BTREE"))
    indexed = replace(scene, objects=listing(scene.store), version=scene.version + 1)
    monkeypatch.setattr("tablewright.reading.lookup._rows_worth_taking", lambda *given: 64)
    monkeypatch.setattr("tablewright.reading.row_search.plan_match", scans)
    endings = fault_at_every_call(indexed, CHANGES[name], step=stride(3))
    assert {None, SimulatedCrash, StorageError} <= endings


@pytest.mark.slow
@pytest.mark.parametrize("name", ["delete", "update rows"])
def test_a_fault_at_every_call_amid_a_loop_of_changes(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """An update before has left a fragment that the index does not cover, with one of the rows: no scan is planned."""

    def scans(*given: object) -> None:
        raise AssertionError("a scan was planned")

    scene = small_scene(new_store(), stable=False)
    on_stage(scene.store, lambda: tw.dataset(ADDRESS).create_scalar_index("id", "BTREE"))
    on_stage(scene.store, lambda: tw.dataset(ADDRESS).update({"a": "a"}, where="id = 1", write_mode="rewrite_rows"))
    begun = replace(scene, objects=listing(scene.store), version=scene.version + 2)
    monkeypatch.setattr("tablewright.reading.lookup._rows_worth_taking", lambda *given: 64)
    monkeypatch.setattr("tablewright.reading.row_search.plan_match", scans)
    endings = fault_at_every_call(begun, CHANGES[name], step=stride(3))
    assert {None, SimulatedCrash, StorageError} <= endings


@dataclass(frozen=True)
class Numbers:
    """What a table of the columns ``id`` and ``n`` holds."""

    rows: dict[int, dict[str, int]]

    def values(self) -> dict[int, dict[str, int]]:
        return self.rows


@dataclass(frozen=True)
class Raise:
    """One row moves, with another number."""

    id: int

    def run(self, lib: Any, dataset: Any) -> Any:
        return dataset.update({"n": "n + 100"}, where=f"id = {self.id}", write_mode="rewrite_rows")

    def after(self, model: Numbers, version: int) -> Numbers:
        return Numbers(model.rows | {self.id: {"id": self.id, "n": model.rows[self.id]["n"] + 100}})


@pytest.mark.slow
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_a_fault_at_every_call_of_a_file_of_one_row(monkeypatch: pytest.MonkeyPatch, stable: bool) -> None:
    """Of numbers alone, as an earlier file with other values: the codec is not asked."""
    store = new_store()
    model: Any = Numbers({id: {"id": id, "n": id} for id in range(9)})

    def make() -> Any:
        made = model
        ds = tw.write_dataset(
            pa.Table.from_pylist(list(model.rows.values())), ADDRESS, max_rows_per_file=3, enable_stable_row_ids=stable
        )
        for change in map(Raise, range(5)):
            change.run(tw, ds)
            made = change.after(made, 0)
        return made

    def encoded(*given: object) -> None:
        raise AssertionError("the codec was asked")

    model = on_stage(store, make, seed=99)
    monkeypatch.setattr(DataFileWriter, "_encoded", encoded)
    change: Any = Raise(7)
    endings = fault_at_every_call(Scene(store, model, listing(store), version=6), change, step=stride(3))
    assert {None, SimulatedCrash, StorageError} <= endings


@pytest.mark.slow
@pytest.mark.parametrize("name", ["delete", "update both ways", "add columns"])
def test_a_fault_while_several_threads_work(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls come in any order then; each still is the one that fails, once."""
    monkeypatch.setattr("tablewright.engine.local.default_threads", lambda: 3)
    scene, change, judged = small_scene(new_store(), stable=True), CHANGES[name], Judged()
    for index in range(len(calls_of(scene, change))):
        for fault in EVERY_FAULT:
            store = copied(scene.store)
            error = scene.outcome(FaultyStore(store, at_call(index, fault)), change)
            judge(scene, change, store, error, f"{fault} at call {index}", judged)


@pytest.mark.parametrize("name", CHANGES)
def test_the_lost_reply_of_a_commit_is_settled(name: str) -> None:
    """The manifest was created, the answer got lost or says no: it is ours, and the change succeeds."""
    scene, change = small_scene(new_store(), stable=True), CHANGES[name]
    for fault in (LoseReply(), DenyCreation()):
        store = copied(scene.store)
        plan = on_call(fault, method="put_if_absent", path="_versions/*", nth=0)
        assert scene.outcome(FaultyStore(store, plan), change) is None
        assert newest(store) == scene.after(change)
        assert not leftovers(store)


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("fault", [FailBefore(), LoseReply()], ids=["fails", "loses replies"])
def test_a_store_that_falls_silent_at_the_commit(name: str, fault: Fault) -> None:
    """From the first try of the commit on, no call about versions is answered: it may be there, so its files stay."""
    scene, change = small_scene(new_store(), stable=False), CHANGES[name]
    store, silent = copied(scene.store), False

    def plan(call: Call) -> Fault | None:
        nonlocal silent
        silent = silent or call.method == "put_if_absent"
        return fault if silent and call.path.startswith("_versions") else None

    error = scene.outcome(FaultyStore(store, plan), change)
    assert isinstance(error, CommitUnknown | StorageError)
    if isinstance(error, CommitUnknown) or isinstance(fault, LoseReply):
        assert isinstance(error, CommitUnknown), "a commit that happened was reported as failed"
        written = {path.partition("/")[0] for path in listing(store) - scene.objects}
        assert written & {"data", "_deletions"}, "files that the new version may need are gone"
    assert newest(store) == (scene.after(change) if isinstance(fault, LoseReply) else scene.before)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_many_faults_at_once(name: str) -> None:
    """A store on a bad day: every call may fail or lose its reply; the writer tries until it is through."""
    scene, change = small_scene(new_store(), stable=True), CHANGES[name]
    wanted = scene.after(change)
    for seed in range(deep(4, 6)):
        store, chance = copied(scene.store), random.Random(seed)

        def plan(call: Call, chance: random.Random = chance) -> Fault | None:
            drawn = chance.random()
            return FailBefore() if drawn < 0.06 else LoseReply() if drawn < 0.12 else None

        for _ in range(80):
            error = scene.outcome(FaultyStore(store, plan), change)
            if error is None or (isinstance(error, CommitUnknown) and newest(store) == wanted):
                break
        assert newest(store) == wanted, f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_faults_on_a_real_directory(name: str, tmp_path: Path) -> None:
    """The same on the local file system, where pylance is the fresh reader."""
    import lance

    change = CHANGES[name]
    scene = small_scene(open_store(str(tmp_path / "master")), stable=True)
    shutil.copytree(tmp_path / "master", tmp_path / "counted")
    recording = FaultyStore(open_store(str(tmp_path / "counted")))
    assert scene.outcome(recording, change) is None
    for call in recording.calls:
        for number, fault in enumerate((LoseReply(), CrashAfter(), CrashBefore())[: 3 if has_effect(call) else 2]):
            place = tmp_path / f"{call.index}-{number}"
            shutil.copytree(tmp_path / "master", place)
            error = scene.outcome(FaultyStore(open_store(str(place)), at_call(call.index, fault)), change)
            dataset = lance.dataset(str(place))
            dataset.validate()
            found = {row["id"]: row for row in dataset.to_table().to_pylist()}
            assert (dataset.version, found) in (scene.before, scene.after(change)), f"{fault} at {call}"
            assert error is not None or dataset.version == 3
            shutil.rmtree(place)


# ------------------------------------------------------------------------------------------------ interleaved writers


def _update(ids: set[int], mode: str, column: str = "a", step: int = 100) -> Update:
    return Update({column: plus(column, step)}, ids_in(ids), mode)


def _append(start: int) -> Callable[[Model], Append]:
    return lambda model: Append(new_rows(model, start, 2), model)


RACES: dict[str, list[Change | Callable[[Model], Append]]] = {
    "deletes of the same rows": [Delete(ids_in({1, 2, 4})), Delete(ids_in({2, 4, 5}))],
    "deletes of other rows": [Delete(ids_in({0, 3})), Delete(ids_in({1, 4})), Delete(ids_in({2, 5}))],
    "rows updated by both": [_update({1, 4}, "rewrite_rows"), _update({4, 5}, "rewrite_rows", step=10)],
    "columns updated by both": [_update({1, 4}, "rewrite_columns"), _update({4, 5}, "rewrite_columns", step=10)],
    "rows and columns": [_update({1, 4}, "rewrite_rows"), _update({4, 5}, "rewrite_columns", step=10)],
    "delete and columns": [Delete(ids_in({1, 4})), _update({4, 5}, "rewrite_columns")],
    "delete and rows": [Delete(ids_in({1, 4})), _update({4, 5}, "rewrite_rows")],
    "columns side by side": [
        _update({1, 4}, "rewrite_columns"),
        Update({"b": literal("b")}, ids_in({1, 4}), "rewrite_columns"),
    ],
    "each reads what the other writes": [
        Update({"a": plus("id", 50)}, ids_in({1, 4}), "rewrite_columns"),
        Update({"st.x": plus("a", 1)}, ids_in({1, 4}), "rewrite_columns"),
    ],
    "new columns, delete, append": [AddColumns("n", pa.int64(), plus("a", 1)), Delete(ids_in({1})), _append(100)],
    "new columns and updates": [
        AddColumns("n", pa.int64(), plus("a", 1)),
        _update({1, 4}, "rewrite_rows"),
        _update({5}, "rewrite_columns"),
    ],
    "three of a kind": [_update({1, 4}, "auto", step=step) for step in (1, 10, 100)],
    "a fragment goes": [Delete(ids_in(WHOLE)), _update({1, 4}, "rewrite_rows"), Delete(ids_in({2, 3}))],
}
SEEDS = 8


def _race(store: Store, changes: list[Change], seed: int, plans: list[Plan | None], version: int | None) -> list[Any]:
    def run(number: int, change: Change, own: Store) -> Any:
        with within(seeded_world(own, 1000 * seed + number)):
            return change.run(tw, tw.dataset(ADDRESS, version=version))

    tasks = [lambda own, n=n, change=change: run(n, change, own) for n, change in enumerate(changes)]
    return interleave(store, tasks, seed, plans)


def _serial(model: Model, changes: list[Change]) -> list[tuple[Rows, list[Any]]]:
    """For every order: the rows in the end, and what each change counts."""
    results = []
    for order in itertools.permutations(range(len(changes))):
        after, counts = model, [None] * len(changes)
        for number in order:
            change = changes[number]
            counts[number] = change.count(after) if isinstance(change, Delete | Update) else None
            after = change.after(after, 3)
        results.append((after.values(), counts))
    return results


def _check(scene: Scene, store: Store, changes: list[Change], outcomes: list[Any], where: str) -> None:
    for outcome in outcomes:
        assert outcome.error is None, f"{where}: {outcome.error!r}"
    version, found = newest(store)
    assert version == 2 + len(changes), where
    counts = [
        outcome.result if isinstance(change, Delete | Update) else None
        for change, outcome in zip(changes, outcomes, strict=True)
    ]
    assert (found, counts) in _serial(scene.model, changes), f"{where}: {found}, counts {counts}"
    assert not leftovers(store), where


def _start(name: str, *, stable: bool) -> tuple[Scene, list[Change]]:
    scene = small_scene(new_store(), stable=stable)
    return scene, [change(scene.model) if callable(change) else change for change in RACES[name]]


@pytest.mark.slow
@pytest.mark.parametrize("name", RACES)
def test_every_race_is_some_serial_order(name: str) -> None:
    """Handles are opened before the race, or within it: half of the seeds each, on both kinds of table."""
    for stable in (False, True):
        scene, changes = _start(name, stable=stable)
        for seed in range(stable, 2 * SEEDS, 3 if deep(1, 2) > 1 else 5):
            store = copied(scene.store)
            outcomes = _race(store, changes, seed, [], 2 if seed % 2 else None)
            _check(scene, store, changes, outcomes, f"stable {stable}, seed {seed}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["deletes of the same rows", "rows updated by both", "columns updated by both"])
def test_races_with_lost_replies(name: str) -> None:
    """A commit of each writer gets no answer: both have to look who holds the name."""
    scene, changes = _start(name, stable=True)
    for seed in range(SEEDS):
        store = copied(scene.store)
        plans: list[Plan | None] = [
            on_call(LoseReply(), method="put_if_absent", path="_versions/*", nth=seed % 2) for _ in changes
        ]
        _check(scene, store, changes, _race(store, changes, seed, plans, 2), f"seed {seed}")


@pytest.mark.slow
def test_the_survivor_of_a_crash_goes_on() -> None:
    """One writer dies somewhere; the other comes through, past what the dead one may have committed."""
    scene, changes = _start("rows and columns", stable=True)
    for seed in range(2 * SEEDS):
        store = copied(scene.store)
        plans: list[Plan | None] = [at_call(3 + seed, CrashAfter()), None]
        dead, alive = _race(store, changes, seed, plans, 2)
        assert alive.error is None, f"seed {seed}: {alive.error!r}"
        version, found = newest(store)
        committed = changes if version == 4 else changes[1:]
        assert dead.error is not None or committed == changes
        assert found in [rows for rows, _ in _serial(scene.model, committed)], f"seed {seed}"


def test_the_same_seed_is_the_same_history() -> None:
    scene, changes = _start("rows and columns", stable=False)
    histories = []
    for _ in range(2):
        store = copied(scene.store)
        _race(store, changes, 11, [], 2)
        histories.append((newest(store), sorted(listing(store))))
    assert histories[0] == histories[1]
