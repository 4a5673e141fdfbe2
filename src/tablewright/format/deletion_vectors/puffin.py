"""Iceberg's Puffin file with ``deletion-vector-v1`` blobs.

::

    magic "PFA1" | blobs | magic | footer, JSON | its size, i32 | flags, 4 bytes | magic        (numbers little-endian)

A blob of this type is a 64-bit bin as Paimon writes it, offset and length of the footer (and of an Iceberg manifest)
count all of it. Its properties name the data file and how many rows are deleted. Bit 0 of the flags says that the
footer is an LZ4 frame; it is read, and written plain. Blobs of other types are listed and left alone.

Format: ``docs/format/deletion-vectors.md#the-wrappings``.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pyarrow as pa

from tablewright.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from tablewright.format.deletion_vectors.bins import decode_bin, encode_bin
from tablewright.format.row_set import RowSet

__all__ = ["PuffinBlob", "PuffinFooter", "decode_puffin", "decode_puffin_blob", "decode_puffin_footer", "encode_puffin"]

VECTOR_TYPE = "deletion-vector-v1"

_MAGIC = b"PFA1"
_TAIL = struct.Struct("<iI4s")  # size of the footer, flags, magic
_COMPRESSED = 1
_ROW_POSITION = 2147483645  # Iceberg's field id of `_pos`
_UNKNOWN = -1  # snapshot and sequence number come only with the commit
_FOOTER_BYTES_MAX = 1 << 28


@dataclass(frozen=True, slots=True, kw_only=True)
class PuffinBlob:
    """What the footer says about a blob. ``length`` counts all its bytes in the file."""

    type: str
    fields: tuple[int, ...]
    snapshot_id: int
    sequence_number: int
    offset: int
    length: int
    compression_codec: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def data_file(self) -> str | None:
        """The data file whose rows are deleted, for a deletion vector."""
        return self.properties.get("referenced-data-file")


@dataclass(frozen=True, slots=True, kw_only=True)
class PuffinFooter:
    """The blobs of a file, and properties of the file itself."""

    blobs: tuple[PuffinBlob, ...]
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)


# ------------------------------------------------------------------------------------------------------------- encoding
def encode_puffin(vectors: Mapping[str, RowSet], *, created_by: str = "tablewright") -> tuple[bytes, PuffinFooter]:
    """One file with the vectors of these data files (by their location in Iceberg's metadata), and its footer.

    >>> data, footer = encode_puffin({"s3://b/t/a.parquet": RowSet.of([0, 2, 5, 9])})
    >>> [(blob.offset, blob.length, blob.data_file) for blob in footer.blobs]
    [(4, 48, 's3://b/t/a.parquet')]
    """
    parts, blobs, size = [_MAGIC], [], len(_MAGIC)
    for data_file, vector in vectors.items():
        stored = encode_bin(vector, 64)
        blobs.append(
            PuffinBlob(
                type=VECTOR_TYPE,
                fields=(_ROW_POSITION,),
                snapshot_id=_UNKNOWN,
                sequence_number=_UNKNOWN,
                offset=size,
                length=len(stored),
                properties={"referenced-data-file": data_file, "cardinality": str(len(vector))},
            )
        )
        parts.append(stored)
        size += len(stored)
    footer = PuffinFooter(blobs=tuple(blobs), properties={"created-by": created_by})
    payload = _footer_json(footer)
    if len(payload) > _FOOTER_BYTES_MAX:
        raise InvalidRequest(f"{len(blobs)} deletion vectors are too many for one Puffin file.")
    return b"".join([*parts, _MAGIC, payload, _TAIL.pack(len(payload), 0, _MAGIC)]), footer


def _footer_json(footer: PuffinFooter) -> bytes:
    blobs = [
        {
            "type": blob.type,
            "fields": list(blob.fields),
            "snapshot-id": blob.snapshot_id,
            "sequence-number": blob.sequence_number,
            "offset": blob.offset,
            "length": blob.length,
            "properties": dict(blob.properties),
        }
        for blob in footer.blobs
    ]
    document = {"blobs": blobs, "properties": dict(footer.properties)}
    return json.dumps(document, separators=(",", ":")).encode()


# ------------------------------------------------------------------------------------------------------------- decoding
def decode_puffin(data: bytes, path: str) -> dict[str, RowSet]:
    """All deletion vectors of a whole file, by data file.

    >>> data, _ = encode_puffin({"a.parquet": RowSet.of([1]), "b.parquet": RowSet.of([2, 2**32])})
    >>> {name: vector.to_numpy().tolist() for name, vector in decode_puffin(data, "dv.puffin").items()}
    {'a.parquet': [1], 'b.parquet': [2, 4294967296]}
    """
    vectors: dict[str, RowSet] = {}
    for blob in decode_puffin_footer(data, path).blobs:
        if blob.type != VECTOR_TYPE:
            continue
        vector = decode_puffin_blob(data[blob.offset : blob.offset + blob.length], blob, path)
        if blob.data_file is None or blob.data_file in vectors:
            _corrupt(path, f"the blob at byte {blob.offset} names no data file, or one that has a vector already")
        vectors[blob.data_file] = vector
    return vectors


def decode_puffin_blob(data: bytes, blob: PuffinBlob, path: str) -> RowSet:
    """The vector in the bytes of exactly one blob, as ``offset`` and ``length`` of footer or manifest give them.

    >>> data, footer = encode_puffin({"a.parquet": RowSet.of([1])})
    >>> (blob,) = footer.blobs
    >>> decode_puffin_blob(data[blob.offset : blob.offset + blob.length], blob, "dv.puffin").to_numpy().tolist()
    [1]
    """
    if blob.type != VECTOR_TYPE:
        raise InvalidRequest(f"A blob of type {blob.type!r} holds no deletion vector.")
    if blob.compression_codec is not None:
        _corrupt(path, f"the blob at byte {blob.offset} is compressed, which deletion vectors never are")
    vector = decode_bin(data, path=path, bin=f"of {blob.data_file} at byte {blob.offset}", width=64)
    counted = blob.properties.get("cardinality")
    if counted is not None and counted != str(len(vector)):
        _corrupt(path, f"the footer counts {counted} positions at byte {blob.offset}, the blob holds {len(vector)}")
    return vector


def decode_puffin_footer(data: bytes, path: str) -> PuffinFooter:
    """What a whole file says about its blobs.

    >>> decode_puffin_footer(encode_puffin({})[0], "dv.puffin")
    PuffinFooter(blobs=(), properties={'created-by': 'tablewright'})
    """
    if data[: len(_MAGIC)] != _MAGIC or len(data) < 2 * len(_MAGIC) + _TAIL.size:
        _corrupt(path, f"{len(data)} bytes that begin with {data[:4].hex() or 'nothing'} are no Puffin file")
    size, flags, magic = _TAIL.unpack_from(data, len(data) - _TAIL.size)
    begin = len(data) - _TAIL.size - size
    if magic != _MAGIC or size < 0 or begin < 2 * len(_MAGIC) or data[begin - len(_MAGIC) : begin] != _MAGIC:
        _corrupt(path, "there is no footer between two magic words at its end")
    if flags & ~_COMPRESSED:
        raise UnsupportedFeature(
            f"The Puffin file {path} has flags {flags:#x}, of which this release knows only bit 0."
        )
    payload = data[begin : begin + size]
    try:
        document = json.loads(_decompressed(payload) if flags else payload)
    except (ValueError, OSError, RecursionError, pa.ArrowException) as error:
        _corrupt(path, f"the footer can't be decoded: {error}")
    return _Reader(path, begin - len(_MAGIC)).footer(document)


def _decompressed(payload: bytes) -> bytes:
    with pa.input_stream(pa.py_buffer(payload), compression="lz4") as stream:
        plain: bytes = stream.read(_FOOTER_BYTES_MAX + 1)
    if len(plain) > _FOOTER_BYTES_MAX:
        raise ValueError("it is too large")
    return plain


@dataclass(frozen=True, slots=True)
class _Reader:
    """Takes values of the expected types out of a footer; blobs lie before ``end``."""

    path: str
    end: int

    def footer(self, document: Any) -> PuffinFooter:
        if not isinstance(document, dict) or not isinstance(document.get("blobs"), list):
            _corrupt(self.path, "the footer lists no blobs")
        blobs = tuple(self.blob(number, stored) for number, stored in enumerate(document["blobs"]))
        return PuffinFooter(blobs=blobs, properties=self.properties(document, "the footer"))

    def blob(self, number: int, stored: Any) -> PuffinBlob:
        name = f"blob {number} of the footer"
        if not isinstance(stored, dict) or not isinstance(stored.get("type"), str):
            _corrupt(self.path, f"{name} has no type")
        fields, codec = stored.get("fields"), stored.get("compression-codec")
        if not isinstance(fields, list) or not all(_is_whole(field) for field in fields):
            _corrupt(self.path, f"{name} lists no field ids")
        if codec is not None and not isinstance(codec, str):
            _corrupt(self.path, f"{name} has a compression-codec that is no text")
        if not all(_is_whole(stored.get(key)) for key in ("snapshot-id", "sequence-number", "offset", "length")):
            _corrupt(self.path, f"{name} lacks a snapshot-id, sequence-number, offset or length")
        offset, length = stored["offset"], stored["length"]
        if offset < len(_MAGIC) or length < 0 or offset + length > self.end:
            _corrupt(self.path, f"{name} claims {length} bytes from byte {offset} on, of {self.end} before the footer")
        return PuffinBlob(
            type=stored["type"],
            fields=tuple(fields),
            snapshot_id=stored["snapshot-id"],
            sequence_number=stored["sequence-number"],
            offset=offset,
            length=length,
            compression_codec=codec,
            properties=self.properties(stored, name),
        )

    def properties(self, stored: Mapping[str, Any], name: str) -> dict[str, str]:
        properties = stored.get("properties", {})
        if not isinstance(properties, dict) or not all(isinstance(value, str) for value in properties.values()):
            _corrupt(self.path, f"{name} has properties that are no texts")
        return properties


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _corrupt(path: str, problem: str) -> NoReturn:
    raise CorruptTable(path, (problem,))
