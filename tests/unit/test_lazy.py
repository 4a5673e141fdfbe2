"""A property that is computed once and kept in the instance, without a lock."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tablewright.lazy import cached_property, late_names


class Sample:
    def __init__(self) -> None:
        self.computed = 0

    @cached_property
    def value(self) -> list[int]:
        """What it is."""
        self.computed += 1
        return [self.computed]


def test_once_per_instance() -> None:
    one, other = Sample(), Sample()
    assert one.value is one.value
    assert one.value is not other.value
    assert (one.computed, other.computed) == (1, 1)
    del one.__dict__["value"]
    assert one.value == [2]


def test_of_the_class_it_is_itself() -> None:
    assert isinstance(Sample.value, cached_property)
    assert Sample.value.__doc__ == "What it is."


def test_threads_do_not_wait_for_each_other() -> None:
    """Two that compute at the same time both get through: with a lock this would hang."""
    both = threading.Barrier(2, timeout=20)

    class Slow:
        @cached_property
        def value(self) -> int:
            both.wait()
            return 3

    slow = Slow()
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(lambda _: slow.value, range(2))) == [3, 3]


def test_late_names_are_imported_when_they_are_asked_for_and_kept() -> None:
    module: dict[str, object] = {"__name__": "sample"}
    get, names = late_names(module, {"encode": "json:dumps", "decoder": "json.decoder"})
    assert (set(module), names()) == ({"__name__"}, ["__name__", "decoder", "encode"])
    assert get("encode") is json.dumps
    assert get("decoder") is json.decoder
    assert module["encode"] is json.dumps
    with pytest.raises(AttributeError, match="module 'sample' has no attribute 'other'"):
        get("other")
