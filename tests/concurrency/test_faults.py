"""A fault at every storage call of a write: crash before, crash after, failure before, lost reply, lie.

Afterwards a fresh reader finds the old version or the new one, exactly once and whole. A write that returned is there.
A write that failed with anything but CommitUnknown is not there, left nothing behind, and running it again works.
One that succeeded left nothing beside its version either, unless the removal of a file was what failed.

DataFrames are among them, with Spark's job played in this process (`partitions`): those whose small files are joined
before the commit, those that come back as rows, and those of which some partitions come back.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.depth import deep, stride

import tablewright as tw
from tablewright.errors import CommitUnknown, InternalError, StorageError, TablewrightError
from tablewright.storage import Store, open_store
from tablewright.testing import (
    Call,
    CrashAfter,
    CrashBefore,
    DenyCreation,
    FailBefore,
    Fault,
    FaultyStore,
    LoseReply,
    SimulatedCrash,
    StaleList,
    at_call,
    on_call,
)

from .partitions import Partitions, set_up_partitions
from .scene import FAULTS, leftovers
from .stage import (
    ADDRESS,
    Judged,
    copied,
    has_effect,
    history,
    listing,
    makes_sense,
    new_store,
    numbers,
    on_stage,
    set_up,
)


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(monkeypatch)
    set_up_partitions(monkeypatch)


@dataclass(frozen=True)
class Scenario:
    """A write, the versions before it, the ids in the version that it makes; `yours`: files that the caller owns."""

    action: Callable[[], Any]
    before: int
    after: list[int]
    stable: bool = False
    yours: tuple[str, ...] = ()


def _append() -> None:
    tw.write_dataset(numbers(10, 13), ADDRESS, mode="append", max_rows_per_file=2)


def _delete() -> None:
    dataset = tw.dataset(ADDRESS)
    metadata = dataset.get_fragment(0).delete("id = 1")
    operation = tw.LanceOperation.Delete([metadata], [], "id = 1")
    tw.LanceDataset.commit(ADDRESS, operation, read_version=dataset.version)


def _batch() -> None:
    """Two writers' fragments in one version; their files belong to those who wrote them."""
    dataset = tw.dataset(ADDRESS)
    parts = [
        tw.Transaction(dataset.version, tw.LanceOperation.Append(tw.fragment.write_fragments(rows, ADDRESS)))
        for rows in (numbers(10, 12), numbers(12, 13))
    ]
    tw.LanceDataset.commit_batch(ADDRESS, parts)


def _frame(few: int, mode: str = "append", stop: int = 13, **options: Any) -> Callable[[], Any]:
    """Rows from 10 to `stop`, a partition each, row 11 of them long; those of at most `few` bytes come back."""
    long = numbers(11, 12).set_column(1, "s", pa.array(["long " * 100]))
    frame = Partitions((numbers(10, 11), long, *(numbers(row, row + 1) for row in range(12, stop))), few)
    return lambda: tw.write_dataset(frame, ADDRESS, mode=mode, **options)


_FEW = 200
"""Bytes of a partition that comes back where some do: a row of `numbers` has less, the long one more."""

SCENARIOS = {
    "create": Scenario(lambda: tw.write_dataset(numbers(0, 5), ADDRESS, max_rows_per_file=2), 0, [0, 1, 2, 3, 4]),
    "append": Scenario(_append, 2, [0, 1, 2, 3, 10, 11, 12]),
    "append to stable ids": Scenario(_append, 2, [0, 1, 2, 3, 10, 11, 12], stable=True),
    "append that creates": Scenario(_append, 0, [10, 11, 12]),
    "batch": Scenario(_batch, 2, [0, 1, 2, 3, 10, 11, 12], yours=("data/",)),
    "overwrite": Scenario(lambda: tw.write_dataset(numbers(70, 72), ADDRESS, mode="overwrite"), 2, [70, 71]),
    "restore": Scenario(lambda: tw.dataset(ADDRESS, version=1).restore(), 2, [0, 1, 2]),
    "delete": Scenario(_delete, 2, [0, 2, 3], yours=("_deletions/",)),
    "frame, joined": Scenario(_frame(0), 2, [0, 1, 2, 3, 10, 11, 12]),
    "frame, joined, creates": Scenario(_frame(0, "create"), 0, [10, 11, 12]),
    "frame, joined in two": Scenario(_frame(0, "overwrite", 14, max_rows_per_file=2), 2, [10, 11, 12, 13]),
    "frame, comes back": Scenario(_frame(10_000), 2, [0, 1, 2, 3, 10, 11, 12], stable=True),
    "frame, some comes back": Scenario(_frame(_FEW), 2, [0, 1, 2, 3, 10, 11, 12]),
    "config": Scenario(lambda: tw.dataset(ADDRESS).update_config({"a": "b"}), 2, [0, 1, 2, 3]),
}


def _prepared(scenario: Scenario, store: Store) -> Store:
    if scenario.before:

        def make() -> None:
            tw.write_dataset(numbers(0, 3), ADDRESS, max_rows_per_file=2, enable_stable_row_ids=scenario.stable)
            tw.write_dataset(numbers(3, 4), ADDRESS, mode="append")

        on_stage(store, make, seed=99)
    return store


_BEFORE = [[0, 1, 2], [0, 1, 2, 3]]
"""The ids in the versions that a scenario may start from."""


def _outcome(store: FaultyStore, scenario: Scenario) -> BaseException | None:
    try:
        on_stage(store, scenario.action, seed=7)
    except InternalError:
        raise
    except (TablewrightError, SimulatedCrash) as error:
        return error
    return None


def _judge(
    scenario: Scenario,
    store: Store,
    objects: set[str],
    error: BaseException | None,
    where: str,
    judged: Judged,
    *,
    may_leave: bool,
) -> None:
    """What a fresh reader of `store` may find after the write ended with `error`.

    `may_leave`: the fault hit the removal of a file that is no longer needed, which may stay.
    """
    if not judged.is_new(store, error):
        return
    old = _BEFORE[: scenario.before]
    found = history(store)
    assert found in (old, [*old, scenario.after]), where
    if error is None:
        assert found != old, f"{where}: it returned, and nothing is there"
        assert may_leave or not leftovers(store), f"{where}: left behind beside the new version"
    elif not isinstance(error, SimulatedCrash | CommitUnknown):
        assert found == old, f"{where}: it reported {error!r}, and yet it is there"
        left = {path for path in listing(store) - objects if not path.startswith(scenario.yours)}
        assert not left, f"{where}: left behind after {error!r}"
    if found == old:
        on_stage(store, scenario.action, seed=8)
        assert history(store) == [*old, scenario.after], f"{where}: running it again"


def _calls(scenario: Scenario, store: Store) -> tuple[Call, ...]:
    recording = FaultyStore(copied(store))
    assert _outcome(recording, scenario) is None
    assert len(recording.calls) >= 4
    return recording.calls


QUICK = ("create", "append", "frame, some comes back")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SCENARIOS])
def test_a_fault_at_every_call(name: str) -> None:
    scenario = SCENARIOS[name]
    prepared = _prepared(scenario, new_store())
    objects, judged = listing(prepared), Judged()
    for call in _calls(scenario, prepared):
        for number, fault in enumerate(FAULTS):
            if not makes_sense(fault, call) or (number + call.index) % (1 if name in QUICK else stride(2)):
                continue  # in CI the calls of longer writes take turns with the faults
            store = copied(prepared)
            error = _outcome(FaultyStore(store, at_call(call.index, fault)), scenario)
            if isinstance(fault, StaleList):
                _judge_after_a_stale_listing(scenario, store, error, f"{fault} at {call}")
                continue
            stays = call.method == "delete"
            _judge(scenario, store, objects, error, f"{fault} at {call}", judged, may_leave=stays)
    assert {None, SimulatedCrash, StorageError} <= judged.endings


def _judge_after_a_stale_listing(scenario: Scenario, store: Store, error: BaseException | None, where: str) -> None:
    """A listing that hides everything may make a table look absent: the write may fail, but destroys nothing."""
    old = _BEFORE[: scenario.before]
    assert history(store) == (old if error is not None else [*old, scenario.after]), where


@pytest.mark.parametrize("name", ["create", "append", "overwrite", "delete", "frame, joined"])
def test_the_lost_reply_of_a_commit_is_settled(name: str) -> None:
    """The manifest was created, the answer got lost or says no: it is ours, and the write succeeds."""
    scenario = SCENARIOS[name]
    prepared = _prepared(scenario, new_store())
    for fault in (LoseReply(), DenyCreation()):
        store = copied(prepared)
        plan = on_call(fault, method="put_if_absent", path="_versions/*", nth=0)
        assert _outcome(FaultyStore(store, plan), scenario) is None
        assert history(store) == [*_BEFORE[: scenario.before], scenario.after]


@pytest.mark.parametrize("name", ["create", "append", "overwrite"])
@pytest.mark.parametrize("fault", [FailBefore(), LoseReply()], ids=["fails", "loses replies"])
def test_a_store_that_falls_silent_at_the_commit(name: str, fault: Fault) -> None:
    """From the first try of the commit on, no call about versions is answered: it may have happened, or not."""
    scenario = SCENARIOS[name]
    store = _prepared(scenario, new_store())
    silent = False

    def plan(call: Call) -> Fault | None:
        nonlocal silent
        silent = silent or call.method == "put_if_absent"
        return fault if silent and call.path.startswith("_versions") else None

    error = _outcome(FaultyStore(store, plan), scenario)
    assert isinstance(error, CommitUnknown | StorageError)
    old = _BEFORE[: scenario.before]
    if isinstance(fault, LoseReply):
        assert isinstance(error, CommitUnknown), "a commit that happened was reported as failed"
        assert history(store) == [*old, scenario.after]
    else:
        assert history(store) == old


@pytest.mark.slow
@pytest.mark.parametrize("name", ["create", "append", "overwrite", "delete"])
def test_many_faults_at_once(name: str) -> None:
    """A store on a bad day: every call may fail or lose its reply; the writer tries until it is through."""
    scenario = SCENARIOS[name]
    prepared = _prepared(scenario, new_store())
    expected = [*_BEFORE[: scenario.before], scenario.after]
    for seed in range(deep(6, 15)):
        store, chance = copied(prepared), random.Random(seed)
        plan = _weather(chance, {FailBefore(): 0.12, LoseReply(): 0.12})
        for _ in range(60):
            error = _outcome(FaultyStore(store, plan), scenario)
            if error is None or (isinstance(error, CommitUnknown) and history(store) == expected):
                break
        assert history(store) == expected, f"seed {seed}"


def _weather(chance: random.Random, odds: dict[Fault, float]) -> Callable[[Call], Fault | None]:
    def plan(call: Call) -> Fault | None:
        drawn = chance.random()
        for fault, odd in odds.items():
            if drawn < odd:
                return fault
            drawn -= odd
        return None

    return plan


@pytest.mark.slow
@pytest.mark.parametrize("name", ["create", "append", "overwrite"])
def test_faults_on_a_real_directory(name: str, tmp_path: Path) -> None:
    """The same on the local file system, where pylance is the fresh reader."""
    import shutil

    import lance

    scenario = SCENARIOS[name]
    master = tmp_path / "master"
    prepared = _prepared(scenario, open_store(str(master)))
    recording = FaultyStore(open_store(str(tmp_path / "counted")))
    if scenario.before:
        shutil.copytree(master, tmp_path / "counted")
    assert _outcome(recording, scenario) is None
    assert prepared.location.uri
    for call in recording.calls:
        faults = (LoseReply(), CrashAfter(), FailBefore(), CrashBefore())
        for number, fault in enumerate(faults if has_effect(call) else faults[:2]):
            place = tmp_path / f"{call.index}-{number}"
            if scenario.before:
                shutil.copytree(master, place)
            error = _outcome(FaultyStore(open_store(str(place)), at_call(call.index, fault)), scenario)
            try:
                dataset = lance.dataset(str(place))
            except ValueError:
                assert scenario.before == 0
                assert error is not None
                continue
            dataset.validate()
            ids = dataset.to_table(columns=["id"])["id"].to_pylist()
            assert dataset.version in (scenario.before, scenario.before + 1)
            assert ids == (scenario.after if dataset.version > scenario.before else _BEFORE[-1]), f"{fault} at {call}"
            if error is None:
                assert dataset.version == scenario.before + 1


@pytest.mark.parametrize(
    ("name", "written", "removed"),
    [
        ("frame, joined", 4, 3),
        ("frame, joined in two", 6, 4),
        ("frame, comes back", 1, 0),
        ("frame, some comes back", 4, 3),
    ],
)
def test_frames_write_and_join_what_their_names_say(name: str, written: int, removed: int) -> None:
    """A file of each partition and the joined one; four of them become two where a file takes two rows."""
    scenario = SCENARIOS[name]
    calls = _calls(scenario, _prepared(scenario, new_store()))
    of_data = [call.method for call in calls if call.path.startswith("data/")]
    assert (of_data.count("put"), of_data.count("delete")) == (written, removed)
