"""The description of a file as a value: a title, facts, and a table. ``cli`` prints it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from tablewright.format.row_set import RowSet

__all__ = ["Report", "moment", "positions", "shown"]

_SHOWN_MAX = 8
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


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


def moment(micros: int) -> str:
    """A moment by its microseconds since 1970, if the calendar goes so far.

    >>> moment(1_700_000_000_000_000), moment(2**63)
    ('2023-11-14 22:13:20 UTC', '9223372036854775808 µs since 1970')
    """
    try:
        return f"{_EPOCH + timedelta(microseconds=micros):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        return f"{micros} µs since 1970"


def positions(vector: RowSet) -> str:
    """The first few rows that a vector deletes."""
    return shown(vector.first(_SHOWN_MAX), len(vector))
