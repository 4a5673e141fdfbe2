from __future__ import annotations

from tablewright.format.deletion_vectors.problems import problems_of_deletions
from tablewright.format.row_set import RowSet


def test_problems() -> None:
    vector = RowSet.of([0, 3, 4])
    assert problems_of_deletions(vector, 5) == problems_of_deletions(vector, 5, 3) == ()
    assert problems_of_deletions(vector, 4) == ("1 deleted offsets lie beyond the 4 rows of the fragment: 4",)
    assert len(problems_of_deletions(vector, 3, 2)) == 2
    assert problems_of_deletions(RowSet(), 0, 0) == ()


def test_problems_of_offsets_beyond_32_bits() -> None:
    vector = RowSet.of([5, 2**40, 2**40 + 1])
    assert problems_of_deletions(vector, 2**40 + 1) == (
        f"1 deleted offsets lie beyond the {2**40 + 1} rows of the fragment: {2**40 + 1}",
    )
    assert vector.first(5) == [5, 2**40, 2**40 + 1]
    assert problems_of_deletions(vector, 2**41, 3) == ()
