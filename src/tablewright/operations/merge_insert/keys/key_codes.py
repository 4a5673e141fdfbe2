"""Values of one column as numbers: a value has the number of the equal value that was seen before, or -1.

Two values are equal as they are in a BTREE (:mod:`tablewright.indices.btree.order`): by their bits. So -0.0 is not
0.0, and NaN equals itself. Null is equal to nothing.

- *Numbers* of up to 64 bits (also times, dates, booleans, floats by their bits) are looked up in a table that has a
  place for every number between the smallest and the largest, if that is not too many; else in a hash table.
- *Bytes* (text, binary, decimals) are looked up by Arrow, which hashes the known values again at every call: callers
  bring as many values at a time as they can.

Tests: ``tests/unit/operations/merge_insert/keys/test_key_table.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

__all__ = ["Coder", "Codes", "Column", "NumberCoder", "coded", "numbered"]

Codes = npt.NDArray[np.int64]
Column: TypeAlias = "pa.Array | pa.ChunkedArray"

_SPARE_PLACES = 1 << 20
_PLACES_PER_VALUE = 8
_VIEWS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


class Coder(Protocol):
    """Knows the distinct values of a column. Threads may share it."""

    @property
    def count(self) -> int:
        """How many there are: numbers go from 0 up to this."""

    @property
    def rows_per_call(self) -> int:
        """From how many values on a call is worth its fixed price."""

    def codes(self, column: Column) -> Codes:
        """The number of each value, -1 for null and for one that is not known."""


def coded(column: Column) -> tuple[Coder, Codes]:
    """A coder of a column's values, and the number of each of them; null has -1.

    >>> coder, codes = coded(pa.array(["b", "a", None, "b"]))
    >>> codes.tolist(), coder.codes(pa.array(["a", "c"])).tolist()
    ([0, 1, -1, 0], [1, -1])
    """
    if _is_number(column.type):
        return numbered(*_numbers(_joined(column)))
    encoded = _joined(column).dictionary_encode()
    return _Bytes(encoded.dictionary), _filled(encoded.indices)


def _is_number(kind: pa.DataType) -> bool:
    return bool(at.is_boolean(kind) or at.is_integer(kind) or at.is_floating(kind) or at.is_temporal(kind))


def _filled(indices: pa.Array) -> Codes:
    return pc.fill_null(indices, -1).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


def _joined(column: Column) -> pa.Array:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


# ------------------------------------------------------------------------------------------------------------- numbers
def _numbers(array: pa.Array) -> tuple[Codes, npt.NDArray[np.bool_] | None]:
    """The values' bits as integers, and which of them are null, if any is."""
    nulls = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if nulls is not None:
        array = _without_nulls(array)
    if at.is_boolean(array.type):
        array = array.cast(pa.uint8())
    bits = array.view(_VIEWS[array.type.bit_width]).to_numpy()
    return bits.astype(np.int64, copy=False), nulls


def _without_nulls(array: pa.Array) -> pa.Array:
    """The same values; whatever lies in memory where they are null."""
    buffers = array.buffers()
    return pa.Array.from_buffers(array.type, len(array), [None, *buffers[1:]], offset=array.offset)


def numbered(values: Codes, nulls: npt.NDArray[np.bool_] | None) -> tuple[NumberCoder, Codes]:
    """A coder of numbers, and the number of each; -1 where ``nulls`` says so."""
    if nulls is None:
        codes, distinct = pd.factorize(values)
        return _coder_of(distinct), codes.astype(np.int64, copy=False)
    codes = np.full(len(values), -1, np.int64)
    codes[~nulls], distinct = pd.factorize(values[~nulls])
    return _coder_of(distinct), codes


def _coder_of(distinct: Codes) -> NumberCoder:
    if len(distinct):
        low, high = int(distinct.min()), int(distinct.max())
        if high - low < _SPARE_PLACES + _PLACES_PER_VALUE * len(distinct):
            return _Places(distinct, low, high)
    return _Hashed(distinct)


class NumberCoder(ABC):
    """Knows distinct integers."""

    rows_per_call = 1

    def __init__(self, count: int) -> None:
        self.count = count

    @abstractmethod
    def find(self, values: Codes) -> Codes:
        """The number of each integer, -1 for one that is not known."""

    def codes(self, column: Column) -> Codes:
        parts = [self._of(part) for part in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])]
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int64), *parts])

    def _of(self, array: pa.Array) -> Codes:
        values, nulls = _numbers(array)
        found = self.find(values)
        if nulls is not None:
            found[nulls] = -1
        return found


class _Places(NumberCoder):
    """One place for every number from ``low`` to ``high``, and one more for all others."""

    def __init__(self, distinct: Codes, low: int, high: int) -> None:
        super().__init__(len(distinct))
        self._low, self._beyond = np.int64(low), np.uint64(high - low + 1)
        self._places = np.full(high - low + 2, -1, np.int32 if len(distinct) < 2**31 else np.int64)
        self._places[distinct - self._low] = np.arange(len(distinct))

    def find(self, values: Codes) -> Codes:
        with np.errstate(over="ignore"):  # a number below the lowest wraps round to a very large one
            shifted = (values - self._low).view(np.uint64)
        found = self._places[np.minimum(shifted, self._beyond).view(np.int64)]
        return found.astype(np.int64)


class _Hashed(NumberCoder):
    def __init__(self, distinct: Codes) -> None:
        super().__init__(len(distinct))
        self._index = pd.Index(distinct)
        self._index.get_indexer(self._index[:0])  # hashed now, before threads share it

    def find(self, values: Codes) -> Codes:
        found: Codes = self._index.get_indexer(pd.Index(values)).astype(np.int64)
        return found


# --------------------------------------------------------------------------------------------------------------- bytes
class _Bytes:
    def __init__(self, distinct: pa.Array) -> None:
        self.count = len(distinct)
        self._distinct = distinct

    @property
    def rows_per_call(self) -> int:
        return self.count

    def codes(self, column: Column) -> Codes:
        if not self.count or not len(column):
            return np.full(len(column), -1, np.int64)
        return _filled(_joined(pc.index_in(column, value_set=self._distinct, skip_nulls=True)))
