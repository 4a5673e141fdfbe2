"""Row addresses: where a row is, as one number. The fragment's id has the upper 32 bits, the offset the lower 32.

An address names a row as long as it stays where it is; a row that moves gets another one. Tables without stable row ids
use addresses as row ids.

Format: ``docs/format/row-ids.md#row-addresses``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Addresses", "RowAddress"]

Addresses = npt.NDArray[np.uint64]

_OFFSET_BITS = 32
_SHIFT, _OFFSET_MASK = np.uint64(_OFFSET_BITS), np.uint64((1 << _OFFSET_BITS) - 1)


class RowAddress(int):
    """The address of one row, a whole number. :meth:`join` and :meth:`split` treat whole arrays.

    >>> address = RowAddress.of(7, 1)
    >>> hex(address), address.fragment_id, address.offset
    ('0x700000001', 7, 1)
    """

    __slots__ = ()

    @classmethod
    def of(cls, fragment_id: int, offset: int = 0) -> RowAddress:
        """The address of the row at ``offset`` of a fragment."""
        return cls(fragment_id << _OFFSET_BITS | offset)

    @property
    def fragment_id(self) -> int:
        """The fragment that has the row."""
        return self >> _OFFSET_BITS

    @property
    def offset(self) -> int:
        """The row's physical offset in the fragment."""
        return self & int(_OFFSET_MASK)

    @staticmethod
    def join(fragment_ids: int | npt.NDArray[np.integer], offsets: npt.NDArray[np.integer]) -> Addresses:
        """The addresses of rows of one fragment, or of a fragment each.

        >>> RowAddress.join(1, np.array([0, 2])).tolist()
        [4294967296, 4294967298]
        """
        joined: Addresses = offsets.astype(np.uint64)
        joined += np.asarray(fragment_ids, np.uint64) << _SHIFT
        return joined

    @staticmethod
    def split(addresses: Addresses) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """The fragment id and the offset of each address.

        >>> [part.tolist() for part in RowAddress.split(np.array([5, 4294967298], np.uint64))]
        [[0, 1], [5, 2]]
        """
        return addresses >> _SHIFT, (addresses & _OFFSET_MASK).astype(np.int64)
