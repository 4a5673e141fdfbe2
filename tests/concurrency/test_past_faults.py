"""A fault at every storage call of a change that is rebased past a compaction; and compactions at every call of it.

What must hold after a fault is in `scene`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from tests.concurrency.past import Attempts, counted
from tests.concurrency.scene import Scene, calls_of, fault_at_every_call, leftovers, newest, one_thread
from tests.concurrency.stage import (
    ADDRESS,
    copied,
    listing,
    new_store,
    on_stage,
    set_up,
    within,
)
from tests.depth import deep, stride
from tests.property.row_model import AddColumns, Change, Delete, Model, Update, created, ids_in, literal, plus

import tablewright as tw
from tablewright.storage import Store
from tablewright.testing import (
    FaultyStore,
    Pause,
    at_call,
    seeded_world,
)


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables stand in the test's own world; a writer is one thread, so that its calls come in one order."""
    set_up(monkeypatch)
    one_thread(monkeypatch)
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
    return Scene(store, model, listing(store), version=5, read_version=2)


def _compact(rows: int) -> None:
    tw.dataset(ADDRESS).optimize.compact_files(
        target_rows_per_fragment=rows, materialize_deletions_threshold=0.0, num_threads=1
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stable"), ON_TABLES)
def test_a_fault_at_every_call(name: str, stable: bool, attempts: Attempts) -> None:
    scene, change = _scene(stable=stable), CHANGES[name]
    attempts.forget()
    calls_of(scene, change)
    assert attempts.commits == [0], attempts.conflicts
    fault_at_every_call(scene, change, may_leave=True)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stable"), ON_TABLES)
def test_a_compaction_at_every_call(name: str, stable: bool, attempts: Attempts) -> None:
    """Ours is paused, another compaction commits. Ours goes on, and runs once."""
    scene, change = _scene(stable=stable), CHANGES[name]
    for call in calls_of(scene, change)[:: stride(4)]:
        store = copied(scene.store)

        def compact(_: object, store: Store = store) -> None:
            with within(seeded_world(store, 5)):
                _compact(1000)

        paused = FaultyStore(store, at_call(call.index, Pause(compact)))
        attempts.forget()
        attempts.commits = []
        on_stage(paused, lambda: scene.run(change), seed=7)
        assert not attempts.conflicts, f"compaction at {call}"
        version, rows = newest(store)
        assert rows == change.after(scene.model, version).values(), f"compaction at {call}"
        assert not leftovers(store), f"compaction at {call}"
