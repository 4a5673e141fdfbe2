"""A fault at every storage call of a merge: rows, columns, both, inserts only, deletes of what the source lacks.

Also with clauses as SQL has them: several in order, with conditions and expressions, on rows of each kind.

What holds for other changes holds here (see `scene`): the old version or the new one, exactly once; no
file left after a known failure. And more: the same while another writer comes first and the merge has to run again,
with a source that was kept on disk, and with one that was shared with workers.
"""

from __future__ import annotations

import itertools
import pickle
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.concurrency.scene import (
    FAULTS,
    Scene,
    calls_of,
    fault_at_every_call,
    leftovers,
    newest,
    one_thread,
    small_scene,
)
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
from tests.depth import stride
from tests.property.merge_change import CLAUSES, AnyMerge, Merge, OrderedMerge, newer
from tests.property.row_model import COLUMNS, Model, always, new_rows

import tablewright as tw
from tablewright.errors import CommitUnknown, StorageError, TablewrightError
from tablewright.operations.merge_insert.limits import MergeLimits, SourceLimits
from tablewright.storage import Store, open_store
from tablewright.testing import (
    EVERY_FAULT,
    Call,
    DenyCreation,
    FailBefore,
    Fault,
    FaultyStore,
    LoseReply,
    Pause,
    Plan,
    SimulatedCrash,
    at_call,
    first_of,
    on_call,
    seeded_world,
)
from tablewright.world import World

EMPTY = Model(COLUMNS)


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables stand in the test's own world; a writer is one thread, so that its calls come in one order."""
    set_up(monkeypatch)
    one_thread(monkeypatch)


def _rows(ids: set[int], *columns: str) -> tuple[Any, ...]:
    """Rows with these keys and `a`; all columns, or some."""
    rows = [{**new_rows(EMPTY, i, 1)[0], "a": 40 + i} for i in sorted(ids)]
    return tuple({name: row[name] for name in ("id", *columns)} for row in rows) if columns else tuple(rows)


def _ordered(name: str, mode: str, *columns: str) -> OrderedMerge:
    """The clauses of this name: one matching row goes, others change, and of two new keys one is even."""
    ops = {1: "d", 4: "all", 8: "u", 100: "u", 101: "u"}
    rows = tuple({**row, "op": ops[row["id"]]} for row in _rows(set(ops), *columns))
    return OrderedMerge(rows, EMPTY, CLAUSES[name], mode=mode)


MERGES: dict[str, AnyMerge] = {
    "rows": Merge(_rows({1, 4, 100, 101}), EMPTY, mode="rewrite_rows"),
    "columns": Merge(_rows({1, 4}, "a", "b"), EMPTY, inserts=False, mode="rewrite_columns"),
    "both": Merge(_rows({1, 4, 100}, "a", "st"), EMPTY, by_source=always(), mode="rewrite_columns"),
    "inserts": Merge(_rows({1, 100, 101}), EMPTY, matched="nothing"),
    "what is newer": Merge(_rows({1, 4, 8, 100}), EMPTY, condition=newer("a")),
    "deletes": Merge(_rows({0, 1, 2, 4, 100}, "a"), EMPTY, matched="delete", inserts=False),
    "replaces": Merge(_rows({1, 100}), EMPTY, by_source=always()),
    "updates and deletes in order": _ordered("updates and deletes in order", "rewrite_columns", "a"),
    "inserts in order": _ordered("inserts in order", "auto"),
    "some inserts": _ordered("some inserts", "auto", "a"),
    "of what the source lacks": _ordered("of what the source lacks", "rewrite_rows", "a"),
    "of every kind": _ordered("of every kind", "rewrite_rows"),
    "columns of every kind": _ordered("of every kind", "rewrite_columns", "a"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MERGES)
def test_a_fault_at_every_call(name: str) -> None:
    scene, merge = small_scene(new_store(), stable=len(name) % 2 == 0), MERGES[name]
    endings = fault_at_every_call(scene, merge, step=stride(3) if isinstance(merge, OrderedMerge) else 1)
    assert {None, SimulatedCrash, StorageError} <= endings


def test_the_lost_reply_of_a_commit_is_settled() -> None:
    """The manifest was created, the answer got lost or says no: it is ours, and the merge succeeds, once."""
    for number, (name, merge) in enumerate(MERGES.items()):
        scene = small_scene(new_store(), stable=number % 2 == 0)
        for fault in (LoseReply(), DenyCreation()):
            store = copied(scene.store)
            plan = on_call(fault, method="put_if_absent", path="_versions/*", nth=0)
            assert scene.outcome(FaultyStore(store, plan), merge) is None, name
            assert newest(store) == scene.after(merge), name
            assert not leftovers(store), name


# ------------------------------------------------------------------------------------------- another writer besides
THEIRS = Merge(_rows({2, 100}, "a"), EMPTY)
"""Takes one of our new keys, and changes a row beside one of ours."""


@dataclass(frozen=True)
class Rival:
    """Theirs, which runs when ours is about to publish for the first time."""

    scene: Scene
    store: Store

    def plan(self, fault: Plan) -> Plan:
        publish = on_call(Pause(self._run), method="put_if_absent", path="_versions/*", nth=0)
        return first_of(fault, publish)

    def _run(self, call: Call) -> None:
        with within(seeded_world(self.store, 55)):
            THEIRS.run(tw, tw.dataset(ADDRESS))

    @property
    def states(self) -> list[tuple[int, Any]]:
        """What there may be to read: before both, after theirs."""
        return [self.scene.before, (3, THEIRS.after(self.scene.model, 3).values())]

    def after(self, merge: AnyMerge) -> tuple[int, Any]:
        return 4, merge.after(THEIRS.after(self.scene.model, 3), 4).values()


RUN_AGAIN = ["rows", "both", "of every kind", "columns of every kind"]


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN_AGAIN)
def test_a_fault_while_it_runs_again(name: str) -> None:
    """Another writer took one of the keys: what the first attempt wrote and the second does not need must go too."""
    merge, judged = MERGES[name], Judged()
    scene = small_scene(new_store(), stable=len(name) % 2 == 0)
    rival = Rival(scene, copied(scene.store))
    recording = FaultyStore(rival.store, rival.plan(lambda call: None))
    assert scene.outcome(recording, merge) is None
    assert newest(rival.store) == rival.after(merge) and not leftovers(rival.store)
    first = next(call.index for call in recording.calls if call.method == "put_if_absent" and "_versions" in call.path)
    for call in recording.calls[first:]:
        for number, fault in enumerate(FAULTS):
            if not makes_sense(fault, call):
                continue
            # In CI two merges take turns; of those with clauses it is one in seven.
            if (number + call.index + RUN_AGAIN.index(name)) % stride(7 if isinstance(merge, OrderedMerge) else 2):
                continue
            rival = Rival(scene, copied(scene.store))
            error = scene.outcome(FaultyStore(rival.store, rival.plan(at_call(call.index, fault))), merge)
            if judged.is_new(rival.store, error):
                _judge_rival(rival, merge, error, f"{fault} at {call}")
                # A file that could not be removed stays.
                known = not isinstance(error, SimulatedCrash | CommitUnknown) and call.method != "delete"
                assert not known or not leftovers(rival.store), f"{fault} at {call}, {error!r}"
    assert {None, SimulatedCrash, StorageError} <= judged.endings


def _judge_rival(rival: Rival, merge: AnyMerge, error: BaseException | None, where: str) -> None:
    found = newest(rival.store)
    alone = (3, merge.after(rival.scene.model, 3).values())  # the fault came in the place of theirs
    assert found in [*rival.states, rival.after(merge), alone], where
    if error is None:
        assert found in (rival.after(merge), alone), f"{where}: it returned, and is not there"
    elif not isinstance(error, SimulatedCrash | CommitUnknown):
        assert found in rival.states, f"{where}: it reported {error!r}, and yet it is there"


# ------------------------------------------------------------------------------------------------------ kept and shared
def test_a_source_on_disk_goes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever fails, the temporary file of a source that did not fit into memory goes."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    on_disk = MergeLimits(source=SourceLimits(memory_bytes=0))
    merge, scene = replace(MERGES["rows"], limits=on_disk), small_scene(new_store(), stable=True)
    seen = list[bool]()

    def look(call: Call) -> Fault | None:
        seen.append(any("tablewright-" in path.name for path in tmp_path.iterdir()))
        return None

    for call in calls_of(scene, merge):
        scene.outcome(FaultyStore(copied(scene.store), first_of(at_call(call.index, FailBefore()), look)), merge)
        assert not list(tmp_path.iterdir()), call
    assert any(seen), "the source was never on disk"


class Workers:
    """An engine whose tasks are pickled, each with its own world at the table's location."""

    name = "workers"  # neither here nor on Spark
    in_process = False
    on_this_machine = False

    def __init__(self, dies_at: int | None = None) -> None:
        self.dies_at, self.tasks = dies_at, 0

    def map(
        self,
        run: Callable[[Any, World], Any],
        tasks: Sequence[Any],
        world: World,
        *,
        describe: str = "",
        keep: Callable[[Any], None] | None = None,
    ) -> list[Any]:
        made, location = list[Any](), world.store.location
        for task in tasks:
            self.tasks += 1
            if self.tasks - 1 == self.dies_at:
                raise StorageError("a worker died")
            own = World(store=open_store(location.uri, location.storage_options))
            made.append(pickle.loads(pickle.dumps(run(pickle.loads(pickle.dumps(task)), own))))
            if keep is not None:
                keep(made[-1])
        return made

    def outcomes(self, *given: Any, **options: Any) -> list[Any]:
        raise NotImplementedError

    def exchange(self, *given: Any, **options: Any) -> list[Any]:
        raise NotImplementedError


_seeds = itertools.count(1000)


def _on_workers(store: Store, merge: AnyMerge, engine: Workers) -> BaseException | None:
    """Workers know a source by the names of its files, so these are never the same."""
    try:
        on_stage(store, lambda: merge.run(tw, tw.dataset(ADDRESS, engine=engine)), seed=next(_seeds))
    except (TablewrightError, SimulatedCrash) as error:
        return error
    return None


@pytest.mark.slow
def test_files_of_a_shared_source_go(tmp_path: Path) -> None:
    """They lie beside the table's own. A task may fail, or any call of the driver; then they go as all others do."""
    merge = MERGES["both"]
    scene = small_scene(open_store(str(tmp_path / "base")), stable=True)

    def copy(place: str) -> Store:
        shutil.rmtree(tmp_path / place, ignore_errors=True)
        shutil.copytree(tmp_path / "base", tmp_path / place)
        return open_store(str(tmp_path / place))

    engine, recording = Workers(), FaultyStore(copy("counted"))
    assert _on_workers(recording, merge, engine) is None
    assert newest(recording.inner) == scene.after(merge) and not leftovers(recording.inner)
    assert engine.tasks > 1
    for number in range(engine.tasks):
        store = copy("one")
        assert isinstance(_on_workers(store, merge, Workers(dies_at=number)), StorageError)
        assert newest(store) == scene.before
        assert listing(store) <= scene.objects, f"task {number}"
    for call in recording.calls:
        for fault in EVERY_FAULT[:2]:
            if makes_sense(fault, call):
                store = copy("one")
                error = _on_workers(FaultyStore(store, at_call(call.index, fault)), merge, Workers())
                assert newest(store) == (scene.after(merge) if error is None else scene.before), f"{fault} at {call}"
                # A file that could not be removed stays.
                assert not leftovers(store) or call.method == "delete", f"{fault} at {call}: {leftovers(store)}"
