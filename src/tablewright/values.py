"""Frozen values with some fields changed.

A commit makes a dozen new values out of old ones, most of them with many fields. ``dataclasses.replace`` calls the
class, and a frozen class sets each field through a method: 16 µs for a manifest, where this takes 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache
from operator import attrgetter
from types import MemberDescriptorType
from typing import Any, TypeVar

__all__ = ["evolve"]

T = TypeVar("T")


def evolve(value: T, **changes: Any) -> T:
    """A copy of a dataclass, with these fields changed; ``__post_init__`` is called, where there is one.

    Without slots all fields are copied at once; each slot takes 0.1 µs. Cached properties are left out.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True)
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> evolve(Point(1, 2), y=5)
    Point(x=1, y=5)
    """
    kind = type(value)
    puts, get, is_checked = _fields(kind)  # type: ignore[arg-type]
    if not puts.keys() >= changes.keys():
        raise TypeError(f"{kind.__name__} has no field {', '.join(changes.keys() - puts.keys())}.")
    new = object.__new__(kind)
    if get is None:
        known = value.__dict__.copy()  # in one step: another thread may add a cached property
        new.__dict__.update(known if len(known) == len(puts) else {name: known[name] for name in puts})
        new.__dict__.update(changes)
    else:
        for put, old in zip(puts.values(), get(value), strict=True):
            put(new, old)
        for name, changed in changes.items():
            puts[name](new, changed)
    if is_checked:
        new.__post_init__()  # type: ignore[attr-defined]
    return new


_Fields = tuple[dict[str, Any], Callable[[Any], tuple[Any, ...]] | None, bool]


@lru_cache(maxsize=256)
def _fields(kind: type[Any]) -> _Fields:
    """What sets each field, and what reads all of them, if they are slots; whether new values are checked."""
    names = [field.name for field in fields(kind) if field.init]
    if len(names) < 2 or len(names) < len(fields(kind)):
        raise TypeError(f"{kind.__name__} needs two fields or more, all of them arguments.")
    is_checked = hasattr(kind, "__post_init__")
    slots = [slot for name in names if isinstance(slot := getattr(kind, name, None), MemberDescriptorType)]
    if not slots:
        return dict.fromkeys(names), None, is_checked
    if len(slots) < len(names):
        raise TypeError(f"{kind.__name__} needs slots for all of its fields, or for none.")
    return {name: slot.__set__ for name, slot in zip(names, slots, strict=True)}, attrgetter(*names), is_checked
