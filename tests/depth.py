"""How much the expensive tests do: in CI a part of what was promised, in `make soak` all of it.

`TABLEWRIGHT_DEPTH` is a factor. 1, the default, means the numbers of CI; with more, numbers grow up to the promised
ones, and `inf` stands for all of these. What is drawn by chance is the same in every run of CI, so that its verdict is
about the code, and new in every run of `make soak`; what is counted off comes in an order in which a part stands for
the whole.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

__all__ = ["DEPTH", "deep", "pairs_first", "stride"]

DEPTH = float(os.environ.get("TABLEWRIGHT_DEPTH", "1"))

Item = TypeVar("Item")
Facts = Mapping[str, Hashable]


def deep(ci: int, full: int) -> int:
    """The number to use: `ci` times the depth, at least 1 and never more than `full`."""
    wanted = ci * DEPTH
    return full if wanted >= full else max(1, round(wanted))


def stride(ci: int) -> int:
    """The step to take through what is counted off: `ci` at the depth of CI, 1 where all of it is wanted."""
    return max(1, round(ci / DEPTH))


def pairs_first(items: Iterable[tuple[Item, Facts]]) -> list[Item]:
    """All items, in an order that soon has every two facts together that meet in any of them.

    Each item comes with its facts, a value for each name. The first items are those that bring most new pairs of
    values; once there is none left to bring, the others follow in their own order.
    """
    waiting = [(item, _pairs(facts)) for item, facts in items]
    seen: set[Hashable] = set()
    chosen: list[Item] = []
    while waiting:
        best = max(range(len(waiting)), key=lambda index: len(waiting[index][1] - seen))
        if not waiting[best][1] - seen:
            break
        item, pairs = waiting.pop(best)
        chosen.append(item)
        seen |= pairs
    return chosen + [item for item, _ in waiting]


def _pairs(facts: Facts) -> set[Hashable]:
    values: Sequence[tuple[str, Hashable]] = sorted(facts.items(), key=lambda fact: fact[0])
    return set(itertools.combinations(values, 2))
