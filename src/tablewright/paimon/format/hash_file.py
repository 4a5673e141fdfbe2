"""The hash file of a dynamic bucket: which key hashes are in it.

Nothing but signed 32-bit numbers in big-endian order: no header, no count, no checksum. It is a set, so the order means
nothing: Java writes that of its hash table, pypaimon ascending, and so do we. Java ignores bytes after the last
whole number; here they are an error, as in pypaimon.

Format: ``docs/format/paimon.md#hash-file``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from tablewright.errors import CorruptTable, InvalidRequest

__all__ = ["as_hashes", "decode_hashes", "distinct_hashes", "encode_hashes"]

Hashes = npt.NDArray[np.int32]

_WIDTH = 4
_LEAST, _MOST = -(2**31), 2**31 - 1


def as_hashes(values: Iterable[int] | npt.NDArray[np.integer]) -> Hashes:
    """Key hashes as the set that a file holds: ascending, each once.

    >>> as_hashes([3, -1, 3]).tolist()
    [-1, 3]
    """
    numbers = values if isinstance(values, np.ndarray) else np.array(list(values))
    if len(numbers) and (numbers.dtype.kind not in "iu" or numbers.min() < _LEAST or numbers.max() > _MOST):
        raise InvalidRequest("Key hashes are whole numbers from -2**31 up to 2**31 - 1.")
    return distinct_hashes(numbers.astype(np.int32))


def distinct_hashes(hashes: Hashes) -> Hashes:
    """Each hash once, ascending. (``np.unique`` goes through a hash table, and is many times slower.)"""
    ascending = np.sort(hashes)
    is_first = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=is_first[1:])
    return ascending[is_first]


def encode_hashes(hashes: Iterable[int] | npt.NDArray[np.integer]) -> bytes:
    """The bytes of a hash file, in ascending order.

    >>> encode_hashes([7, -1]).hex()
    'ffffffff00000007'
    """
    return as_hashes(hashes).astype(">i4").tobytes()


def decode_hashes(data: bytes, path: str) -> Hashes:
    """The set in a hash file, ascending; :class:`CorruptTable` naming ``path`` if it ends within a number."""
    if len(data) % _WIDTH:
        raise CorruptTable(path, (f"a hash file of {len(data)} bytes ends within a number of {_WIDTH} bytes",))
    return distinct_hashes(np.frombuffer(data, ">i4").astype(np.int32))
