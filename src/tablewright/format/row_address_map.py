"""Row-address maps: a set of row addresses (or row ids) as index files write it.

The layout, little-endian: u32 count; for each, ascending, u32 high word (a fragment id, where the numbers are
addresses), u32 length in bytes, and the portable 32-bit Roaring bitmap of the low words.
:mod:`tablewright.format.id_sets` reads and writes whole columns of them.

Format: ``docs/format/indices.md#row-sets``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.format.id_sets.forms import ADDRESS_MAP
from tablewright.format.id_sets.sets import decode_sets, encode_sets

__all__ = ["decode_row_address_map", "encode_row_address_map"]


def encode_row_address_map(ids: npt.NDArray[np.uint64]) -> bytes:
    """The bytes of a set of addresses, given in any order.

    >>> encode_row_address_map(np.array([1 << 32, 1 << 32], np.uint64)).hex()
    '0100000001000000120000003a3000000100000000000000100000000000'
    """
    distinct = np.unique(ids.astype(np.uint64, copy=False))
    data: bytes = encode_sets(distinct, np.array([len(distinct)]), ADDRESS_MAP)[0].as_py()
    return data


def decode_row_address_map(data: bytes, values_max: int | None = None) -> npt.NDArray[np.uint64]:
    """The addresses in ``data``, ascending. Raises ``ValueError`` with the reason if the bytes are anything else.

    ``values_max`` refuses a set that counts more of them before they are expanded.

    >>> decode_row_address_map(bytes(4)).tolist()
    []
    """
    return decode_sets(pa.array([data], pa.large_binary()), ADDRESS_MAP, values_max)[0]
