"""Which rows of a fragment are deleted: a set of physical offsets and its two encodings (fact sheet §4).

The set is a Roaring bitmap, so unions and ranks are cheap at any size. On disk it is

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
from pyroaring import BitMap, FrozenBitMap

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.fragment import DeletionFileType
from tablewright.format.roaring import decode_bitmap, encode_bitmap

__all__ = ["DeletionVector", "choose_type", "decode_deletion_vector", "encode_deletion_vector"]

Offsets = npt.NDArray[np.uint32]

_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
_OFFSET_LIMIT = 2**32
_BITMAP_FROM = 5000
_ARRAY_VALUES_MAX = 1 << 26  # an Arrow file that claims more would only be there to fill memory
_BAD_SHOWN = 5


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """A frozen set of physical row offsets.

    >>> gone = DeletionVector.of([1, 3])
    >>> gone.live_offsets(5).tolist(), gone.rank(3), 3 in gone
    ([0, 2, 4], 1, True)
    """

    bitmap: FrozenBitMap = field(default_factory=FrozenBitMap)

    @classmethod
    def of(cls, offsets: Iterable[int] | npt.NDArray[np.integer]) -> DeletionVector:
        """The set of some offsets, in any order."""
        if isinstance(offsets, FrozenBitMap | BitMap):
            return cls(FrozenBitMap(offsets))
        values = offsets if isinstance(offsets, np.ndarray) else np.array(list(offsets))
        if len(values) and (values.dtype.kind not in "iu" or not 0 <= values.min() <= values.max() < _OFFSET_LIMIT):
            raise InvalidRequest("Row offsets are whole numbers from 0 up to 2**32.")
        return cls(FrozenBitMap(_as_array(values.astype(np.uint32))))

    def __len__(self) -> int:
        return len(self.bitmap)

    def __contains__(self, offset: int) -> bool:
        return 0 <= offset < _OFFSET_LIMIT and offset in self.bitmap

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (encode_bitmap(self.bitmap),)

    def union(self, other: DeletionVector) -> DeletionVector:
        """What is deleted here or there."""
        return DeletionVector(self.bitmap | other.bitmap)

    def intersection(self, other: DeletionVector) -> DeletionVector:
        """What is deleted here and there."""
        return DeletionVector(self.bitmap & other.bitmap)

    def difference(self, other: DeletionVector) -> DeletionVector:
        """What is deleted here but not there."""
        return DeletionVector(self.bitmap - other.bitmap)

    def rank(self, offset: int) -> int:
        """How many rows before ``offset`` are deleted."""
        return int(self.bitmap.rank(min(offset, _OFFSET_LIMIT) - 1)) if offset > 0 else 0

    # ------------------------------------------------------------------------------------------------------- arrays
    def to_numpy(self) -> Offsets:
        """The deleted offsets, ascending."""
        return np.frombuffer(self.bitmap.to_array(), dtype=np.uint32)

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
        if len(self) and int(self.bitmap.max()) >= physical_rows:
            deleted = self.to_numpy()
            beyond = deleted[np.searchsorted(deleted, physical_rows) :]
            shown = ", ".join(str(offset) for offset in beyond[:_BAD_SHOWN])
            problems.append(
                f"{len(beyond)} deleted offsets lie beyond the {physical_rows} rows of the fragment: {shown}"
            )
        if num_deleted_rows is not None and num_deleted_rows != len(self):
            problems.append(f"{len(self)} rows are deleted where the fragment says {num_deleted_rows}")
        return tuple(problems)


def _as_array(values: Offsets) -> array.array[int]:
    """The form that pyroaring takes without looking at every number."""
    return array.array("I", values.tobytes())


def _rebuild(data: bytes) -> DeletionVector:
    return DeletionVector(FrozenBitMap.deserialize(data))


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
    """The bytes of a deletion file of this type."""
    offsets = vector.to_numpy()
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
