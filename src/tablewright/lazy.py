"""Properties that are computed once, without a lock.

``functools.cached_property`` of Python 3.11 holds one lock for all instances while it computes. A process that forks
while another of its threads computes leaves that lock taken for ever in the child, which then hangs instead of being
refused (:mod:`tablewright.storage.libraries`). Here two threads may compute the same value; the last one is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["cached_property"]

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
