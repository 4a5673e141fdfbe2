"""Puffin files: the golden one both ways, compressed footers, and what is refused."""

from __future__ import annotations

import json
import struct
from typing import Any

import pyarrow as pa
import pytest
from tests.golden.vectors import described, golden_bytes, vector_of

from tablewright.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from tablewright.format.deletion_vectors.puffin import (
    decode_puffin,
    decode_puffin_blob,
    decode_puffin_footer,
    encode_puffin,
)
from tablewright.format.row_set import RowSet

(GOLDEN,) = described("iceberg")["files"]
VECTORS = {blob["referenced"]: vector_of(blob["positions"]) for blob in GOLDEN["blobs"]}


def puffin(blobs: bytes, footer: bytes, flags: int = 0, size: int | None = None) -> bytes:
    tail = struct.pack("<iI", len(footer) if size is None else size, flags)
    return b"PFA1" + blobs + b"PFA1" + footer + tail + b"PFA1"


def test_the_golden_file_both_ways() -> None:
    data = golden_bytes("iceberg", GOLDEN["file"])
    assert decode_puffin(data, "p") == VECTORS
    stored, footer = encode_puffin(VECTORS, created_by="golden vector builder")
    assert stored == data
    assert decode_puffin_footer(data, "p") == footer
    for blob, entry in zip(footer.blobs, GOLDEN["blobs"], strict=True):
        assert (blob.offset, blob.length) == (entry["content_offset"], entry["content_size_in_bytes"])
        piece = data[blob.offset : blob.offset + blob.length]
        assert piece.hex() == entry["hex"]
        assert decode_puffin_blob(piece, blob, "p") == VECTORS[entry["referenced"]]


def test_names_of_any_kind_and_no_vector_at_all() -> None:
    vectors = {"s3://b/ü=ö/\N{SNOWMAN}.parquet": RowSet.of([2**40]), "": RowSet()}
    assert decode_puffin(encode_puffin(vectors)[0], "p") == vectors
    assert decode_puffin(encode_puffin({})[0], "p") == {}


def test_compressed_footers_are_read() -> None:
    data, footer = encode_puffin(VECTORS)
    end = footer.blobs[-1].offset + footer.blobs[-1].length
    plain = data[end + 4 : -12]
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "lz4") as stream:
        stream.write(plain)
    packed = sink.getvalue().to_pybytes()
    stored = puffin(data[4:end], packed, flags=1)
    assert decode_puffin(stored, "p") == VECTORS and decode_puffin_footer(stored, "p") == footer
    for broken in (b"", b"abc", plain, packed[: len(packed) // 2]):
        with pytest.raises(CorruptTable, match="p: the footer can't be decoded"):
            decode_puffin_footer(puffin(data[4:end], broken, flags=1), "p")


DATA, FOOTER = encode_puffin(VECTORS)
END = FOOTER.blobs[-1].offset + FOOTER.blobs[-1].length
BLOBS, JSON = DATA[4:END], json.loads(DATA[END + 4 : -12])


def with_blob(**change: Any) -> bytes:
    """The file with another first blob; ``None`` removes a field."""
    first = {name: value for name, value in (JSON["blobs"][0] | change).items() if value is not None}
    return puffin(BLOBS, json.dumps(JSON | {"blobs": [first, *JSON["blobs"][1:]]}).encode())


BAD = {
    "nothing": (b"", "begin with nothing"),
    "Paimon's file": (golden_bytes("paimon", "dv64-two-bins.bin"), "begin with 01000000 are no Puffin file"),
    "too short": (b"PFA1PFA1\0\0\0\0\0\0\0\0PFA", "19 bytes"),
    "no last magic": (DATA[:-1] + b"2", "no footer"),
    "no magic before the footer": (DATA[:END] + b"PFA2" + DATA[END + 4 :], "no footer"),
    "negative size": (puffin(BLOBS, b"{}", size=-1), "no footer"),
    "size beyond the file": (puffin(b"", b"{}", size=3), "no footer"),
    "no JSON": (puffin(b"", b"{"), "can't be decoded"),
    "no UTF-8": (puffin(b"", b'{"blobs": ["\xff\xfe"]}'), "can't be decoded"),
    "deep JSON": (puffin(b"", b"[" * 200_000), "can't be decoded"),
    "a list": (puffin(b"", b"[]"), "lists no blobs"),
    "no blobs": (puffin(b"", b'{"properties": {}}'), "lists no blobs"),
    "a blob that is none": (puffin(b"", b'{"blobs": [1]}'), "blob 0 of the footer has no type"),
    "other properties": (puffin(b"", b'{"blobs": [], "properties": {"a": 1}}'), "properties that are no texts"),
    "no type": (with_blob(type=None), "no type"),
    "no fields": (with_blob(fields=None), "field ids"),
    "fields of text": (with_blob(fields=["1"]), "field ids"),
    "no snapshot": (with_blob(**{"snapshot-id": None}), "lacks a snapshot-id"),
    "an offset of text": (with_blob(offset="4"), "lacks"),
    "an offset in the magic": (with_blob(offset=3), "from byte 3 on"),
    "a length beyond": (with_blob(length=len(BLOBS) + 1), "before the footer"),
    "a negative length": (with_blob(length=-1), "claims -1 bytes"),
    "an endless length": (with_blob(length=10**400), "before the footer"),
    "a codec of no text": (with_blob(**{"compression-codec": 7}), "compression-codec"),
    "a compressed vector": (with_blob(**{"compression-codec": "zstd"}), "compressed, which deletion vectors never are"),
    "properties of a list": (with_blob(properties=[]), "properties that are no texts"),
    "no data file": (with_blob(properties={}), "names no data file"),
    "a data file twice": (with_blob(properties={"referenced-data-file": "data-b.parquet"}), "has a vector already"),
    "another count": (with_blob(properties={"referenced-data-file": "a", "cardinality": "5"}), "counts 5 positions"),
    "a length without checksum": (with_blob(length=44), "bin of data-a.parquet at byte 4: .*claims 40"),
    "the length of Delta": (with_blob(length=40), "claims 40"),
    "a length too long": (with_blob(length=49), "takes 48 bytes where 49"),
    "a 32-bit bin": (
        puffin(
            golden_bytes("paimon", "dv32-two-bins.bin")[1:37],
            json.dumps({"blobs": [JSON["blobs"][0] | {"length": 36}]}).encode(),
        ),
        "32-bit bitmap where only 64",
    ),
    "a flipped bit": (DATA[:30] + bytes([DATA[30] ^ 1]) + DATA[31:], "stored as 11bc6196, but its bytes give"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_puffin_file_of_vectors_is_corrupt(name: str) -> None:
    data, reason = BAD[name]
    with pytest.raises(CorruptTable, match=rf"dv\.puffin: .*{reason}"):
        decode_puffin(data, "dv.puffin")


def test_what_is_left_alone_and_what_is_not_supported() -> None:
    sketch = with_blob(type="apache-datasketches-theta-v1", **{"compression-codec": "zstd"})
    assert decode_puffin(sketch, "p") == {"data-b.parquet": VECTORS["data-b.parquet"]}
    (other, _) = decode_puffin_footer(sketch, "p").blobs
    assert other.compression_codec == "zstd"
    with pytest.raises(InvalidRequest, match="holds no deletion vector"):
        decode_puffin_blob(b"", other, "p")
    for flags in (2, 3, 1 << 31):
        with pytest.raises(UnsupportedFeature, match="flags"):
            decode_puffin_footer(puffin(BLOBS, DATA[END + 4 : -12], flags=flags), "p")
