"""Which rows of a fragment get new values, and which go along with them.

Tests: ``tests/unit/operations/test_update.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tablewright.format.fragment import Fragment
from tablewright.format.row_set import Offsets, RowSet

__all__ = ["FragmentChange"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentChange:
    """Rows of one fragment: those in ``changed`` get new values, those in ``deleted`` go.

    ``first_row`` is the position of the fragment's first live row in the table, for ``_rowoffset``.
    """

    fragment: Fragment
    first_row: int
    changed: RowSet
    deleted: RowSet = field(default_factory=RowSet)

    @property
    def offsets(self) -> Offsets:
        """The rows that get new values, ascending."""
        return self.changed.to_numpy()
