from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace
from typing import Generic, TypeVar

import pytest

from tablewright.format.fragment import Fragment, FragmentList
from tablewright.format.manifest import Manifest
from tablewright.format.schema import Schema
from tablewright.lazy import cached_property
from tablewright.values import evolve

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Range:
    first: int
    last: int = 9
    names: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if self.first > self.last:
            raise ValueError(f"{self.first} is after {self.last}")


def test_as_replace() -> None:
    old = Range(1, 2, names=("a",))
    assert evolve(old, last=5) == replace(old, last=5) == Range(1, 5, names=("a",))
    assert evolve(old) == old and evolve(old) is not old
    assert old == Range(1, 2, names=("a",))
    fragment = Fragment(id=3, files=(), physical_rows=7)
    assert evolve(fragment, id=4) == replace(fragment, id=4)


def test_what_is_checked() -> None:
    with pytest.raises(ValueError, match="5 is after 2"):
        evolve(Range(1, 2), first=5)
    with pytest.raises(TypeError, match="Range has no field other"):
        evolve(Range(1, 2), other=5)


def test_without_slots() -> None:
    """Values that were computed from the old fields are not taken over."""

    @dataclass(frozen=True)
    class Word:
        text: str
        size: int = 0

        def __post_init__(self) -> None:
            if self.size < 0:
                raise ValueError(f"{self.size} is negative")

        @cached_property
        def upper(self) -> str:
            return self.text.upper()

    old = Word("a", 1)
    assert old.upper == "A"
    new = evolve(old, text="b")
    assert new == Word("b", 1) == replace(old, text="b") and new.upper == "B" and old == Word("a", 1)
    with pytest.raises(FrozenInstanceError):
        new.text = "c"  # type: ignore[misc]
    with pytest.raises(ValueError, match="-1 is negative"):
        evolve(old, size=-1)
    with pytest.raises(TypeError, match="Word has no field length"):
        evolve(old, length=2)
    empty = Manifest(schema=Schema(fields=()), fragments=FragmentList(), version=1)
    manifest = evolve(empty, version=7)
    assert manifest == replace(empty, version=7) and pickle.loads(pickle.dumps(manifest)) == manifest


def test_classes_that_it_can_not_copy() -> None:
    @dataclass(frozen=True, slots=True)
    class Kept:
        name: str
        size: int = field(default=0, init=False)

    with pytest.raises(TypeError, match="all of them arguments"):
        evolve(Kept("a"), name="b")

    @dataclass(frozen=True)
    class Wider(Range):
        more: int = 0

    with pytest.raises(TypeError, match="Wider needs slots for all of its fields, or for none"):
        evolve(Wider(1), more=2)


def test_a_class_without_slots_on_one_that_has_some() -> None:
    @dataclass(frozen=True)
    class Pair(Generic[T]):
        left: T
        right: T

    assert evolve(Pair(1, 2), right=3) == Pair(1, 3)
