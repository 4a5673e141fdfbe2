"""Which fragments' rows move together."""

from __future__ import annotations

import pytest

from tablewright.operations.rewrite.costs import REWRITE_ROWS, FragmentChoice
from tablewright.operations.rewrite.groups import row_groups
from tablewright.operations.rewrite.limits import RewriteLimits


def _choice(id: int, nbytes: int, rows: int) -> FragmentChoice:
    return FragmentChoice(fragment_id=id, matched_rows=rows, bytes_rows=nbytes, bytes_columns=0, mode=REWRITE_ROWS)


@pytest.mark.parametrize(
    ("sizes", "limits", "groups"),
    [
        ([], RewriteLimits(), []),
        ([(1, 1)] * 4, RewriteLimits(), [[0, 1, 2, 3]]),
        ([(40, 1)] * 4, RewriteLimits(bytes_per_group=80), [[0, 1], [2, 3]]),
        ([(40, 1), (41, 1), (1, 1)], RewriteLimits(bytes_per_group=80), [[0], [1, 2]]),
        ([(900, 1), (900, 1)], RewriteLimits(bytes_per_group=80), [[0], [1]]),
        ([(1, 6), (1, 4), (1, 1)], RewriteLimits(rows_per_group=10), [[0, 1], [2]]),
        ([(1, 99)] * 2, RewriteLimits(rows_per_group=10), [[0], [1]]),
    ],
)
def test_as_many_as_the_limits_allow(
    sizes: list[tuple[int, int]], limits: RewriteLimits, groups: list[list[int]]
) -> None:
    choices = [_choice(id, nbytes, rows) for id, (nbytes, rows) in enumerate(sizes)]
    assert [[choice.fragment_id for choice in group] for group in row_groups(choices, limits)] == groups
