from __future__ import annotations

import threading

import pytest

from tablewright.errors import AccessDenied, StorageError
from tablewright.storage import Store, SubtreeStore
from tablewright.storage.base import exists
from tablewright.testing import (
    Call,
    CrashAfter,
    CrashBefore,
    DenyCreation,
    FailBefore,
    Fault,
    FaultyStore,
    Gate,
    LoseReply,
    Pause,
    SimulatedCrash,
    StaleList,
    at_call,
    every_single_fault,
    first_of,
    memory_world,
    on_call,
)


@pytest.fixture
def inner() -> Store:
    return memory_world().store


def test_calls_are_numbered(inner: Store) -> None:
    store = FaultyStore(inner)
    store.put("a", b"1")
    store.get("a")
    list(store.list("x"))
    store.put_if_absent("b", b"")
    store.delete("b")
    assert [(call.index, call.method, call.path) for call in store.calls] == [
        (0, "put", "a"),
        (1, "get", "a"),
        (2, "list", "x"),
        (3, "put_if_absent", "b"),
        (4, "delete", "b"),
    ]
    assert store.codec_location("a") is None
    assert store.location == inner.location


@pytest.mark.parametrize(
    ("fault", "error", "happened"),
    [
        (FailBefore(), StorageError, False),
        (FailBefore(AccessDenied("no")), AccessDenied, False),
        (LoseReply(), StorageError, True),
        (CrashBefore(), SimulatedCrash, False),
        (CrashAfter(), SimulatedCrash, True),
    ],
)
def test_faults(inner: Store, fault: Fault, error: type[BaseException], happened: bool) -> None:
    for write in ("put", "put_if_absent"):
        store = FaultyStore(inner, at_call(0, fault))
        with pytest.raises(error):
            getattr(store, write)(write, b"x")
        assert exists(inner, write) is happened


def test_the_dead_do_nothing(inner: Store) -> None:
    store = FaultyStore(inner, at_call(1, CrashAfter()))
    store.put("a", b"")
    with pytest.raises(SimulatedCrash):
        store.put("b", b"")
    assert store.crashed
    for act in (lambda: store.delete("a"), lambda: store.put("c", b""), lambda: store.list(""), lambda: store.get("a")):
        with pytest.raises(SimulatedCrash):
            act()
    assert exists(inner, "a") and exists(inner, "b") and not exists(inner, "c")
    assert len(store.calls) == 2


def test_a_crash_is_no_exception() -> None:
    assert not issubclass(SimulatedCrash, Exception)


def test_lies(inner: Store) -> None:
    store = FaultyStore(inner, on_call(DenyCreation()))
    assert store.put_if_absent("a", b"mine") is False
    assert inner.get("a") == b"mine"
    assert store.get("a") == b"mine"
    inner.put("b", b"")
    stale = FaultyStore(inner, on_call(StaleList(lambda path: path == "b"), method="list"))
    assert [info.path for info in stale.list("")] == ["a"]
    assert stale.get("b") == b""


def test_plans_choose_calls(inner: Store) -> None:
    plan = first_of(
        on_call(FailBefore(), method="put", path="_versions/*", nth=1),
        on_call(LoseReply(), path="data/x"),
    )
    store = FaultyStore(inner, plan)
    store.put("_versions/1", b"")
    store.put("data/y", b"")
    with pytest.raises(StorageError, match="before put _versions/2"):
        store.put("_versions/2", b"")
    store.put("_versions/3", b"")
    for _ in range(2):
        with pytest.raises(StorageError, match="reply to put data/x"):
            store.put("data/x", b"")
    assert {info.path for info in inner.list("")} == {"_versions/1", "_versions/3", "data/x", "data/y"}


def test_every_single_fault_meets_every_call(inner: Store) -> None:
    def scenario(store: Store) -> None:
        store.put("a", b"")
        store.put("b", b"")

    counting = FaultyStore(memory_world().store)
    scenario(counting)
    seen = []
    for index, fault, plan in every_single_fault(len(counting.calls)):
        store = FaultyStore(memory_world().store, plan)
        with pytest.raises((StorageError, SimulatedCrash)):
            scenario(store)
        seen.append((index, fault))
        assert len(store.calls) == index + 1
    assert len(seen) == len(set(map(str, seen))) == 8


def test_pauses_let_others_in(inner: Store) -> None:
    gate = Gate()
    store = FaultyStore(inner, on_call(gate.pause(), method="put_if_absent"))
    created: list[bool] = []
    writer = threading.Thread(target=lambda: created.append(store.put_if_absent("a", b"late")))
    writer.start()
    gate.arrived()
    assert inner.put_if_absent("a", b"early")
    gate.open()
    writer.join()
    assert created == [False]
    assert inner.get("a") == b"early"


def test_a_pause_sees_the_call(inner: Store) -> None:
    seen: list[Call] = []
    store = FaultyStore(inner, on_call(Pause(seen.append)))
    store.put("a", b"")
    assert seen == [Call(0, "put", "a")]


def test_branches_share_the_faults(inner: Store) -> None:
    store = FaultyStore(inner, on_call(FailBefore(), path="tree/b/*"))
    with pytest.raises(StorageError):
        SubtreeStore(store, "tree/b").put("x", b"")
