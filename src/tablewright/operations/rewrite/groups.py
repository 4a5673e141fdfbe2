"""Which fragments' rows move together: a small change makes one new file, and not one per fragment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tablewright.operations.rewrite.costs import FragmentChoice
from tablewright.operations.rewrite.move import ROWS_PER_FILE_MAX

__all__ = ["row_groups"]

_GROUP_BYTES = 64 * 1024 * 1024


def row_groups(choices: Sequence[FragmentChoice]) -> Iterator[list[FragmentChoice]]:
    """Fragments whose rows move together: some 64 MiB of rows, and one file's worth at most."""
    group: list[FragmentChoice] = []
    size = rows = 0
    for choice in choices:
        size, rows = size + choice.bytes_rows, rows + choice.matched_rows
        if group and (size > _GROUP_BYTES or rows > ROWS_PER_FILE_MAX):
            yield group
            group, size, rows = [], choice.bytes_rows, choice.matched_rows
        group.append(choice)
    if group:
        yield group
