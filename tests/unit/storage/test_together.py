"""Requests at the same time where a store answers slowly, in order where it does not."""

from __future__ import annotations

import threading

import pytest

from tablewright.storage.base import ObjectNotFound, Store
from tablewright.storage.open import open_store
from tablewright.storage.subtree import SubtreeStore
from tablewright.storage.together import answers_slowly, read_each, together


class Slow(SubtreeStore):
    """A store whose first reads wait until ``at_once`` of them are under way."""

    answers_slowly = True  # type: ignore[assignment]

    def __init__(self, parent: Store, at_once: int = 1) -> None:
        super().__init__(parent, "t")
        self._missing, self._lock, self._enough = at_once, threading.Lock(), threading.Event()

    def get(self, path: str) -> bytes:
        with self._lock:
            self._missing -= 1
            if self._missing <= 0:
                self._enough.set()
        assert self._enough.wait(timeout=60), "reads wait for each other"
        return super().get(path)


def _store(at_once: int, name: str) -> Slow:
    store = open_store(f"memory://together/{name}")
    for number in range(100):
        store.put(f"t/{number}", str(number).encode())
    return Slow(store, at_once)


def test_which_stores_answer_slowly() -> None:
    options = {"region": "us-east-1", "skip_signature": "true"}
    remote = open_store("s3://bucket/table", options)
    assert answers_slowly(remote)
    assert answers_slowly(SubtreeStore(remote, "tree/b"))
    assert not answers_slowly(open_store("memory://together"))
    assert not answers_slowly(SubtreeStore(open_store("/tmp"), "x"))


def test_calls_to_a_slow_store_are_under_way_at_once() -> None:
    store = _store(3, "calls")
    assert together(store, *(lambda path=path: store.get(path) for path in "012")) == (b"0", b"1", b"2")


def test_the_first_error_in_order_is_raised_after_all_have_ended() -> None:
    store, ended = _store(1, "errors"), []

    def fail(name: str) -> None:
        ended.append(name)
        raise ValueError(name)

    with pytest.raises(ValueError, match="a"):
        together(store, lambda: fail("a"), lambda: fail("b"), lambda: ended.append("c"))
    assert sorted(ended) == ["a", "b", "c"]


def test_calls_to_others_come_one_after_the_other() -> None:
    made: list[int] = []
    together(open_store("memory://together"), *(lambda number=number: made.append(number) for number in range(5)))
    assert made == [0, 1, 2, 3, 4]
    with pytest.raises(ObjectNotFound):
        together(_store(1, "none").parent, lambda: _store(1, "none").parent.get("no"), lambda: made.append(5))
    assert made[-1] == 4


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 100])
def test_objects_are_read_ahead_and_come_in_order(count: int) -> None:
    store = _store(1, "ahead")
    expected = [str(number).encode() for number in range(count)]
    assert list(read_each(store, map(str, range(count)))) == expected
    assert list(read_each(store.parent, (f"t/{number}" for number in range(count)))) == expected


def test_what_is_not_there_is_none_and_a_reader_may_stop() -> None:
    store = _store(1, "stop")
    assert list(read_each(store, ["1", "none", "2"])) == [b"1", None, b"2"]
    reading = read_each(store, map(str, range(100)))
    assert next(reading) == b"0"
    reading.close()


def test_reads_of_a_slow_store_overlap() -> None:
    assert len(list(read_each(_store(8, "overlap"), map(str, range(64))))) == 64
