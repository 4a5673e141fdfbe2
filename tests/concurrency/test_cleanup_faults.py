"""A fault at every storage call of a cleanup: crash before, crash after, failure before, lost reply, lie.

Afterwards every version that is listed can be read whole, the tag and the branch included, no kept version is missing,
and the next cleanup finishes the work: it leaves what a cleanup without a fault leaves.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.depth import deep

import tablewright as tw
from tablewright.errors import InternalError, TablewrightError
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
    interleave,
)

from .stage import ADDRESS, Judged, copied, listing, makes_sense, new_store, numbers, on_stage, set_up

KEPT = (2, 3, 7)
"""Version 2 has a tag, from 3 a branch begins, 7 is the latest."""


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(monkeypatch)


def _prepared() -> Store:
    store = new_store()

    def make() -> None:
        ds = tw.write_dataset(numbers(0, 6), ADDRESS, max_rows_per_file=3)
        ds.insert(numbers(6, 8))
        ds.delete("id = 1")
        ds.tags.create("two", 2)
        ds.create_branch("b", 3).insert(numbers(20, 22))
        ds = tw.write_dataset(numbers(50, 53), ds, mode="overwrite")
        ds.delete("id = 50")
        ds.delete("id = 51")
        tw.write_dataset(numbers(60, 64), ds, mode="overwrite")

    on_stage(store, make, seed=99)
    return store


def _clean(unverified: bool = False) -> Any:
    ds = tw.dataset(ADDRESS)
    return ds.cleanup_old_versions(
        timedelta(0), error_if_tagged_old_versions=False, delete_unverified=unverified, delete_concurrency=1
    )


def _outcome(store: Store) -> BaseException | None:
    try:
        on_stage(store, _clean, seed=7)
    except InternalError:
        raise
    except (TablewrightError, SimulatedCrash) as error:
        return error
    return None


def rows(store: Store) -> dict[Any, list[int]]:
    """The ids in every version that is listed, on main and on the branch. Each must be whole."""

    def read() -> dict[Any, list[int]]:
        found: dict[Any, list[int]] = {}
        main = tw.dataset(ADDRESS)
        for line, ds in ((None, main), ("b", main.checkout_version(("b", None)))):
            for entry in ds.versions():
                at = ds.checkout_version(entry["version"])
                at.validate()
                found[line, entry["version"]] = sorted(at.to_table(columns=["id"])["id"].to_pylist())
        tagged = tw.dataset(ADDRESS, version="two")
        assert tagged.version == 2
        return found

    return on_stage(store, read)  # type: ignore[no-any-return]


FAULTS: tuple[Fault, ...] = (
    *EVERY_FAULT,
    DenyCreation(),
    StaleList(lambda path: True),
    StaleList(lambda path: path.endswith("08.manifest")),
)


def test_a_fault_at_every_call() -> None:
    prepared = _prepared()
    before, reference = rows(prepared), copied(prepared)
    recording = FaultyStore(reference)
    assert _outcome(recording) is None
    clean = listing(reference)
    expected = {key: ids for key, ids in before.items() if key[0] == "b" or key[1] in KEPT}
    assert rows(reference) == expected
    judged = Judged()
    for call in recording.calls:
        for fault in FAULTS:
            if not makes_sense(fault, call):
                continue
            store, where = copied(prepared), f"{fault} at {call}"
            error = _outcome(FaultyStore(store, at_call(call.index, fault)))
            if not judged.is_new(store, error):
                continue
            found = rows(store)
            assert expected.items() <= found.items(), where
            assert found.items() <= before.items(), where
            lied_to = isinstance(fault, StaleList)  # files that it did not see wait until they are seven days old
            assert on_stage(store, lambda lied_to=lied_to: _clean(lied_to), seed=8).failed_deletes == 0, where
            assert listing(store) == clean, f"{where}: the next cleanup finishes it"
    assert {None, SimulatedCrash} <= judged.endings


@pytest.mark.parametrize("seed", range(deep(3, 60)))
def test_two_cleanups_at_once(seed: int) -> None:
    prepared = _prepared()
    reference = copied(prepared)
    assert _outcome(reference) is None
    store = copied(prepared)

    def clean(store: Store) -> Any:
        return on_stage(store, _clean, seed=7)

    outcomes = interleave(store, [clean, clean], seed)
    assert [outcome.error for outcome in outcomes] == [None, None]
    assert rows(store) == rows(reference)
    assert _outcome(store) is None
    assert listing(store) == listing(reference)


WRITES: dict[str, Any] = {
    "append": lambda: tw.write_dataset(numbers(70, 72), ADDRESS, mode="append"),
    "overwrite": lambda: tw.write_dataset(numbers(70, 72), ADDRESS, mode="overwrite"),
    "delete": lambda: tw.dataset(ADDRESS).delete("id = 61"),
    "update": lambda: tw.dataset(ADDRESS).update({"s": "'u'"}, where="id = 61"),
    "restore": lambda: tw.dataset(ADDRESS, version=5).restore(),
    "tag": lambda: tw.dataset(ADDRESS).tags.create("late", 5),
    "branch": lambda: tw.dataset(ADDRESS).create_branch("late", 5),
    "branch insert": lambda: tw.dataset(ADDRESS).checkout_version(("b", None)).insert(numbers(80, 81)),
    "delete branch": lambda: tw.dataset(ADDRESS).branches.delete("b"),
    "cleanup": lambda: tw.dataset(ADDRESS).cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False),
}


def _whole(store: Store) -> None:
    """Every version, tag and branch that is listed can be read."""

    def read() -> None:
        main = tw.dataset(ADDRESS)
        lines = [main, *(main.checkout_version((name, None)) for name in main.branches.list())]
        for ds in lines:
            for entry in ds.versions():
                at = ds.checkout_version(entry["version"])
                at.validate()
                at.to_table()
        for name in main.tags.list():
            tw.dataset(ADDRESS, version=name).to_table()

    on_stage(store, read)


def _some(calls: Sequence[Call], name: str) -> list[Call]:
    """In CI some of the calls, others for each name; in `make soak` all of them."""
    wanted = deep(8, 10**6)
    if wanted >= len(calls):
        return list(calls)
    first = list(WRITES).index(name)
    return [calls[(first + number * len(calls) // wanted) % len(calls)] for number in range(wanted)]


@pytest.mark.parametrize("name", list(WRITES))
def test_another_call_at_every_call_of_cleanup(name: str) -> None:
    """The other call happens whole while cleanup is paused. Whatever it made, and said, stays true."""
    prepared = _prepared()
    recording = FaultyStore(copied(prepared))
    assert _outcome(recording) is None
    for call in _some(recording.calls, name):
        store = copied(prepared)
        errors: list[BaseException] = []

        def act(_: Call, store: Store = store, errors: list[BaseException] = errors) -> None:
            try:
                on_stage(store, WRITES[name], seed=8)
            except TablewrightError as error:
                errors.append(error)

        plan = at_call(call.index, Pause(act))
        assert _outcome(FaultyStore(store, plan)) is None, call
        _whole(store)
        if name in ("append", "overwrite", "delete", "update"):
            assert not errors, call
        _check_effect(store, name, errors)


def _check_effect(store: Store, name: str, errors: list[BaseException]) -> None:
    def look() -> None:
        ds = tw.dataset(ADDRESS)
        ids = sorted(ds.to_table(columns=["id"])["id"].to_pylist())
        match name:
            case "append":
                assert ids == [60, 61, 62, 63, 70, 71]
            case "restore":
                assert ids == ([60, 61, 62, 63] if errors else [51, 52])
            case "tag":
                assert ("late" in ds.tags.list()) == (not errors)
            case "branch":
                assert ("late" in ds.branches.list()) == (not errors)

    on_stage(store, look)


@pytest.mark.parametrize("name", list(WRITES))
def test_cleanup_at_every_call_of_another(name: str) -> None:
    """A cleanup happens whole while the other call is paused, before each of its storage calls."""
    prepared = _prepared()
    recording = FaultyStore(copied(prepared))
    on_stage(recording, WRITES[name], seed=8)
    for call in _some(recording.calls, name):
        store = copied(prepared)

        def clean(_: Call, store: Store = store) -> None:
            on_stage(store, _clean, seed=7)

        errors: list[BaseException] = []
        try:
            on_stage(FaultyStore(store, at_call(call.index, Pause(clean))), WRITES[name], seed=8)
        except TablewrightError as error:
            errors.append(error)
        _whole(store)
        if name in ("append", "overwrite", "delete", "update"):
            assert not errors, (call, errors)
        _check_effect(store, name, errors)


@pytest.mark.parametrize("seed", range(deep(4, 200)))
def test_cleanup_and_others_switched_at_every_call(seed: int) -> None:
    """A cleanup and two other calls at once, in an order drawn from the seed. All that is listed is whole."""
    store = copied(_prepared())
    names = random.Random(seed).sample(list(WRITES), 2)

    def clean(store: Store) -> Any:
        return on_stage(store, _clean, seed=7)

    def other(name: str, number: int) -> Callable[[Store], Any]:
        return lambda store: on_stage(store, WRITES[name], seed=number)

    outcomes = interleave(store, [clean, *(other(name, 8 + place) for place, name in enumerate(names))], seed)
    for outcome in outcomes:
        assert outcome.error is None or isinstance(outcome.error, TablewrightError), names
    assert outcomes[0].error is None, names
    _whole(store)
