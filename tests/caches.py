"""Budgets of the process's cache for tests of whole histories: it must change no answer.

*Off* reads everything again, *tiny* evicts all the time, *large* evicts nothing. A file counts as settled at once, so
that the cache is used as much as it can be: histories write no file twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.depth import deep

from tablewright.cache import process_cache
from tablewright.storage import identity

__all__ = ["BUDGETS", "budgets_of", "cached"]

BUDGETS = {"off": 0, "tiny": 6000, "large": 1 << 28}


def budgets_of(seed: int) -> Sequence[str]:
    """The budgets for the history of a seed: in CI one of them, in `make soak` all."""
    names = list(BUDGETS)
    return names if deep(1, 3) == 3 else [names[seed % 3]]


@contextmanager
def cached(budget: str) -> Iterator[None]:
    """Run with a cache of this budget, which is empty at first."""
    cache, settled = process_cache(), identity.SETTLED_NS
    before = cache.bytes_max
    cache.clear()
    cache.resize(BUDGETS[budget])
    identity.SETTLED_NS = 0
    try:
        yield
    finally:
        identity.SETTLED_NS = settled
        cache.resize(before)
