"""What a deletion vector, of whatever format, must not say about the rows of its data file."""

from __future__ import annotations

from tablewright.format.row_set import RowSet

__all__ = ["problems_of_deletions"]

_SHOWN_MAX = 5


def problems_of_deletions(deleted: RowSet, physical_rows: int, num_deleted_rows: int | None = None) -> tuple[str, ...]:
    """What contradicts a fragment of ``physical_rows`` rows, or the number of deleted rows in its metadata.

    >>> problems_of_deletions(RowSet.of([1, 9]), 5)
    ('1 deleted offsets lie beyond the 5 rows of the fragment: 9',)
    """
    problems = []
    if (last := deleted.last) is not None and last >= physical_rows:
        count = len(deleted) - deleted.rank(physical_rows)
        shown = ", ".join(map(str, deleted.first(_SHOWN_MAX, physical_rows)))
        problems.append(f"{count} deleted offsets lie beyond the {physical_rows} rows of the fragment: {shown}")
    if num_deleted_rows is not None and num_deleted_rows != len(deleted):
        problems.append(f"{len(deleted)} rows are deleted where the fragment says {num_deleted_rows}")
    return tuple(problems)
