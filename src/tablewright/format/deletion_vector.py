"""Which rows of a fragment are deleted: a set of physical offsets and its two encodings.

The set is a Roaring bitmap, so unions and ranks are cheap at any size. Offsets from ``2**32`` on, which Lance does not
know but other formats do, are in a second bitmap, which is usually absent. In a Lance table the set is

- an **Arrow array** while it is small: an Arrow IPC file with one record batch whose one column is ``row_id: uint32 not
  null`` (compressed where that saves space). Lance writes its values in no particular order; ours ascend.
- a **bitmap** from about 5000 rows on: bare portable Roaring bytes without run containers.

Decoding accepts what Lance accepts: any order, any Arrow compression, run containers.

Format: ``docs/format/table.md#deletion-files``, ``docs/format/deletion-vectors.md``.
"""

from __future__ import annotations

import array
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap, BitMap64, FrozenBitMap, FrozenBitMap64

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.arrow_claims import batch_claims
from tablewright.format.fragment import DeletionFileType
from tablewright.format.roaring import decode_bitmap, encode_bitmap

__all__ = ["DeletionVector", "choose_type", "decode_deletion_vector", "encode_deletion_vector"]

Offsets = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]

_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
_NARROW_LIMIT = 2**32
_OFFSET_LIMIT = 2**63  # offsets are signed 64-bit numbers wherever they are wide
_BITMAP_FROM = 5000
_ARRAY_VALUES_MAX = 1 << 26  # no fragment needs more; a larger claim is an attempt to exhaust memory
_BYTES_PER_OFFSET_MAX, _SLACK = 8, 4096  # of decompressed buffers: 4 bytes and a bit of validity, padded
_BAD_SHOWN = 5


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """A frozen set of physical row offsets.

    ``bitmap`` holds those below ``2**32``; ``beyond`` the others, and is ``None`` where there are none.

    >>> gone = DeletionVector.of([1, 3])
    >>> gone.live_offsets(5).tolist(), gone.rank(3), 3 in gone
    ([0, 2, 4], 1, True)
    >>> DeletionVector.of([7, 2**40]).to_numpy().tolist()
    [7, 1099511627776]
    """

    bitmap: FrozenBitMap = field(default_factory=FrozenBitMap)
    beyond: FrozenBitMap64 | None = None

    @classmethod
    def of(cls, offsets: Iterable[int] | npt.NDArray[np.integer]) -> DeletionVector:
        """The set of some offsets, in any order."""
        if isinstance(offsets, FrozenBitMap | BitMap):
            return cls(FrozenBitMap(offsets))
        if isinstance(offsets, FrozenBitMap64 | BitMap64):
            offsets = np.frombuffer(offsets.to_array(), dtype=np.uint64)
        values = offsets if isinstance(offsets, np.ndarray) else np.array(list(offsets))
        if not len(values):
            return cls()
        if values.dtype.kind not in "iu" or not 0 <= values.min() <= (highest := values.max()) < _OFFSET_LIMIT:
            raise InvalidRequest("Row offsets are whole numbers from 0 up to 2**63.")
        if highest < _NARROW_LIMIT:
            return cls(FrozenBitMap(_as_array(values.astype(np.uint32))))
        high = values >= _NARROW_LIMIT
        wide = array.array("Q", values[high].astype(np.uint64).tobytes())
        return cls(FrozenBitMap(_as_array(values[~high].astype(np.uint32))), FrozenBitMap64(wide))

    def __len__(self) -> int:
        return len(self.bitmap) + (0 if self.beyond is None else len(self.beyond))

    def __contains__(self, offset: int) -> bool:
        if 0 <= offset < _NARROW_LIMIT:
            return offset in self.bitmap
        return self.beyond is not None and 0 <= offset < _OFFSET_LIMIT and offset in self.beyond

    def __reduce__(self) -> tuple[object, ...]:
        beyond = () if self.beyond is None else (bytes(self.beyond.serialize()),)
        return _rebuild, (encode_bitmap(self.bitmap), *beyond)

    def union(self, other: DeletionVector) -> DeletionVector:
        """What is deleted here or there."""
        wide = self.beyond if other.beyond is None else other.beyond
        if self.beyond is not None and other.beyond is not None:
            wide = self.beyond | other.beyond
        return DeletionVector(self.bitmap | other.bitmap, wide)

    def intersection(self, other: DeletionVector) -> DeletionVector:
        """What is deleted here and there."""
        wide = None if self.beyond is None or other.beyond is None else self.beyond & other.beyond
        return DeletionVector(self.bitmap & other.bitmap, wide or None)

    def difference(self, other: DeletionVector) -> DeletionVector:
        """What is deleted here but not there."""
        wide = self.beyond if self.beyond is None or other.beyond is None else self.beyond - other.beyond
        return DeletionVector(self.bitmap - other.bitmap, wide or None)

    def rank(self, offset: int) -> int:
        """Rank: how many rows before ``offset`` are deleted."""
        if offset <= 0:
            return 0
        below = int(self.bitmap.rank(min(offset, _NARROW_LIMIT) - 1))
        return below if self.beyond is None else below + int(self.beyond.rank(min(offset, _OFFSET_LIMIT) - 1))

    @property
    def last(self) -> int | None:
        """The highest deleted offset; ``None`` where nothing is deleted."""
        return int((self.beyond or self.bitmap).max()) if self.beyond or self.bitmap else None

    # ------------------------------------------------------------------------------------------------------- arrays
    def to_numpy(self) -> Offsets:
        """The deleted offsets, ascending: ``uint32``, or ``uint64`` where some lie beyond."""
        below = np.frombuffer(self.bitmap.to_array(), dtype=np.uint32)
        if self.beyond is None:
            return below
        return np.concatenate([below.astype(np.uint64), np.frombuffer(self.beyond.to_array(), dtype=np.uint64)])

    def first(self, count: int) -> list[int]:
        """The lowest deleted offsets, at most ``count`` of them.

        >>> DeletionVector.of([9, 4, 2**40]).first(2)
        [4, 9]
        """
        return self._from(0, count)

    def _from(self, start: int, count: int) -> list[int]:
        below = self.bitmap.iter_equal_or_larger(start) if start < _NARROW_LIMIT else iter(())
        wide = self.beyond if self.beyond is not None else FrozenBitMap64()
        return list(itertools.islice(itertools.chain(below, wide.iter_equal_or_larger(start)), count))

    def live_mask(self, physical_rows: int) -> npt.NDArray[np.bool_]:
        """One bool per physical row: whether it is live (not deleted)."""
        mask = np.ones(physical_rows, np.bool_)
        mask[self._below(physical_rows).to_numpy()] = False
        return mask

    def _below(self, end: int) -> DeletionVector:
        """The offsets below ``end``; the others are never expanded to an array."""
        if self.last is None or self.last < end:
            return self
        if end >= _NARROW_LIMIT:
            return self.intersection(DeletionVector(self.bitmap, FrozenBitMap64(range(_NARROW_LIMIT, end))))
        return DeletionVector(self.bitmap & FrozenBitMap(range(end)))

    def live_offsets(self, physical_rows: int) -> npt.NDArray[np.int64]:
        """The offsets of the live rows, ascending."""
        return np.flatnonzero(self.live_mask(physical_rows))

    def nth_live(self, ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Select: the offset of the live row of each rank. Memory grows with the deleted rows only.

        >>> DeletionVector.of([1, 2]).nth_live(np.array([0, 1, 2])).tolist()
        [0, 3, 4]
        """
        deleted = self.to_numpy().astype(np.int64)
        live_before = deleted - np.arange(len(deleted))
        return ranks + np.searchsorted(live_before, ranks, side="right")

    def contains(self, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """One bool per offset: whether it is deleted.

        >>> DeletionVector.of([1, 2]).contains(np.array([0, 1, 7])).tolist()
        [False, True, False]
        """
        deleted = self.to_numpy()
        if not len(deleted):
            return np.zeros(len(offsets), np.bool_)
        wanted = offsets.astype(deleted.dtype)  # otherwise numpy would widen all deleted offsets to 64 bits
        place = np.minimum(np.searchsorted(deleted, wanted), len(deleted) - 1)
        hit: npt.NDArray[np.bool_] = np.equal(deleted[place], wanted)
        return hit

    def problems(self, physical_rows: int, num_deleted_rows: int | None = None) -> tuple[str, ...]:
        """What contradicts a fragment of ``physical_rows`` rows, or the number of deleted rows in its metadata."""
        problems = []
        if (last := self.last) is not None and last >= physical_rows:
            count = len(self) - self.rank(physical_rows)
            shown = ", ".join(str(offset) for offset in self._from(physical_rows, _BAD_SHOWN))
            problems.append(f"{count} deleted offsets lie beyond the {physical_rows} rows of the fragment: {shown}")
        if num_deleted_rows is not None and num_deleted_rows != len(self):
            problems.append(f"{len(self)} rows are deleted where the fragment says {num_deleted_rows}")
        return tuple(problems)


def _as_array(values: npt.NDArray[np.uint32]) -> array.array[int]:
    """The form that pyroaring takes without a Python loop over the numbers."""
    return array.array("I", values.tobytes())


def _rebuild(data: bytes, beyond: bytes | None = None) -> DeletionVector:
    wide = None if beyond is None else FrozenBitMap64.deserialize(beyond)
    return DeletionVector(FrozenBitMap.deserialize(data), wide)


# --------------------------------------------------------------------------------------------------------------- bytes
def choose_type(count: int, existing: DeletionFileType | None) -> DeletionFileType:
    """How Lance stores ``count`` deleted rows of a fragment whose present deletion file is of type ``existing``.

    >>> choose_type(5000, None).name, choose_type(5000, DeletionFileType.ARROW_ARRAY).name
    ('BITMAP', 'ARROW_ARRAY')
    """
    if existing is None:
        return DeletionFileType.BITMAP if count >= _BITMAP_FROM else DeletionFileType.ARROW_ARRAY
    stays_array = existing is DeletionFileType.ARROW_ARRAY and count <= _BITMAP_FROM
    return DeletionFileType.ARROW_ARRAY if stays_array else DeletionFileType.BITMAP


def encode_deletion_vector(vector: DeletionVector, file_type: DeletionFileType) -> bytes:
    """The bytes of a deletion file of this type; Lance has no offsets from 2**32 on."""
    if vector.beyond is not None:
        raise InvalidRequest(f"Lance's deletion files hold offsets below 2**32; this vector reaches {vector.last}.")
    offsets = vector.to_numpy().astype(np.uint32, copy=False)
    if file_type is DeletionFileType.BITMAP:
        return encode_bitmap(BitMap(_as_array(offsets), optimize=False))  # an array makes no run containers
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, _SCHEMA, options=options) as writer:
        writer.write_batch(pa.record_batch([pa.array(offsets, pa.uint32())], schema=_SCHEMA))
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def decode_deletion_vector(
    data: bytes, file_type: DeletionFileType, path: str, rows_max: int | None = None
) -> DeletionVector:
    """The set in a deletion file; :class:`CorruptTable` naming ``path`` for anything else.

    A file that claims more than ``rows_max`` offsets, the rows of its fragment, is refused before any is decoded.
    """
    try:
        if file_type is DeletionFileType.BITMAP:
            return DeletionVector(decode_bitmap(data, rows_max))
        return _decode_array(data, _ARRAY_VALUES_MAX if rows_max is None else min(rows_max, _ARRAY_VALUES_MAX))
    except (ValueError, OSError, TypeError, KeyError, IndexError, MemoryError, pa.ArrowException) as error:
        raise CorruptTable(path, (f"the deletion file ({len(data)} bytes) can't be decoded: {error}",)) from error


def _decode_array(data: bytes, rows_max: int) -> DeletionVector:
    claims = batch_claims(data)
    if not 0 <= claims.num_rows <= rows_max or claims.num_bytes > _BYTES_PER_OFFSET_MAX * claims.num_rows + _SLACK:
        raise ValueError(
            f"it claims {claims.num_rows} offsets in {claims.num_bytes} bytes where there can be at most {rows_max}"
        )
    with pa.ipc.open_file(pa.py_buffer(data)) as reader:
        if not reader.schema.equals(_SCHEMA, check_metadata=True):
            raise ValueError(f"Expected schema row_id: uint32 not null, got {reader.schema.to_string()}")
        if reader.num_record_batches != 1:
            raise ValueError(f"Expected exactly one batch, got {reader.num_record_batches}")
        batch = reader.get_batch(0)
    batch.validate(full=True)
    column = batch.column(0)
    if column.null_count:
        raise ValueError(f"{column.null_count} offsets are null")
    return DeletionVector.of(column.to_numpy(zero_copy_only=False))
