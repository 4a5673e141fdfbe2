"""Copies of values in another order: of those that all have one length as if they were numbers of that many bytes.

Arrow copies text and binary values one by one, after it has added up their lengths. Identifiers often have one length
(UUIDs, hashes, padded numbers): those are copied by numpy in half the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablewright.indices.query import Ids

__all__ = ["Picker", "picked"]

_WIDTH_MAX = 256
_OFFSETS = {pa.string(): np.int32, pa.binary(): np.int32, pa.large_string(): np.int64, pa.large_binary(): np.int64}


class Picker:
    """Values without nulls, of which some are wanted.

    >>> Picker(pa.array(["ab", "cd", "ef"])).pick(np.array([2, 0])).to_pylist()
    ['ef', 'ab']
    >>> Picker(pa.array(["ab", "cde"])).pick(np.array([1, 1])).to_pylist()
    ['cde', 'cde']
    """

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        self._width, self._items = _of_one_length(values)

    def pick(self, rows: npt.NDArray[np.int64]) -> pa.Array:
        """The values at these rows, in that order. Precondition: there are these rows."""
        if self._items is None:
            return pc.take(self._values, pa.array(rows), boundscheck=False)
        kind, width = self._values.type, self._width
        offsets = np.arange(0, (len(rows) + 1) * width, width, dtype=_OFFSETS[kind])
        data = pa.py_buffer(np.take(self._items, rows).view(np.uint8))
        return pa.Array.from_buffers(kind, len(rows), [None, pa.py_buffer(offsets), data])


def picked(ids: Ids, rows: npt.NDArray[np.int64]) -> Ids:
    """The ids at these rows: Arrow takes them in half the time of numpy. Precondition: there are these rows.

    >>> picked(np.array([7, 8, 9], np.uint64), np.array([2, 0])).tolist()
    [9, 7]
    """
    return pc.take(pa.array(ids), pa.array(rows), boundscheck=False).to_numpy()


def _of_one_length(values: pa.Array) -> tuple[int, npt.NDArray[Any] | None]:
    """The length that all values have, and the values as items of it; ``None`` if there is no such length."""
    if values.type not in _OFFSETS or not len(values) or values.null_count:
        return 0, None
    _, offsets_buffer, data = values.buffers()
    if offsets_buffer is None or data is None:
        return 0, None
    offsets = np.frombuffer(memoryview(offsets_buffer), _OFFSETS[values.type])
    offsets = offsets[values.offset : values.offset + len(values) + 1]
    width = int(offsets[1]) - int(offsets[0])
    if not 0 < width <= _WIDTH_MAX or np.any(np.diff(offsets) != width):
        return 0, None
    raw = np.frombuffer(memoryview(data), np.uint8)[int(offsets[0]) : int(offsets[-1])]
    return width, raw.view(f"V{width}")
