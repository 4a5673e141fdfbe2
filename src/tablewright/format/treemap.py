"""64-bit Roaring bitmaps ("treemaps"): sets of row ids or row addresses as bytes and back.

The layout, little-endian: u64 count; for each, ascending, a u32 high word and the portable 32-bit Roaring bitmap of the
low words that occur with it. :mod:`tablewright.format.id_sets` reads and writes whole columns of them.

Format: ``docs/format/indices.md#row-sets``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.format.id_sets.forms import TREEMAP
from tablewright.format.id_sets.sets import decode_sets, encode_sets

__all__ = ["decode_treemap", "encode_treemap"]


def encode_treemap(ids: npt.NDArray[np.uint64]) -> bytes:
    """The bytes of a set of ids, given in any order.

    >>> encode_treemap(np.array([2, 1], np.uint64)).hex()
    '0100000000000000000000003a30000001000000000001001000000001000200'
    """
    distinct = np.unique(ids.astype(np.uint64, copy=False))
    data: bytes = encode_sets(distinct, np.array([len(distinct)]), TREEMAP)[0].as_py()
    return data


def decode_treemap(data: bytes, values_max: int | None = None) -> npt.NDArray[np.uint64]:
    """The ids in ``data``, ascending. Raises ``ValueError`` with the reason if the bytes are anything else.

    ``values_max`` refuses a set that counts more values before they are expanded.

    >>> decode_treemap(encode_treemap(np.array([1 << 40, 7], np.uint64))).tolist()
    [7, 1099511627776]
    """
    return decode_sets(pa.array([data], pa.large_binary()), TREEMAP, values_max)[0]
