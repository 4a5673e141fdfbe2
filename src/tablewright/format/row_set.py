"""A set of rows of one fragment: physical offsets in a Roaring bitmap, so unions and ranks are cheap at any size.

Deleted rows, matched rows, affected rows, rows whose columns changed: all of them are this value, from the task that
finds them to the file that stores them. It becomes bytes where it is stored (:meth:`RowSet.to_bytes` for transactions,
``format/deletion_vectors/`` for deletion files) and an array where rows are read (:meth:`RowSet.to_numpy`). Between
processes it travels as the bytes.

Offsets from ``2**32`` on, which Lance does not know but other formats do, are in a second bitmap, usually absent.

Format: ``docs/format/table.md#roaring-bitmaps``.
"""

from __future__ import annotations

import array
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, BitMap64, FrozenBitMap, FrozenBitMap64

from tablewright.errors import InvalidRequest
from tablewright.format.roaring import decode_bitmap, encode_bitmap

__all__ = ["Offsets", "RowSet", "distinct_offsets"]

Offsets = npt.NDArray[np.int64]
"""Physical offsets of rows within their fragment: how readers and writers of rows take them."""

_NARROW_LIMIT = 2**32
_SHOWN_MAX = 8
_OFFSET_LIMIT = 2**63  # offsets are signed 64-bit numbers wherever they are wide


@dataclass(frozen=True, slots=True)
class RowSet:
    """A frozen set of physical row offsets.

    ``bitmap`` holds those below ``2**32``; ``beyond`` the others, and is ``None`` where there are none.

    >>> gone = RowSet.of([1, 3])
    >>> gone.absent(5).tolist(), gone.rank(3), 3 in gone
    ([0, 2, 4], 1, True)
    >>> (gone | RowSet.of([7]), gone & RowSet.full(2), gone - RowSet.full(2))
    (RowSet([1, 3, 7]), RowSet([1]), RowSet([3]))
    >>> RowSet.of([7, 2**40]).to_numpy().tolist()
    [7, 1099511627776]
    """

    bitmap: FrozenBitMap = field(default_factory=FrozenBitMap)
    beyond: FrozenBitMap64 | None = None

    @classmethod
    def of(cls, offsets: Iterable[int] | npt.NDArray[np.integer]) -> RowSet:
        """The set of some offsets, in any order."""
        if isinstance(offsets, FrozenBitMap | BitMap):
            return cls(offsets if isinstance(offsets, FrozenBitMap) else FrozenBitMap(offsets))
        if isinstance(offsets, FrozenBitMap64 | BitMap64):
            offsets = np.frombuffer(offsets.to_array(), dtype=np.uint64)
        values = offsets if isinstance(offsets, np.ndarray) else np.array(list(offsets))
        if not len(values):
            return cls()
        lowest, highest = (values[0], values[0]) if len(values) == 1 else (values.min(), values.max())
        if values.dtype.kind not in "iu" or not 0 <= lowest <= highest < _OFFSET_LIMIT:
            raise InvalidRequest("Row offsets are whole numbers from 0 up to 2**63.")
        if highest < _NARROW_LIMIT:
            return cls(FrozenBitMap(_as_array(values.astype(np.uint32, copy=False))))
        high = values >= _NARROW_LIMIT
        wide = array.array("Q", values[high].astype(np.uint64).tobytes())
        return cls(FrozenBitMap(_as_array(values[~high].astype(np.uint32))), FrozenBitMap64(wide))

    @classmethod
    def full(cls, rows: int) -> RowSet:
        """All rows of a fragment of this many rows."""
        return cls(FrozenBitMap(range(rows)))

    # -------------------------------------------------------------------------------------------------------- bytes
    @classmethod
    def from_bytes(cls, data: bytes, rows_max: int | None = None) -> RowSet:
        """The set in portable Roaring bytes. Raises ``ValueError`` with the reason if the bytes are anything else.

        ``rows_max`` refuses a set that counts more rows, after reading the header alone.

        >>> RowSet.from_bytes(RowSet.of([2, 4]).to_bytes())
        RowSet([2, 4])
        """
        return cls(decode_bitmap(data, rows_max))

    def to_bytes(self) -> bytes:
        """Portable Roaring bytes, as transactions store them; containers stay what they are."""
        if self.beyond is not None:
            raise InvalidRequest(f"Transactions hold offsets below 2**32; this set reaches {self.last}.")
        return encode_bitmap(self.bitmap)

    def __reduce__(self) -> tuple[object, ...]:
        beyond = () if self.beyond is None else (bytes(self.beyond.serialize()),)
        return _rebuild, (encode_bitmap(self.bitmap), *beyond)

    # ---------------------------------------------------------------------------------------------------------- sets
    def __len__(self) -> int:
        return len(self.bitmap) + (0 if self.beyond is None else len(self.beyond))

    def __bool__(self) -> bool:
        return bool(self.bitmap) or bool(self.beyond)

    def __contains__(self, offset: int) -> bool:
        if 0 <= offset < _NARROW_LIMIT:
            return offset in self.bitmap
        return self.beyond is not None and 0 <= offset < _OFFSET_LIMIT and offset in self.beyond

    def __iter__(self) -> Iterator[int]:
        return itertools.chain(self.bitmap, self.beyond or ())

    def __or__(self, other: RowSet) -> RowSet:
        wide = self.beyond if other.beyond is None else other.beyond
        if self.beyond is not None and other.beyond is not None:
            wide = self.beyond | other.beyond
        return RowSet(self.bitmap | other.bitmap, wide)

    def __and__(self, other: RowSet) -> RowSet:
        wide = None if self.beyond is None or other.beyond is None else self.beyond & other.beyond
        return RowSet(self.bitmap & other.bitmap, wide or None)

    def __sub__(self, other: RowSet) -> RowSet:
        wide = self.beyond if self.beyond is None or other.beyond is None else self.beyond - other.beyond
        return RowSet(self.bitmap - other.bitmap, wide or None)

    def __le__(self, other: RowSet) -> bool:
        """Whether all rows of this set are in the other one."""
        return bool(self.bitmap <= other.bitmap) and (
            self.beyond is None or (other.beyond is not None and bool(self.beyond <= other.beyond))
        )

    def isdisjoint(self, other: RowSet) -> bool:
        """Whether no row is in both sets."""
        wide = self.beyond is not None and other.beyond is not None and self.beyond.intersect(other.beyond)
        return not (wide or self.bitmap.intersect(other.bitmap))

    @property
    def last(self) -> int | None:
        """The highest offset; ``None`` where the set is empty."""
        return int((self.beyond or self.bitmap).max()) if self else None

    def first(self, count: int, start: int = 0) -> list[int]:
        """The lowest offsets from ``start`` on, at most ``count`` of them.

        >>> RowSet.of([9, 4, 2**40]).first(2)
        [4, 9]
        """
        below = self.bitmap.iter_equal_or_larger(start) if start < _NARROW_LIMIT else iter(())
        wide = self.beyond if self.beyond is not None else FrozenBitMap64()
        return list(itertools.islice(itertools.chain(below, wide.iter_equal_or_larger(start)), count))

    def rank(self, offset: int) -> int:
        """Rank: how many offsets of the set are below ``offset``."""
        if offset <= 0:
            return 0
        below = int(self.bitmap.rank(min(offset, _NARROW_LIMIT) - 1))
        return below if self.beyond is None else below + int(self.beyond.rank(min(offset, _OFFSET_LIMIT) - 1))

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.first(_SHOWN_MAX)))
        return f"RowSet([{shown}])" if len(self) <= _SHOWN_MAX else f"RowSet([{shown}, …], {len(self)} rows)"

    # -------------------------------------------------------------------------------------------------------- arrays
    def to_numpy(self) -> Offsets:
        """The offsets, ascending."""
        return self._narrowest().astype(np.int64)

    def _narrowest(self) -> npt.NDArray[np.uint32] | npt.NDArray[np.uint64]:
        """The offsets without a copy: ``uint32``, or ``uint64`` where some lie beyond."""
        below = np.frombuffer(self.bitmap.to_array(), dtype=np.uint32)
        if self.beyond is None:
            return below
        return np.concatenate([below.astype(np.uint64), np.frombuffer(self.beyond.to_array(), dtype=np.uint64)])

    def contains(self, offsets: Offsets) -> npt.NDArray[np.bool_]:
        """One bool per offset: whether it is in the set.

        >>> RowSet.of([1, 2]).contains(np.array([0, 1, 7])).tolist()
        [False, True, False]
        """
        members = self._narrowest()
        if not len(members):
            return np.zeros(len(offsets), np.bool_)
        wanted = offsets.astype(members.dtype)  # otherwise numpy would widen all members to 64 bits
        place = np.minimum(np.searchsorted(members, wanted), len(members) - 1)
        hit: npt.NDArray[np.bool_] = np.equal(members[place], wanted)
        return hit

    def spread_over(self, others: RowSet) -> RowSet:
        """These rows, and all runs of consecutive rows of ``others`` that are beside one of them.

        >>> RowSet.of([2, 5, 9]).spread_over(RowSet.of([0, 3, 4, 7]))
        RowSet([2, 3, 4, 5, 9])
        """
        rows, members = others.to_numpy(), self.to_numpy()
        breaks = np.flatnonzero(np.diff(rows) != 1)
        firsts, lasts = np.append(0, breaks + 1), np.append(breaks, len(rows) - 1)
        if not len(rows) or not len(members):
            return self
        before = np.append(-1, members)[np.searchsorted(members, rows[firsts])]
        after = np.append(members, -1)[np.searchsorted(members, rows[lasts], side="right")]
        beside = ((before >= 0) & (before == rows[firsts] - 1)) | (after == rows[lasts] + 1)
        return self | RowSet.of(rows[np.repeat(beside, lasts - firsts + 1)])

    # ---------------------------------------------------------------------------------------------------- complement
    def complement(self, rows: int) -> RowSet:
        """The other rows of a fragment of ``rows`` rows: the live ones, where the set is a deletion vector."""
        return RowSet.full(rows) - self

    def absent_mask(self, rows: int) -> npt.NDArray[np.bool_]:
        """One bool per row of a fragment of ``rows`` rows: whether it is not in the set."""
        mask = np.ones(rows, np.bool_)
        mask[self._below(rows)._narrowest()] = False
        return mask

    def absent(self, rows: int) -> Offsets:
        """The offsets of the complement, ascending."""
        return np.flatnonzero(self.absent_mask(rows))

    def nth_absent(self, ranks: npt.NDArray[np.int64]) -> Offsets:
        """Select on the complement: the offset of each rank. Memory grows with the rows of the set only.

        >>> RowSet.of([1, 2]).nth_absent(np.array([0, 1, 2])).tolist()
        [0, 3, 4]
        """
        members = self.to_numpy()
        absent_before = members - np.arange(len(members))
        return ranks + np.searchsorted(absent_before, ranks, side="right")

    def _below(self, end: int) -> RowSet:
        """The offsets below ``end``; the others are never expanded to an array."""
        last = self.last
        if last is None or last < end:
            return self
        if end >= _NARROW_LIMIT:
            return self & RowSet(self.bitmap, FrozenBitMap64(range(_NARROW_LIMIT, end)))
        return RowSet(self.bitmap & FrozenBitMap(range(end)))


def distinct_offsets(rows: npt.NDArray[np.integer] | RowSet) -> Offsets:
    """Some offsets, given in any order, ascending and each once. Those that ascend already are not sorted.

    >>> distinct_offsets(np.array([5, 2, 5])).tolist()
    [2, 5]
    """
    if isinstance(rows, RowSet):
        return rows.to_numpy()
    offsets = rows.astype(np.int64, copy=False)
    return offsets if np.all(offsets[1:] > offsets[:-1]) else np.unique(offsets)


def _as_array(values: npt.NDArray[np.uint32]) -> array.array[int]:
    """The form that pyroaring takes without a Python loop over the numbers."""
    return array.array("I", values.tobytes())


def _rebuild(data: bytes, beyond: bytes | None = None) -> RowSet:
    wide = None if beyond is None else FrozenBitMap64.deserialize(beyond)
    return RowSet(FrozenBitMap.deserialize(data), wide)
