"""Fragments whose rows move together."""

from __future__ import annotations

import pytest

from tablewright.operations.rewrite.costs import REWRITE_ROWS, FragmentChoice
from tablewright.operations.rewrite.groups import row_groups

MIB = 1024 * 1024


def sizes(*given: tuple[int, int]) -> list[int]:
    """How many fragments of these rows and bytes go together, group by group."""
    choices = [
        FragmentChoice(fragment_id=id, matched_rows=rows, bytes_rows=size, bytes_columns=0, mode=REWRITE_ROWS)
        for id, (rows, size) in enumerate(given)
    ]
    groups = list(row_groups(choices))
    assert [choice for group in groups for choice in group] == choices
    return [len(group) for group in groups]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], []),
        ([(1, 10)] * 1000, [1000]),
        ([(1, 32 * MIB)] * 5, [2, 2, 1]),
        ([(1, 100 * MIB), (1, 1), (1, 100 * MIB)], [1, 1, 1]),
        ([(1 << 19, 1)] * 5, [2, 2, 1]),
        ([(1 << 25, 1)], [1]),
    ],
)
def test_some_bytes_and_one_file_of_rows(given: list[tuple[int, int]], expected: list[int]) -> None:
    assert sizes(*given) == expected
