"""What an Arrow IPC file claims about its record batch, read before anything is decompressed.

A compressed buffer begins with its plain size, and Arrow allocates and fills that much before a caller can check the
number of rows: 100 kB of zstd become gigabytes of zeros. So the few numbers that matter are read from the metadata
first (Arrow's columnar format, "IPC File Format" and "Compression"):

1. The footer lists the blocks of record batches: where each begins, how long its metadata are.
2. The metadata of a block are a FlatBuffers table: number of rows, place and length of each buffer, and whether these
   are compressed.
3. Where they are, the first 8 bytes of each buffer are its plain size; -1 stands for a buffer that is stored plain.

Every place is checked against the bytes that are there. What Arrow checks itself is left to Arrow.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

__all__ = ["BatchClaims", "batch_claims"]

_MAGIC = b"ARROW1"
_CONTINUATION = 0xFFFFFFFF
_FOOTER_DICTIONARIES, _FOOTER_BATCHES = 2, 3
_MESSAGE_KIND, _MESSAGE_HEADER = 1, 2
_RECORD_BATCH = 3
_BATCH_LENGTH, _BATCH_BUFFERS, _BATCH_COMPRESSION = 0, 2, 3
_BLOCK = struct.Struct("<qi4xq")
_BUFFER = struct.Struct("<qq")
_PLAIN = -1


@dataclass(frozen=True, slots=True)
class BatchClaims:
    """Number of rows, and the bytes that the buffers take once they are decompressed."""

    num_rows: int
    num_bytes: int


def batch_claims(data: bytes) -> BatchClaims:
    """The claims of the one record batch in an IPC file. ``ValueError`` if there is not exactly one.

    >>> import pyarrow as pa
    >>> sink = pa.BufferOutputStream()
    >>> with pa.ipc.new_file(sink, pa.schema({"a": pa.int32()})) as writer:
    ...     writer.write(pa.record_batch({"a": pa.array([1, 2, 3], pa.int32())}))
    >>> batch_claims(sink.getvalue().to_pybytes()).num_rows
    3
    """
    try:
        return _claims(data)
    except struct.error as error:
        raise ValueError("the Arrow file ends too early") from error


def _claims(data: bytes) -> BatchClaims:
    if not data.startswith(_MAGIC) or not data.endswith(_MAGIC):
        raise ValueError("it is no Arrow file")
    size_at = len(data) - len(_MAGIC) - 4
    footer = _Table.root(data, size_at - _number(data, "<i", size_at))
    if footer.vector(_FOOTER_DICTIONARIES)[1]:
        raise ValueError("the Arrow file has dictionaries")
    at, count = footer.vector(_FOOTER_BATCHES)
    if count != 1:
        raise ValueError(f"Expected exactly one batch, got {count}")
    begin, metadata_size, _ = _BLOCK.unpack_from(data, at)
    prefix = 8 if _number(data, "<I", begin) == _CONTINUATION else 4
    message = _Table.root(data, begin + prefix)
    kind = message.place(_MESSAGE_KIND)
    if kind is None or _number(data, "<B", kind) != _RECORD_BATCH:
        raise ValueError("a block of the Arrow file is no record batch")
    batch = message.table(_MESSAGE_HEADER)
    length = batch.place(_BATCH_LENGTH)
    rows = 0 if length is None else _number(data, "<q", length)
    is_compressed = batch.place(_BATCH_COMPRESSION) is not None
    return BatchClaims(rows, _num_bytes(data, batch, begin + metadata_size, is_compressed))


def _num_bytes(data: bytes, batch: _Table, body: int, is_compressed: bool) -> int:
    """The plain size of all buffers; those that are not compressed can't be larger than the file."""
    at, count = batch.vector(_BATCH_BUFFERS)
    if count * _BUFFER.size > len(data) - at:
        raise ValueError("the Arrow file ends too early")
    total = 0
    for place, stored in _BUFFER.iter_unpack(data[at : at + count * _BUFFER.size]):
        plain = _number(data, "<q", body + place) if is_compressed and stored else _PLAIN
        total += stored if plain == _PLAIN else plain
    return total


@dataclass(frozen=True, slots=True)
class _Table:
    """A FlatBuffers table at ``at``: its first number leads back to the offsets of its fields."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes, at: int) -> _Table:
        return cls(data, at + _number(data, "<I", at))

    def place(self, field: int) -> int | None:
        """Where a field is stored; ``None`` if it is left out."""
        offsets = self.at - _number(self.data, "<i", self.at)
        if 4 + 2 * field >= _number(self.data, "<H", offsets):
            return None
        offset = _number(self.data, "<H", offsets + 4 + 2 * field)
        return self.at + offset if offset else None

    def table(self, field: int) -> _Table:
        place = self.place(field)
        if place is None:
            raise ValueError("the metadata of the Arrow file are incomplete")
        return _Table.root(self.data, place)

    def vector(self, field: int) -> tuple[int, int]:
        """Where the items of a vector begin, and how many there are."""
        place = self.place(field)
        if place is None:
            return 0, 0
        at = place + _number(self.data, "<I", place)
        return at + 4, _number(self.data, "<I", at)


def _number(data: bytes, kind: str, at: int) -> int:
    if at < 0:
        raise ValueError("the metadata of the Arrow file point outside of it")
    number: int = struct.unpack_from(kind, data, at)[0]
    return number
