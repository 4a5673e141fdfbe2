"""Which fragments' rows move together: a small change makes one new file, and not one per fragment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tablewright.operations.rewrite.costs import FragmentChoice
from tablewright.operations.rewrite.limits import DEFAULT_LIMITS, RewriteLimits

__all__ = ["row_groups"]


def row_groups(
    choices: Sequence[FragmentChoice], limits: RewriteLimits = DEFAULT_LIMITS
) -> Iterator[list[FragmentChoice]]:
    """Fragments whose rows move together, greedily: as many as the limits allow, at least one."""
    group: list[FragmentChoice] = []
    size = rows = 0
    for choice in choices:
        size, rows = size + choice.bytes_rows, rows + choice.matched_rows
        if group and (size > limits.bytes_per_group or rows > limits.rows_per_group):
            yield group
            group, size, rows = [], choice.bytes_rows, choice.matched_rows
        group.append(choice)
    if group:
        yield group
