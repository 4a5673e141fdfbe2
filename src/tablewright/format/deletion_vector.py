"""Which rows of a fragment are deleted: a set of physical offsets and its two encodings (fact sheet §4).

The set is a Roaring bitmap, so unions and ranks are cheap at any size. Offsets from ``2**32`` on, which Lance does not
know but other formats do, lie in a second bitmap that is hardly ever there. On Lance's disk the set is

- an **Arrow array** while it is small: an Arrow IPC file with one record batch whose one column is ``row_id: uint32 not
  null`` (compressed where that saves space). Lance writes its values in no particular order; ours ascend.
- a **bitmap** from about 5000 rows on: bare portable Roaring bytes without run containers.

Decoding accepts what Lance accepts: any order, any Arrow compression, run containers.
"""

from __future__ import annotations

import array
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap, BitMap64, FrozenBitMap, FrozenBitMap64

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.fragment import DeletionFileType
from tablewright.format.roaring import decode_bitmap, encode_bitmap

__all__ = ["DeletionVector", "choose_type", "decode_deletion_vector", "encode_deletion_vector"]

Offsets = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]

_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
_NARROW_LIMIT = 2**32
_OFFSET_LIMIT = 2**63  # offsets are signed 64-bit numbers wherever they are wide
_BITMAP_FROM = 5000
_ARRAY_VALUES_MAX = 1 << 26  # an Arrow file that claims more would only be there to fill memory
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
        """How many rows before ``offset`` are deleted."""
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

    def live_mask(self, physical_rows: int) -> npt.NDArray[np.bool_]:
        """One bool per physical row: whether it is still there."""
        mask = np.ones(physical_rows, np.bool_)
        deleted = self.to_numpy()
        mask[deleted[: np.searchsorted(deleted, physical_rows)]] = False
        return mask

    def live_offsets(self, physical_rows: int) -> npt.NDArray[np.int64]:
        """The offsets of the rows that are still there, ascending."""
        return np.flatnonzero(self.live_mask(physical_rows))

    def problems(self, physical_rows: int, num_deleted_rows: int | None = None) -> tuple[str, ...]:
        """What does not fit a fragment of so many rows, whose metadata may say how many are deleted."""
        problems = []
        if (last := self.last) is not None and last >= physical_rows:
            deleted = self.to_numpy()
            beyond = deleted[np.searchsorted(deleted, physical_rows) :]
            shown = ", ".join(str(offset) for offset in beyond[:_BAD_SHOWN])
            problems.append(
                f"{len(beyond)} deleted offsets lie beyond the {physical_rows} rows of the fragment: {shown}"
            )
        if num_deleted_rows is not None and num_deleted_rows != len(self):
            problems.append(f"{len(self)} rows are deleted where the fragment says {num_deleted_rows}")
        return tuple(problems)


def _as_array(values: npt.NDArray[np.uint32]) -> array.array[int]:
    """The form that pyroaring takes without looking at every number."""
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
        return encode_bitmap(BitMap(_as_array(offsets), optimize=False))  # from an array no run containers arise
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, _SCHEMA, options=options) as writer:
        writer.write_batch(pa.record_batch([pa.array(offsets, pa.uint32())], schema=_SCHEMA))
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def decode_deletion_vector(data: bytes, file_type: DeletionFileType, path: str) -> DeletionVector:
    """The set in a deletion file; :class:`CorruptTable` naming ``path`` for anything else."""
    try:
        if file_type is DeletionFileType.BITMAP:
            return DeletionVector(decode_bitmap(data))
        return _decode_array(data)
    except (ValueError, OSError, TypeError, KeyError, IndexError, MemoryError, pa.ArrowException) as error:
        raise CorruptTable(path, (f"the deletion file ({len(data)} bytes) can't be decoded: {error}",)) from error


def _decode_array(data: bytes) -> DeletionVector:
    with pa.ipc.open_file(pa.py_buffer(data)) as reader:
        if not reader.schema.equals(_SCHEMA, check_metadata=True):
            raise ValueError(f"Expected schema row_id: uint32 not null, got {reader.schema.to_string()}")
        if reader.num_record_batches != 1:
            raise ValueError(f"Expected exactly one batch, got {reader.num_record_batches}")
        batch = reader.get_batch(0)
    batch.validate(full=True)
    if batch.num_rows > _ARRAY_VALUES_MAX:
        raise ValueError(f"{batch.num_rows} offsets in one array")
    column = batch.column(0)
    if column.null_count:
        raise ValueError(f"{column.null_count} offsets are null")
    return DeletionVector.of(column.to_numpy(zero_copy_only=False))
