"""Lance's deletion files: the deleted rows of one fragment, in one of two encodings.

- An **Arrow array** while they are few: an Arrow IPC file with one record batch whose one column is ``row_id: uint32
  not null`` (compressed where that may save space). Lance writes its values in no particular order; ours ascend.
- A **bitmap** from about 5000 rows on: bare portable Roaring bytes without run containers.

Decoding accepts what Lance accepts: any order, any Arrow compression, run containers.

Format: ``docs/format/table.md#deletion-files``, ``docs/format/deletion-vectors.md``.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.arrow_claims import batch_claims
from tablewright.format.fragment import DeletionFileType
from tablewright.format.roaring import encode_bitmap
from tablewright.format.row_set import RowSet

__all__ = ["choose_type", "decode_deletion_vector", "encode_deletion_vector"]

_SCHEMA = pa.schema([pa.field("row_id", pa.uint32(), nullable=False)])
_BITMAP_FROM = 5000
_COMPRESSED_FROM = 1024  # 4 KiB, a block of most disks; compressing takes four times as long as writing them
_ARRAY_VALUES_MAX = 1 << 26  # no fragment needs more; a larger claim is an attempt to exhaust memory
_BYTES_PER_OFFSET_MAX, _SLACK = 8, 4096  # of decompressed buffers: 4 bytes and a bit of validity, padded


def choose_type(count: int, existing: DeletionFileType | None) -> DeletionFileType:
    """How Lance stores ``count`` deleted rows of a fragment whose present deletion file is of type ``existing``.

    >>> choose_type(5000, None).name, choose_type(5000, DeletionFileType.ARROW_ARRAY).name
    ('BITMAP', 'ARROW_ARRAY')
    """
    if existing is None:
        return DeletionFileType.BITMAP if count >= _BITMAP_FROM else DeletionFileType.ARROW_ARRAY
    stays_array = existing is DeletionFileType.ARROW_ARRAY and count <= _BITMAP_FROM
    return DeletionFileType.ARROW_ARRAY if stays_array else DeletionFileType.BITMAP


def encode_deletion_vector(deleted: RowSet, file_type: DeletionFileType) -> bytes:
    """The bytes of a deletion file of this type; Lance has no offsets from 2**32 on."""
    if deleted.beyond is not None:
        raise InvalidRequest(f"Lance's deletion files hold offsets below 2**32; this vector reaches {deleted.last}.")
    offsets = deleted.bitmap.to_array()
    if file_type is DeletionFileType.BITMAP:
        return encode_bitmap(BitMap(offsets, optimize=False))  # an array makes no run containers
    if len(offsets) < _COMPRESSED_FROM:
        begin, end = _around(len(offsets))
        return b"".join((begin, offsets, end))
    return _encode_array(np.frombuffer(offsets, np.uint32), "zstd")


def _encode_array(offsets: npt.NDArray[np.uint32], compression: str | None) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)  # to wake one takes longer
    with pa.ipc.new_file(sink, _SCHEMA, options=options) as writer:
        writer.write_batch(pa.record_batch([pa.array(offsets, pa.uint32())], schema=_SCHEMA))
    return sink.getvalue().to_pybytes()


@lru_cache(maxsize=_COMPRESSED_FROM)
def _around(count: int) -> tuple[bytes, bytes]:
    """What an uncompressed file has before and after its ``count`` values: the same for any values.

    Arrow takes 0.1 ms to make a file, and a change of scattered rows writes one for each fragment.
    """
    file = _encode_array(np.zeros(count, np.uint32), None)
    with pa.ipc.open_file(pa.py_buffer(file)) as reader:
        values = reader.get_batch(0).column(0).to_numpy()
    begin = values.ctypes.data - np.frombuffer(file, np.uint8).ctypes.data if count else len(file)
    return file[:begin], file[begin + values.nbytes :]


def decode_deletion_vector(data: bytes, file_type: DeletionFileType, path: str, rows_max: int | None = None) -> RowSet:
    """The set in a deletion file; :class:`CorruptTable` naming ``path`` for anything else.

    A file that claims more than ``rows_max`` offsets, the rows of its fragment, is refused before any is decoded.
    """
    try:
        if file_type is DeletionFileType.BITMAP:
            return RowSet.from_bytes(data, rows_max)
        return _decode_array(data, _ARRAY_VALUES_MAX if rows_max is None else min(rows_max, _ARRAY_VALUES_MAX))
    except (ValueError, OSError, TypeError, KeyError, IndexError, MemoryError, pa.ArrowException) as error:
        raise CorruptTable(path, (f"the deletion file ({len(data)} bytes) can't be decoded: {error}",)) from error


def _decode_array(data: bytes, rows_max: int) -> RowSet:
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
    return RowSet.of(column.to_numpy(zero_copy_only=False))
