"""Rows by key in this process: a sort instead of a shuffle.

1. The rows are sorted by key.
2. They are cut at key boundaries into parts of about equal size, so rows with equal keys are in one part.
3. Each part is sorted by all columns, ascending, in Spark's order: nulls first, NaN after all other numbers, strings by
   their bytes. Where the keys are the first columns, step 1 has done that.

Spark makes other parts of the same rows. Columns are flat: numbers, texts, bytes, booleans, dates and times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

__all__ = ["partitioned"]


def partitioned(rows: pa.Table, keys: Sequence[str], partitions: int) -> list[pa.Table]:
    """The rows in at most this many parts that are not empty, each sorted; rows with equal keys are in one part.

    >>> rows = pa.table({"k": [1, 3, 1, 2, None], "n": [5, 4, 3, 2, 1]})
    >>> [part.to_pydict() for part in partitioned(rows, ["k"], 2)]
    [{'k': [None, 1, 1], 'n': [1, 3, 5]}, {'k': [2, 3], 'n': [2, 4]}]
    """
    if not rows.num_rows:
        return []
    rest = [name for name in rows.column_names if name not in keys]
    parts = _cut(_sorted(rows, [*keys, *rest]), keys, partitions)
    return parts if [*keys, *rest] == rows.column_names else [_sorted(part, rows.column_names) for part in parts]


def _sorted(rows: pa.Table, by: Sequence[str]) -> pa.Table:
    columns: list[pa.ChunkedArray] = []
    for column in map(rows.column, by):
        # pyarrow puts NaN after the numbers and nulls after NaN, Spark puts nulls first: so they are compared first.
        columns += [column.is_valid(), column] if column.null_count else [column]
    names = [f"c{number}" for number in range(len(columns))]
    return rows.take(pc.sort_indices(pa.table(columns, names), sort_keys=[(name, "ascending") for name in names]))


def _cut(rows: pa.Table, keys: Sequence[str], parts: int) -> list[pa.Table]:
    """Cut rows that are sorted by key."""
    starts = _key_starts(rows.select(list(keys)))
    wanted = np.arange(parts) * rows.num_rows // parts
    firsts = starts[np.unique(np.minimum(np.searchsorted(starts, wanted), len(starts) - 1))].tolist()
    ends = [*firsts[1:], rows.num_rows]
    return [rows.slice(first, end - first) for first, end in zip(firsts, ends, strict=True)]


def _key_starts(keys: pa.Table) -> npt.NDArray[np.int64]:
    """The first row of each key in sorted rows."""
    differs = np.zeros(keys.num_rows, np.bool_)
    differs[0] = True
    for column in keys.columns:
        differs[1:] |= _differs(column.combine_chunks())
    return np.flatnonzero(differs)


def _differs(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Whether each value but the first differs from the one before it; nulls equal each other, and so do NaN."""
    here, before = column.slice(1), column.slice(0, len(column) - 1)
    if at.is_floating(column.type):
        both_nan = pc.and_(pc.is_nan(here), pc.is_nan(before))
        unequal = pc.and_(pc.not_equal(here, before), pc.invert(both_nan))
    else:
        unequal = pc.not_equal(here, before)
    one_is_null = pc.xor(here.is_null(), before.is_null())
    return pc.coalesce(unequal, one_is_null).to_numpy(zero_copy_only=False)
