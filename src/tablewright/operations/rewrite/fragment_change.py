"""Which rows of a fragment get new values, and which go along with them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from pyroaring import FrozenBitMap

from tablewright.format.deletion_vector import DeletionVector
from tablewright.format.fragment import Fragment

__all__ = ["FragmentChange", "Offsets"]

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentChange:
    """Rows of one fragment: those in ``changed`` get new values, those in ``deleted`` go.

    ``first_row`` is the position of the fragment's first live row in the table, for ``_rowoffset``.
    """

    fragment: Fragment
    first_row: int
    changed: FrozenBitMap
    deleted: FrozenBitMap = field(default_factory=FrozenBitMap)

    @property
    def offsets(self) -> Offsets:
        """The rows that get new values, ascending."""
        return DeletionVector(self.changed).to_numpy().astype(np.int64)
