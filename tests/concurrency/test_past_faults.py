"""A fault at every storage call of a change that is rebased past a compaction; and compactions at every call of it.

Afterwards a fresh reader finds the version that the compaction made, or the one after it, whole. A change that returned
is there. One that failed with anything but CommitUnknown is not there, left nothing behind, and works when run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pytest
from tests.concurrency.leftovers import unreferenced
from tests.concurrency.past import Attempts, counted
from tests.concurrency.stage import (
    ADDRESS,
    Judged,
    copied,
    listing,
    makes_sense,
    new_store,
    on_stage,
    set_up,
    within,
)
from tests.depth import deep
from tests.property.row_model import AddColumns, Change, Delete, Model, Update, Values, created, ids_in, literal, plus

import tablewright as tw
from tablewright.errors import CommitUnknown, InternalError, TablewrightError
from tablewright.storage import Store
from tablewright.testing import (
    EVERY_FAULT,
    Call,
    DenyCreation,
    Fault,
    FaultyStore,
    Pause,
    SimulatedCrash,
    StaleList,
    at_call,
    seeded_world,
)

Rows = dict[int, Values]


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables stand in the test's own world; a writer is one thread, so that its calls come in one order."""
    set_up(monkeypatch)
    monkeypatch.setattr("tablewright.engine.local.default_threads", lambda: 1)
    monkeypatch.setattr("tablewright.data.prefetch._ahead", lambda function, items, window: map(function, items))
    monkeypatch.setattr("tablewright.data.prefetch._HELPERS", 0)


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Attempts]:
    with counted(monkeypatch) as found:
        yield found


SOME = frozenset({1, 4, 8})
CHANGES: dict[str, Change] = {
    "delete": Delete(ids_in(SOME)),
    "update columns": Update({"a": plus("a", 100), "st.x": literal(0)}, ids_in(SOME), "rewrite_columns"),
    "delete a fragment": Delete(ids_in({0, 1, 2})),
    "update rows": Update({"a": plus("a", 100)}, ids_in(SOME), "rewrite_rows"),
    "add columns": AddColumns("n", pa.int64(), plus("id", 1)),
}
IN_CI = [("delete", False), ("update columns", True)]
ON_TABLES = IN_CI + [
    (name, stable) for name in CHANGES for stable in (False, True) if deep(1, 2) > 1 and (name, stable) not in IN_CI
]
"""Each change with addresses and with stable row ids."""


@dataclass(frozen=True)
class Scene:
    """A store with a table that was compacted after version 2: its model, its objects, and what a reader finds."""

    store: Store
    model: Model
    objects: set[str]

    @property
    def before(self) -> tuple[int, Rows]:
        return 5, self.model.values()

    def after(self, change: Change) -> tuple[int, Rows]:
        return 6, change.after(self.model, 6).values()


def _scene(*, stable: bool) -> Scene:
    """Three fragments of three rows, row 7 deleted; then row 3 was deleted and all was compacted."""
    store = new_store()

    def make() -> Model:
        model = created(tw, ADDRESS, 9, per_file=3, stable=stable)
        tw.dataset(ADDRESS).delete("id = 7")
        tw.dataset(ADDRESS).delete("id = 3")
        _compact(4)
        return model

    model = Delete(ids_in({3, 7})).after(on_stage(store, make, seed=99), 2)
    return Scene(store, model, listing(store))


def _compact(rows: int) -> None:
    tw.dataset(ADDRESS).optimize.compact_files(
        target_rows_per_fragment=rows, materialize_deletions_threshold=0.0, num_threads=1
    )


def _run(change: Change) -> None:
    """By a handle that has stayed at version 2."""
    change.run(tw, tw.dataset(ADDRESS).checkout_version(2))


def newest(store: Store) -> tuple[int, Rows]:
    """The newest version and its rows, as a fresh reader finds them."""

    def read() -> tuple[int, Rows]:
        dataset = tw.dataset(ADDRESS)
        dataset.validate()
        found = dataset.to_table().to_pylist()
        rows = {row["id"]: row for row in found}
        assert len(rows) == len(found), "a row is there twice"
        return dataset.version, rows

    return on_stage(store, read)


def leftovers(store: Store) -> set[str]:
    return on_stage(store, lambda: unreferenced(tw.dataset(ADDRESS), listing(store)))


def _outcome(store: Store, change: Change) -> BaseException | None:
    try:
        on_stage(store, lambda: _run(change), seed=7)
    except InternalError:
        raise
    except (TablewrightError, SimulatedCrash) as error:
        return error
    return None


def _judge(scene: Scene, change: Change, store: Store, error: BaseException | None, call: Call, where: str) -> None:
    after, found = scene.after(change), newest(store)
    assert found in (scene.before, after), where
    assert scene.objects <= listing(store), f"{where}: files of older versions are gone"
    if error is None:
        assert found == after, f"{where}: it returned, and nothing is there"
        assert call.method == "delete" or not leftovers(store), f"{where}: left behind beside the new version"
    elif not isinstance(error, SimulatedCrash | CommitUnknown):
        assert found == scene.before, f"{where}: it reported {error!r}, and yet it is there"
        assert listing(store) <= scene.objects, f"{where}: left behind after {error!r}"
    if found == scene.before:
        on_stage(store, lambda: _run(change), seed=8)
        assert newest(store) == after, f"{where}: running it again"


def _calls(scene: Scene, change: Change) -> tuple[Call, ...]:
    recording = FaultyStore(copied(scene.store))
    assert _outcome(recording, change) is None
    return recording.calls


FAULTS: tuple[Fault, ...] = (*EVERY_FAULT, DenyCreation(), StaleList(lambda path: True))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stable"), ON_TABLES)
def test_a_fault_at_every_call(name: str, stable: bool, attempts: Attempts) -> None:
    scene, change, judged = _scene(stable=stable), CHANGES[name], Judged()
    attempts.forget()
    calls = _calls(scene, change)
    assert attempts.commits == [0], attempts.conflicts
    for call in calls:
        for fault in FAULTS:
            if makes_sense(fault, call):
                store = copied(scene.store)
                error = _outcome(FaultyStore(store, at_call(call.index, fault)), change)
                if judged.is_new(store, error):
                    _judge(scene, change, store, error, call, f"{fault} at {call}")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stable"), ON_TABLES)
def test_a_compaction_at_every_call(name: str, stable: bool, attempts: Attempts) -> None:
    """Ours is paused, another compaction commits. Ours goes on, and runs once."""
    scene, change = _scene(stable=stable), CHANGES[name]
    for call in _calls(scene, change)[:: 1 if deep(1, 2) > 1 else 3]:
        store = copied(scene.store)

        def compact(_: object, store: Store = store) -> None:
            with within(seeded_world(store, 5)):
                _compact(1000)

        paused = FaultyStore(store, at_call(call.index, Pause(compact)))
        attempts.forget()
        attempts.commits = []
        on_stage(paused, lambda paused=paused: _run(change), seed=7)  # type: ignore[misc]
        assert not attempts.conflicts, f"compaction at {call}"
        version, rows = newest(store)
        assert rows == change.after(scene.model, version).values(), f"compaction at {call}"
        assert not leftovers(store), f"compaction at {call}"
