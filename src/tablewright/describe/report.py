"""What there is to say about a file: a title, facts, and a table. How it looks is decided in ``command.py``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tablewright.format.deletion_vector import DeletionVector

__all__ = ["Report", "positions", "shown"]

_SHOWN_MAX = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A file in words. ``rows`` are as wide as ``columns``."""

    title: str
    facts: tuple[tuple[str, Any], ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for JSON.

        >>> Report(title="a set", facts=(("hashes", 2),), columns=("hash",), rows=((7,), (9,))).to_dict()
        {'title': 'a set', 'facts': {'hashes': 2}, 'rows': [{'hash': 7}, {'hash': 9}]}
        """
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "facts": dict(self.facts), "rows": rows}


def shown(numbers: Iterable[int], count: int) -> str:
    """The first few of ``count`` numbers.

    >>> shown([1, 2, 5], 3), shown(range(100), 100)
    ('1, 2, 5', '0, 1, 2, 3, 4, 5, 6, 7, … (100)')
    """
    text = ", ".join(map(str, islice(numbers, _SHOWN_MAX)))
    return text if count <= _SHOWN_MAX else f"{text}, … ({count})"


def positions(vector: DeletionVector) -> str:
    """The first few rows that a vector deletes."""
    return shown(vector.to_numpy()[:_SHOWN_MAX].tolist(), len(vector))
