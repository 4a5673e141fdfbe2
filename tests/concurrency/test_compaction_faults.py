"""A fault at every storage call of a compaction; and a compaction that is paused at every call while others commit.

Rows, row ids and versions stay what they were, whatever happens. A compaction that returned is there. One that failed
with anything but CommitUnknown left nothing behind (ids that it reserved aside), and works when run again. One that was
paused takes over what others committed, at whichever call that was.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from tests.concurrency.scene import FAULTS, leftovers, one_thread, outcome_of
from tests.concurrency.stage import (
    ADDRESS,
    Judged,
    copied,
    makes_sense,
    new_store,
    on_stage,
    set_up,
    within,
)
from tests.depth import deep, stride
from tests.property.row_model import (
    COLUMNS,
    AddColumns,
    Append,
    Change,
    Delete,
    DropColumns,
    Model,
    Update,
    assert_reads_as,
    created,
    ids_in,
    literal,
    new_rows,
    plus,
)

import tablewright as tw
from tablewright.errors import CommitConflict, CommitUnknown, CompactionIncomplete
from tablewright.optimize import Compaction, RewriteResult
from tablewright.storage import Store
from tablewright.testing import (
    Call,
    DenyCreation,
    FailBefore,
    Fault,
    FaultyStore,
    LoseReply,
    Pause,
    SimulatedCrash,
    at_call,
    interleave,
    on_call,
    seeded_world,
)

KINDS = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables stand in the test's own world; a writer is one thread, so that its calls come in one order."""
    set_up(monkeypatch)
    one_thread(monkeypatch)
    monkeypatch.setattr("tablewright.jobs.compact.spread", lambda function, items: [function(item) for item in items])


@dataclass(frozen=True)
class Scene:
    """A table of four fragments with three rows each, row 7 deleted; and results of its compaction, if it has run."""

    store: Store
    model: Model
    stable: bool
    results: tuple[RewriteResult, ...] = ()

    def compact(self) -> Any:
        """Two groups; the rows of the first go to one file."""
        if self.results:
            return Compaction.commit(tw.dataset(ADDRESS, version=2), self.results)
        return tw.dataset(ADDRESS).optimize.compact_files(target_rows_per_fragment=5)

    @property
    def given(self) -> set[str]:
        return {f"data/{file.path}" for each in self.results for f in each.new_fragments for file in f.files}


def _scene(*, stable: bool, overtaken: bool = False) -> Scene:
    """With `overtaken`, rows and columns of the groups have changed after these were rewritten."""
    store = new_store()

    def make() -> Scene:
        model = Delete(ids_in({7})).after(created(tw, ADDRESS, 12, per_file=3, stable=stable), 2)
        dataset = tw.dataset(ADDRESS)
        dataset.delete("id = 7")
        if not overtaken:
            return Scene(store, model, stable)
        results = [task.execute(dataset) for task in Compaction.plan(dataset, {"target_rows_per_fragment": 5}).tasks]
        hide, patch = Delete(ids_in({1, 3})), Update({"a": plus("a", 100)}, ids_in({4, 9}), "rewrite_columns")
        hide.run(tw, tw.dataset(ADDRESS))
        patch.run(tw, tw.dataset(ADDRESS))
        return Scene(store, patch.after(hide.after(model, 3), 4), stable, tuple(results))

    return on_stage(store, make, seed=99)


def check(store: Store, model: Model, *, stable: bool) -> set[int]:
    """The newest version reads as the model; all versions are there. The ids of its fragments."""

    def read() -> set[int]:
        dataset = tw.dataset(ADDRESS)
        dataset.validate()
        assert [entry["version"] for entry in dataset.versions()] == list(range(1, dataset.version + 1))
        assert_reads_as(dataset, model, stable=stable)
        return {fragment.fragment_id for fragment in dataset.get_fragments()}

    return on_stage(store, read)


def _judge(scene: Scene, store: Store, error: BaseException | None, where: str, judged: Judged) -> None:
    if not judged.is_new(store, error):
        return
    left = check(store, scene.model, stable=scene.stable) & {0, 1, 2, 3}
    if error is None:
        assert not left, f"{where}: it returned, and fragments {left} are still there"
        assert not leftovers(store), f"{where}: left behind beside the new version"
    elif isinstance(error, CompactionIncomplete):
        assert left in ({0, 1}, {2, 3}), where
        assert not leftovers(store) - scene.given, f"{where}: left behind by the group that failed"
    elif not isinstance(error, SimulatedCrash | CommitUnknown):
        assert left == {0, 1, 2, 3}, f"{where}: it reported {error!r}, and yet it is there"
        assert leftovers(store) <= scene.given, f"{where}: left behind after {error!r}"
    if left:
        on_stage(store, scene.compact, seed=8)
        assert not check(store, scene.model, stable=scene.stable) & {0, 1, 2, 3}, f"{where}: running it again"


def _calls(scene: Scene) -> tuple[Call, ...]:
    recording = FaultyStore(copied(scene.store))
    assert outcome_of(recording, scene.compact) is None
    assert len(recording.calls) >= 15
    return recording.calls


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overtaken", "stable"), [(False, True), (True, False), (False, False), (True, True)][: 4 if deep(1, 2) > 1 else 2]
)
def test_a_fault_at_every_call(overtaken: bool, stable: bool) -> None:
    scene, judged = _scene(stable=stable, overtaken=overtaken), Judged()
    for call in _calls(scene):
        for fault in FAULTS:
            if makes_sense(fault, call):
                store = copied(scene.store)
                error = outcome_of(FaultyStore(store, at_call(call.index, fault)), scene.compact)
                _judge(scene, store, error, f"{fault} at {call}", judged)
    assert {None, SimulatedCrash} < judged.endings


@pytest.mark.parametrize("fault", [LoseReply(), DenyCreation()], ids=["lost", "denied"])
@pytest.mark.parametrize("nth", [0, 1], ids=["reserve", "rewrite"])
def test_the_lost_reply_of_a_commit_is_settled(nth: int, fault: Fault) -> None:
    """Case 15: one of two groups was dropped before; what is committed is ours, and its files stay."""
    scene = _scene(stable=True, overtaken=True)
    store = copied(scene.store)
    on_stage(store, lambda: tw.dataset(ADDRESS).optimize.compact_files(excluded_fragment_ids=[0, 1]), seed=5)
    plan = on_call(fault, method="put_if_absent", path="_versions/*", nth=nth)
    metrics = on_stage(FaultyStore(store, plan), scene.compact, seed=7)
    assert (metrics.groups_dropped, metrics.fragments_removed) == (1, 2)
    assert not check(store, scene.model, stable=True) & {0, 1, 2, 3}
    assert not leftovers(store)


def test_a_commit_of_unknown_outcome_is_repeated() -> None:
    """No reply, and no answer to any look: the files stay. Committing the results again finds them committed."""
    scene = _scene(stable=True, overtaken=True)
    store, silent = copied(scene.store), False

    def plan(call: Call) -> Fault | None:
        nonlocal silent
        rewrite = call.method == "put_if_absent" and len(list(store.list("_versions"))) > 5
        silent = silent or rewrite
        return LoseReply() if silent and call.path.startswith("_versions") else None

    assert isinstance(outcome_of(FaultyStore(store, plan), scene.compact), CommitUnknown)
    assert not check(store, scene.model, stable=True) & {0, 1, 2, 3}
    metrics = on_stage(store, scene.compact, seed=8)
    assert (metrics.groups_dropped, metrics.fragments_removed) == (2, 0)
    check(store, scene.model, stable=True)
    assert not leftovers(store)


@pytest.mark.slow
@KINDS
def test_many_faults_at_once(stable: bool) -> None:
    """A store on a bad day: every call may fail or lose its reply; the compactor tries until it is through."""
    scene = _scene(stable=stable)
    for seed in range(deep(3, 20)):
        store, chance = copied(scene.store), random.Random(seed)

        def plan(call: Call, chance: random.Random = chance) -> Fault | None:
            drawn = chance.random()
            return FailBefore() if drawn < 0.04 else LoseReply() if drawn < 0.08 else None

        left = {0, 1, 2, 3}
        for run in range(80):
            outcome_of(FaultyStore(store, plan), scene.compact, seed=1000 + run)
            left = check(store, scene.model, stable=stable) & {0, 1, 2, 3}
            if not left:
                break
        assert not left, f"seed {seed}"


# ----------------------------------------------------------------------------------------------- while others commit


@dataclass(frozen=True)
class Recompact:
    """Another compaction: of the groups that ours takes, or of some of them."""

    excluded: tuple[int, ...] = ()

    def run(self, library: Any, dataset: Any) -> Any:
        return dataset.optimize.compact_files(target_rows_per_fragment=5, excluded_fragment_ids=self.excluded)

    def after(self, model: Model, version: int) -> Model:
        return model


def others(model: Model) -> dict[str, Change]:
    some = ids_in({1, 4, 9})
    return {
        "delete": Delete(some),
        "delete a fragment": Delete(ids_in({3, 4, 5})),
        "update rows": Update({"a": plus("a", 100)}, some, "rewrite_rows"),
        "update columns": Update({"a": plus("a", 100), "st.x": literal(0)}, some, "rewrite_columns"),
        "add columns": AddColumns("n", pa.int64(), plus("id", 1)),
        "drop a column": DropColumns(("b",)),
        "append": Append(new_rows(model, 100, 2), model),
        "compact": Recompact(),
        "compact some": Recompact((0, 1)),
    }


OTHERS = list(others(Model(COLUMNS)))


@pytest.mark.slow
@KINDS
@pytest.mark.parametrize("name", OTHERS)
def test_another_commits_at_every_call(name: str, stable: bool) -> None:
    scene = _scene(stable=stable)
    change, count = others(scene.model)[name], len(_calls(scene))
    step = stride(6)
    for index in range((OTHERS.index(name) + stable) % step, count, step):
        store, versions = copied(scene.store), []

        def commit(call: Call, store: Store = store, versions: list[int] = versions) -> None:
            on_stage(store, lambda: change.run(tw, tw.dataset(ADDRESS)), seed=50)
            versions.append(on_stage(store, lambda: tw.dataset(ADDRESS).version))

        error = outcome_of(FaultyStore(store, at_call(index, Pause(commit))), scene.compact)
        assert error is None and versions, f"at call {index}: {error!r}"
        left = check(store, change.after(scene.model, versions[0]), stable=stable) & {0, 1, 2, 3}
        assert not left, f"at call {index}: fragments {left} are still there"
        assert not leftovers(store), f"at call {index}"


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["restore", "overwrite"])
def test_the_table_is_replaced_at_every_call(verb: str) -> None:
    scene = _scene(stable=True)
    ends = set()
    for index in range(0, len(_calls(scene)), stride(4)):
        store = copied(scene.store)

        def replaced() -> None:
            if verb == "restore":
                tw.dataset(ADDRESS, version=1).restore()
            else:
                tw.write_dataset({"id": [1]}, ADDRESS, mode="overwrite")

        pause = Pause(lambda call, store=store, act=replaced: on_stage(store, act, seed=50))
        error = outcome_of(FaultyStore(store, at_call(index, pause)), scene.compact)
        assert error is None or isinstance(error, CommitConflict), f"at call {index}: {error!r}"
        rows = on_stage(store, lambda: tw.dataset(ADDRESS).to_table().num_rows)
        assert rows == (12 if verb == "restore" else 1), f"at call {index}"
        assert not leftovers(store), f"at call {index}"
        ends.add(type(error))
    assert CommitConflict in ends


@pytest.mark.slow
@KINDS
def test_races_of_compactors_and_writers(stable: bool) -> None:
    """Switched at every call by a seed: all commit, and the rows are those of some order of the writers."""
    for seed in range(deep(4, 40)):
        scene = _scene(stable=stable)
        changes: list[Change] = [
            Recompact(),
            Delete(ids_in({1, 4})),
            Update({"b": literal("new")}, ids_in({3, 9}), "rewrite_columns"),
            Recompact((2, 3)),
        ]

        def run(change: Change, number: int, own: Store, seed: int = seed) -> Any:
            with within(seeded_world(own, 1000 * seed + number)):
                return change.run(tw, tw.dataset(ADDRESS))

        tasks = [lambda own, n=n, change=change: run(change, n, own) for n, change in enumerate(changes)]
        outcomes = interleave(scene.store, tasks, seed)
        assert [outcome.error for outcome in outcomes] == [None] * len(changes), f"seed {seed}"
        wanted = {id: dict(row) for id, row in scene.model.values().items() if id not in (1, 4)}
        for id in (3, 9):
            wanted[id]["b"] = "new"
        found = on_stage(scene.store, lambda: tw.dataset(ADDRESS).to_table().to_pylist())
        assert {row["id"]: row for row in found} == wanted and len(found) == len(wanted), f"seed {seed}"
        assert not leftovers(scene.store), f"seed {seed}"
