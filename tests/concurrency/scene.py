"""A small table before a change, the faults that a test tries on the change, and the judgement of what they leave.

Afterwards a fresh reader finds the version before the change or the one after it, exactly once and whole. A change that
returned is there. One that failed with anything but CommitUnknown is not there, left nothing behind, and works when run
again. After CommitUnknown its files stay, for it may be there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.concurrency.leftovers import unreferenced
from tests.concurrency.stage import ADDRESS, Judged, copied, listing, makes_sense, on_stage
from tests.property.row_model import Change, Delete, Model, Values, created, ids_in

import tablewright as tw
from tablewright.errors import CommitUnknown, InternalError, TablewrightError
from tablewright.storage import Store
from tablewright.testing import (
    EVERY_FAULT,
    Call,
    DenyCreation,
    Fault,
    FaultyStore,
    SimulatedCrash,
    StaleList,
    at_call,
)

__all__ = [
    "FAULTS",
    "Rows",
    "Scene",
    "calls_of",
    "fault_at_every_call",
    "judge",
    "leftovers",
    "newest",
    "one_thread",
    "outcome_of",
    "small_scene",
]

Rows = dict[int, Values]

FAULTS: tuple[Fault, ...] = (*EVERY_FAULT, DenyCreation(), StaleList(lambda path: True))


def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer is one thread from now on, in this test, so that its calls come in one order."""
    monkeypatch.setattr("tablewright.engine.local.default_threads", lambda: 1)
    monkeypatch.setattr("tablewright.data.prefetch._ahead", lambda function, items, window: map(function, items))


@dataclass(frozen=True)
class Scene:
    """A store with a table at `version`: its model, its objects, and the version at which the writer's handle is."""

    store: Store
    model: Model
    objects: set[str]
    version: int = 2
    read_version: int | None = None

    @property
    def before(self) -> tuple[int, Rows]:
        return self.version, self.model.values()

    def after(self, change: Change) -> tuple[int, Rows]:
        return self.version + 1, change.after(self.model, self.version + 1).values()

    def run(self, change: Change) -> Any:
        return change.run(tw, tw.dataset(ADDRESS, version=self.read_version))

    def outcome(self, store: Store, change: Change) -> BaseException | None:
        """How the change ends on `store`."""
        return outcome_of(store, lambda: self.run(change))


def small_scene(store: Store, *, stable: bool) -> Scene:
    """Three fragments of three rows; the second version has deleted row 7."""

    def make() -> Model:
        model = created(tw, ADDRESS, 9, per_file=3, stable=stable)
        tw.dataset(ADDRESS).delete("id = 7")
        return model

    model = Delete(ids_in({7})).after(on_stage(store, make, seed=99), 2)
    return Scene(store, model, listing(store))


def newest(store: Store) -> tuple[int, Rows]:
    """The newest version and its rows, as a fresh reader finds them; every version before it is there too."""

    def read() -> tuple[int, Rows]:
        dataset = tw.dataset(ADDRESS)
        dataset.validate()
        assert [entry["version"] for entry in dataset.versions()] == list(range(1, dataset.version + 1))
        found = dataset.to_table().to_pylist()
        rows = {row["id"]: row for row in found}
        assert len(rows) == len(found), "a row is there twice"
        return dataset.version, rows

    return on_stage(store, read)


def leftovers(store: Store) -> set[str]:
    """Files that no version refers to."""
    return on_stage(store, lambda: unreferenced(tw.dataset(ADDRESS), listing(store)))


def outcome_of(store: Store, action: Callable[[], Any], seed: int = 7) -> BaseException | None:
    """How `action` ends on `store`: an error that a caller may get, a crash, or None. Other errors are raised."""
    try:
        on_stage(store, action, seed)
    except InternalError:
        raise
    except (TablewrightError, SimulatedCrash) as error:
        return error
    return None


def calls_of(scene: Scene, change: Change) -> tuple[Call, ...]:
    """The storage calls of a change that succeeds."""
    recording = FaultyStore(copied(scene.store))
    assert scene.outcome(recording, change) is None
    assert len(recording.calls) >= 6
    return recording.calls


def judge(
    scene: Scene,
    change: Change,
    store: Store,
    error: BaseException | None,
    where: str,
    judged: Judged,
    *,
    may_leave: bool = False,
) -> None:
    """What a fresh reader of `store` may find after the change ended with `error`.

    `may_leave`: the fault hit the removal of a file that is no longer needed, which may stay.
    """
    if not judged.is_new(store, error):
        return
    after = scene.after(change)
    found = newest(store)
    assert found in (scene.before, after), where
    assert scene.objects <= listing(store), f"{where}: files of older versions are gone"
    if error is None:
        assert found == after, f"{where}: it returned, and nothing is there"
        assert may_leave or not leftovers(store), f"{where}: left behind beside the new version"
    elif not isinstance(error, SimulatedCrash | CommitUnknown):
        assert found == scene.before, f"{where}: it reported {error!r}, and yet it is there"
        assert listing(store) <= scene.objects, f"{where}: left behind after {error!r}"
    if found == scene.before:
        on_stage(store, lambda: scene.run(change), seed=8)
        assert newest(store) == after, f"{where}: running it again"


def fault_at_every_call(
    scene: Scene, change: Change, *, may_leave: bool = False, step: int = 1
) -> set[type[BaseException] | None]:
    """Try every fault at every storage call of a change. Returns the ends that it came to.

    `may_leave`: the change removes files that it no longer needs; one whose removal fails may stay.
    `step`: with more than 1, one of this many faults is tried.
    """
    judged = Judged()
    cases = [(call, fault) for call in calls_of(scene, change) for fault in FAULTS if makes_sense(fault, call)]
    for call, fault in cases[::step]:
        store = copied(scene.store)
        error = scene.outcome(FaultyStore(store, at_call(call.index, fault)), change)
        stays = may_leave and call.method == "delete"
        judge(scene, change, store, error, f"{fault} at {call}", judged, may_leave=stays)
    return judged.endings
