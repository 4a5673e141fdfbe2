"""Ranges of row ids, read from the bytes of many fragments and written for many."""

from __future__ import annotations

import numpy as np
from tests.unit.format.samples import fragment, stable_fragment

from tablewright.format.fragment import encode_fragment
from tablewright.format.row_id_ranges import encode_ranges, row_id_ranges
from tablewright.format.row_ids import RowIdSequence, encode_row_ids


def holding(number: int, ids: RowIdSequence, rows: int | None = None) -> bytes:
    return encode_fragment(stable_fragment(number, physical_rows=rows or len(ids), row_ids=encode_row_ids(ids)))


def span(*bounds: tuple[int, int]) -> RowIdSequence:
    return RowIdSequence.from_values(np.concatenate([np.arange(start, stop) for start, stop in bounds]))


def test_ranges_of_many_fragments() -> None:
    found = row_id_ranges(
        [
            holding(0, span((0, 10))),
            holding(1, span((5000, 9000), (10, 4000), (2**40, 2**40 + 9))),
            holding(2, RowIdSequence.from_values([5, 3, 900])),
            encode_fragment(fragment(3)),
            holding(4, span((100, 105)), rows=7),
            holding(5, span((2**60, 2**60 + 2))),
        ]
    )
    assert found.rows.tolist() == [0, 1, 1, 1, 5]
    assert found.firsts.tolist() == [0, 5000, 10, 2**40, 2**60]
    assert found.lasts.tolist() == [9, 8999, 3999, 2**40 + 8, 2**60 + 1]
    assert found.offsets.tolist() == [0, 0, 4000, 7990, 0]
    assert found.others.tolist() == [2, 3, 4]


def test_blocks_are_joined() -> None:
    found = row_id_ranges([holding(0, span((7, 9)))] * 10_000)
    assert found.rows.tolist() == list(range(10_000)) and len(found.others) == 0
    assert len(row_id_ranges([]).rows) == 0


def test_many_ranges_are_written_as_one_by_one() -> None:
    starts = np.array([0, 1, 127, 128, 2**32, 2**63], np.uint64)
    ends = starts + np.arange(1, 7, dtype=np.uint64)
    bounds = zip(starts.tolist(), ends.tolist(), strict=True)
    assert encode_ranges(starts, ends) == [encode_row_ids(RowIdSequence.from_range(*each)) for each in bounds]
    assert encode_ranges(starts[:0], ends[:0]) == []
