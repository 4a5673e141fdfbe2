"""Arrow's bitmaps ↔ numpy's bools, much faster than Arrow's own conversion."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Bools", "bools_of", "mask_of", "valid_bools"]

Bools = npt.NDArray[np.bool_]


def bools_of(mask: pa.BooleanArray) -> Bools:
    """The values of a mask; null counts as false.

    >>> bools_of(pa.array([True, False, None, True])[1:]).tolist()
    [False, False, True]
    """
    found = _unpacked(mask.buffers()[1], mask.offset, len(mask))
    valid = valid_bools(mask)
    return found if valid is None else np.logical_and(found, valid, out=found)


def valid_bools(column: pa.Array) -> Bools | None:
    """Which values of a column of a primitive type are not null; ``None`` if all are.

    >>> valid_bools(pa.array([1, None, 3])).tolist(), valid_bools(pa.array([1]))
    ([True, False, True], None)
    """
    return _unpacked(column.buffers()[0], column.offset, len(column)) if column.null_count else None


def mask_of(bools: Bools) -> pa.BooleanArray:
    """The same as a mask of Arrow's.

    >>> mask_of(np.array([True, False])).to_pylist()
    [True, False]
    """
    bits = pa.py_buffer(np.packbits(bools, bitorder="little"))
    mask = pa.Array.from_buffers(pa.bool_(), len(bools), [None, bits], null_count=0)
    assert isinstance(mask, pa.BooleanArray), "its type is a boolean"
    return mask


def _unpacked(bits: pa.Buffer | None, offset: int, count: int) -> Bools:
    if bits is None or not count:
        return np.zeros(count, np.bool_)
    first, rest = divmod(offset, 8)
    packed = np.frombuffer(memoryview(bits), np.uint8)[first:]
    found: Bools = np.unpackbits(packed, count=rest + count, bitorder="little")[rest:].view(np.bool_)
    return found
