"""One row per key: a source in which a key comes twice is refused, or loses all but one row of each key.

Keys that do not fit into memory together are compared range by range: the keys of one range with each other, then with
those of all ranges that follow.

Tests: ``tests/unit/api/test_merge_insert_calls.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tablewright.operations.merge_insert.clauses import InvalidMerge
from tablewright.operations.merge_insert.keys.key_columns import KeyColumns
from tablewright.operations.merge_insert.keys.key_table import KeyTable, distinct_rows
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.operations.merge_insert.source.shared import KeyRange, source_keys

__all__ = ["ambiguous", "check_distinct", "with_distinct_keys"]

Mask = npt.NDArray[np.bool_]


def check_distinct(source: KeptSource, key: KeyColumns, ranges: Sequence[KeyRange]) -> KeyTable | None:
    """Refuse a source in which a key comes twice. Returns its keys, if they fit into memory together."""
    table = None
    for index, (start, stop) in enumerate(ranges):
        table = KeyTable(source_keys(source, key, (start, stop)), start)
        if table.duplicate is not None:
            raise ambiguous(source, key, *table.duplicate)
        for other in ranges[index + 1 :]:
            found = table.find(source_keys(source, key, other))
            if np.any(found >= 0):
                place = int(np.argmax(found >= 0))
                raise ambiguous(source, key, int(found[place]), other[0] + place)
    return table if len(ranges) == 1 else None


def ambiguous(source: KeptSource, key: KeyColumns, first: int, second: int) -> InvalidMerge:
    """The error for two source rows with one key."""
    described = key.described(source.take(np.array([first]), key.columns))
    return InvalidMerge(
        "Invalid user input: Ambiguous merge inserts are prohibited: multiple source rows match the same target row on "
        f"({described}). Please ensure each target row is matched by at most one source row. Rows {first} and {second} "
        'of the source have this key; dedupe="first" or dedupe="last" keeps one of them.'
    )


def with_distinct_keys(source: KeptSource, key: KeyColumns, keep: str, ranges: Sequence[KeyRange]) -> KeptSource:
    """The source with the first or the last of several rows that have one key."""
    kept = np.ones(source.num_rows, np.bool_)
    ordered = list(ranges if keep == "first" else reversed(ranges))
    for index, (start, stop) in enumerate(ordered):
        columns = source_keys(source, key, (start, stop))
        left = distinct_rows(columns, keep)
        own = np.zeros(stop - start, np.bool_)
        own[left] = True
        kept[start:stop] &= own
        if index + 1 < len(ordered):
            chosen = [column.take(left) for column in columns]
            _drop_known(source, key, KeyTable(chosen), ordered[index + 1 :], kept)
    return source if kept.all() else source.only(np.flatnonzero(kept))


def _drop_known(source: KeptSource, key: KeyColumns, known: KeyTable, ranges: Sequence[KeyRange], kept: Mask) -> None:
    for start, stop in ranges:
        kept[start:stop] &= known.find(source_keys(source, key, (start, stop))) < 0
