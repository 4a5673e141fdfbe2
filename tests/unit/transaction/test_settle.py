"""Put-if-absent and its doubtful replies: who holds the name is learned from the store, and nothing is put twice."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tablewright.errors import AccessDenied, CommitUnknown, StorageError
from tablewright.storage.base import ObjectNotFound
from tablewright.testing import (
    Call,
    DenyCreation,
    FailBefore,
    Fault,
    FaultyStore,
    LoseReply,
    Plan,
    SeededClock,
    first_of,
    memory_world,
    on_call,
)
from tablewright.transaction.settle import put_once
from tablewright.world import World

PATH = "_versions/2"
PUT, LOOK = "put_if_absent", "get"


class Writer:
    """One writer at a store of its own faults; what it called, and how long it waited."""

    def __init__(self, world: World, plan: Plan) -> None:
        self._clock, self._store = SeededClock(), FaultyStore(world.store, plan)
        self._world = replace(world, store=self._store, clock=self._clock, jitter=lambda: 0.5)

    def put(self, data: bytes = b"ours") -> bool:
        return put_once(self._world, PATH, data, lambda there: there == data, version=2, name="the uuid")

    @property
    def calls(self) -> list[str]:
        return [call.method for call in self._store.calls]

    @property
    def slept(self) -> list[float]:
        return self._clock.slept


def puts(fault: Fault, nth: int | None = None) -> Plan:
    return on_call(fault, method=PUT, nth=nth)


def looks(fault: Fault, nth: int | None = None) -> Plan:
    return on_call(fault, method=LOOK, nth=nth)


@pytest.fixture
def world() -> World:
    return memory_world()


def test_a_free_name_is_taken_by_one_call(world: World) -> None:
    writer = Writer(world, lambda call: None)
    assert writer.put() and writer.calls == [PUT]


def test_a_taken_name_is_theirs(world: World) -> None:
    world.store.put(PATH, b"theirs")
    writer = Writer(world, lambda call: None)
    assert not writer.put() and writer.calls == [PUT, LOOK]
    assert world.store.get(PATH) == b"theirs"


def test_a_refusal_may_speak_of_our_own_object(world: World) -> None:
    """A store that tried twice by itself says that something is there: it is what it put at first."""
    writer = Writer(world, puts(DenyCreation(), nth=0))
    assert writer.put() and writer.calls == [PUT, LOOK] and not writer.slept


def test_after_a_lost_reply_a_look_is_enough(world: World) -> None:
    writer = Writer(world, puts(LoseReply(), nth=0))
    assert writer.put() and writer.calls == [PUT, LOOK] and not writer.slept


def test_a_store_that_never_answers_a_put_is_asked_what_is_there(world: World) -> None:
    """It puts, and all its replies get lost. That it is there is known all the same."""
    writer = Writer(world, puts(LoseReply()))
    assert writer.put() and world.store.get(PATH) == b"ours"
    world.store.put(PATH, b"theirs")
    assert not Writer(world, puts(FailBefore())).put()


def test_a_put_that_failed_is_made_again(world: World) -> None:
    writer = Writer(world, puts(FailBefore(), nth=0))
    assert writer.put() and writer.calls == [PUT, LOOK, PUT] and len(writer.slept) == 1


def test_an_object_that_comes_and_goes_is_asked_for_again(world: World) -> None:
    world.store.put(PATH, b"theirs")
    writer = Writer(world, looks(FailBefore(ObjectNotFound(PATH)), nth=0))
    assert not writer.put() and writer.calls == [PUT, LOOK, PUT, LOOK]


def test_denied_access_is_final_if_nothing_can_be_there(world: World) -> None:
    writer = Writer(world, puts(FailBefore(AccessDenied("no"))))
    with pytest.raises(AccessDenied):
        writer.put()
    assert writer.calls == [PUT]


def full_disk() -> StorageError:
    error = StorageError("the disk is full")
    error.nothing_written = True
    return error


def test_a_certain_failure_is_final(world: World) -> None:
    writer = Writer(world, puts(FailBefore(full_disk())))
    with pytest.raises(StorageError, match="the disk is full"):
        writer.put()
    assert (writer.calls, writer.slept) == ([PUT], [])


def test_a_certain_failure_after_a_lost_reply_leaves_it_unknown(world: World) -> None:
    silent = looks(FailBefore())
    writer = Writer(world, first_of(puts(LoseReply(), nth=0), puts(FailBefore(full_disk())), silent))
    with pytest.raises(CommitUnknown):
        writer.put()
    assert world.store.get(PATH) == b"ours"


def test_denied_access_after_a_lost_reply_leaves_it_unknown(world: World) -> None:
    """The first put may have happened (here it did): "denied" would say that it did not."""
    silent = looks(FailBefore())
    writer = Writer(world, first_of(puts(LoseReply(), nth=0), puts(FailBefore(AccessDenied("no"))), silent))
    with pytest.raises(CommitUnknown):
        writer.put()
    assert world.store.get(PATH) == b"ours"


@pytest.mark.parametrize("fault", [FailBefore(), LoseReply()])
def test_silence_ends_as_unknown(world: World, fault: Fault) -> None:
    """It says what may be there, after some tries with growing waits."""
    writer = Writer(world, first_of(puts(fault), looks(FailBefore(StorageError("no line")))))
    with pytest.raises(CommitUnknown) as caught:
        writer.put()
    assert caught.value.version == 2 and "the uuid" in str(caught.value)
    assert writer.calls == [PUT, LOOK] * 8
    assert len(writer.slept) == 8 and writer.slept == sorted(writer.slept) and writer.slept[-1] <= 3


def test_what_is_there_is_never_replaced(world: World) -> None:
    """Whatever the replies, the object of whoever came first stays."""

    def weather(number: int) -> Plan:
        faults: list[Fault] = [FailBefore(), LoseReply(), DenyCreation()]

        def plan(call: Call) -> Fault | None:
            return faults[(number // 3**call.index) % 3] if call.index < 4 else None

        return plan

    for number in range(81):
        world.store.put(PATH, b"theirs")
        assert not Writer(world, weather(number)).put()
        assert world.store.get(PATH) == b"theirs"
        world.store.delete(PATH)
        assert Writer(world, weather(number)).put()
        assert not Writer(world, weather(number)).put(b"another")
        assert world.store.get(PATH) == b"ours"
