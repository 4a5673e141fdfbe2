"""Frozen values with some fields changed.

A commit makes a dozen new values out of old ones, most of them with many fields. ``dataclasses.replace`` calls the
class, and a frozen class sets each field through a method: 16 µs for a manifest, where this takes 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeVar

__all__ = ["evolve"]

T = TypeVar("T")


def evolve(value: T, **changes: Any) -> T:
    """A copy of a dataclass with slots, with these fields changed; ``__post_init__`` is called, where there is one.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> evolve(Point(1, 2), y=5)
    Point(x=1, y=5)
    """
    kind = type(value)
    slots, get, is_checked = _slots(kind)  # type: ignore[arg-type]
    new = object.__new__(kind)
    for (name, put), old in zip(slots, get(value), strict=True):
        put(new, changes.pop(name, old))
    if changes:
        raise TypeError(f"{kind.__name__} has no field {', '.join(changes)}.")
    if is_checked:
        new.__post_init__()  # type: ignore[attr-defined]
    return new


@lru_cache(maxsize=256)
def _slots(
    kind: type[Any],
) -> tuple[tuple[tuple[str, Callable[[Any, Any], None]], ...], Callable[[Any], tuple[Any, ...]], bool]:
    """The fields of a class, each with what sets it, and what reads all of them."""
    names = [field.name for field in fields(kind) if field.init]
    if len(names) < 2 or len(names) < len(fields(kind)):
        raise TypeError(f"{kind.__name__} needs two fields or more, all of them arguments.")
    slots = tuple((name, getattr(kind, name).__set__) for name in names)
    return slots, attrgetter(*names), hasattr(kind, "__post_init__")
