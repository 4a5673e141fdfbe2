"""What is done when it is first needed: properties that are computed once, names that are imported late.

*Properties.* ``functools.cached_property`` of Python 3.11 holds one lock for all instances while it computes. A process
that forks while another of its threads computes leaves that lock taken for ever in the child, which then hangs instead
of being refused (:mod:`tablewright.storage.libraries`). Here two threads may compute the same value; the last one is
kept.

*Names.* ``import tablewright`` imports next to nothing, since Spark's workers import it for a few of its modules, and
tools for its version. :func:`late_names` makes a module's ``__getattr__``, which imports what a name stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["cached_property", "late_names"]

T = TypeVar("T")


class cached_property(Generic[T]):
    """The value that the method returns, kept in the instance.

    >>> class Words:
    ...     @cached_property
    ...     def count(self) -> int:
    ...         print("computed")
    ...         return 3
    >>> words = Words()
    >>> words.count + words.count
    computed
    6
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


def late_names(
    module: dict[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a module: names that are imported when they are first asked for, and kept.

    ``module`` is its ``globals()``; ``homes`` says where each name is: ``"package.module:name"``, or
    ``"package.module"`` for a module.

    >>> namespace = {"__name__": "sample"}
    >>> getattr_, dir_ = late_names(namespace, {"half": "fractions:Fraction"})
    >>> getattr_("half")(1, 2), "half" in namespace, dir_()
    (Fraction(1, 2), True, ['__name__', 'half'])
    """

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {module['__name__']!r} has no attribute {name!r}")
        home, _, attribute = homes[name].partition(":")
        found = import_module(home)
        value = module[name] = getattr(found, attribute) if attribute else found
        return value

    def names() -> list[str]:
        return sorted({*module, *homes})

    return get, names
