"""Delta's vectors: golden files and texts both ways, names of files, and what is refused; z85 beside them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from tests.golden.vectors import described, golden_bytes, vector_of

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.deletion_vectors.delta import DeltaVector, decode_delta, encode_delta_file, encode_delta_inline
from tablewright.format.deletion_vectors.z85 import decode_z85, encode_z85
from tablewright.format.row_set import RowSet

GOLDEN = described("delta")
LOG = "_delta_log/00000000000000000001.json"
ONE = RowSet.of([0, 2, 5, 9])


def test_golden_files_both_ways() -> None:
    one, two = GOLDEN["files"]
    data = golden_bytes("delta", one["file"])
    assert encode_delta_file([ONE], UUID(one["uuid"])) == (data, (DeltaVector.from_json(one["descriptor"], LOG),))
    descriptor = DeltaVector.from_json(one["descriptor"], LOG)
    assert descriptor.file(LOG) == one["file_name_in_table"]
    assert descriptor.to_json() == one["descriptor"]
    assert decode_delta(descriptor, data, one["file"]) == vector_of(one["positions"]) == ONE
    assert decode_delta(replace(descriptor, offset=None), data, one["file"]) == ONE

    data, path = golden_bytes("delta", two["file"]), "file:///t/dv.bin"
    vectors = [vector_of(bin["positions"]) for bin in two["bins"]]
    stored, descriptors = encode_delta_file(vectors, path)
    assert stored == data == golden_bytes("paimon", "dv64-two-bins.bin")
    for descriptor, bin, vector in zip(descriptors, two["bins"], vectors, strict=True):
        assert descriptor == DeltaVector("p", path, bin["offset"], bin["sizeInBytes"], bin["cardinality"])
        assert descriptor.file(LOG) == path
        assert decode_delta(descriptor, data, path) == vector


# The last one is the example of Delta's own specification.
INLINE = [
    *GOLDEN["inline"],
    {
        "pathOrInlineDv": "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
        "sizeInBytes": 44,
        "cardinality": 6,
        "positions": [3, 4, 7, 11, 18, 29],
    },
]


@pytest.mark.parametrize("entry", INLINE, ids=lambda entry: str(entry["sizeInBytes"]))
def test_inline_vectors_both_ways(entry: dict[str, Any]) -> None:
    descriptor = DeltaVector("i", entry["pathOrInlineDv"], None, entry["sizeInBytes"], entry["cardinality"])
    vector = vector_of(entry["positions"])
    assert encode_delta_inline(vector) == descriptor
    assert decode_delta(descriptor, b"", LOG) == vector
    assert descriptor.file(LOG) is None
    assert "offset" not in descriptor.to_json()
    assert DeltaVector.from_json(json.loads(json.dumps(descriptor.to_json())), LOG) == descriptor


def test_a_file_in_a_directory() -> None:
    uuid = UUID("d2c639aa-8816-431a-aaf6-d3fe2512ff61")
    _, (descriptor,) = encode_delta_file([ONE], uuid, "ab")
    assert descriptor.path_or_inline_dv == "ab^-aqEH.-t@S}K{vb[*k^"
    assert descriptor.file(LOG) == f"ab/deletion_vector_{uuid}.bin"
    with pytest.raises(InvalidRequest, match="absolute path has its own"):
        encode_delta_file([ONE], "s3://b/v.bin", "ab")
    for text in ("", "short", "x" * 19, '"' * 20, "#" * 20, "é" * 20):
        with pytest.raises(CorruptTable, match=f"{LOG}.*is not the z85 text of a uuid"):
            DeltaVector("u", text, 1, 40, 4).file(LOG)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"offset": 2}, "claims"),
        ({"offset": 49}, "too few"),
        ({"size_in_bytes": 48}, "the log gives 48 bytes, the file 40"),  # Paimon's and Iceberg's length
        ({"cardinality": 5}, "the log counts 5 positions, the vector holds 4"),
    ],
)
def test_descriptors_that_do_not_fit_the_file(change: dict[str, int], reason: str) -> None:
    data, (descriptor,) = encode_delta_file([ONE], UUID(int=0))
    with pytest.raises(CorruptTable, match=rf"v\.bin.*{reason}"):
        decode_delta(replace(descriptor, **change), data, "v.bin")


def test_damaged_files() -> None:
    data, (descriptor,) = encode_delta_file([ONE], UUID(int=0))
    for damaged, reason in (
        (b"", "begins with nothing"),
        (b"\x02" + data[1:], "begins with 02"),
        (data[:-4] + bytes(4), "stored as 00000000, but its bytes give 11bc6196"),
        (data[:-1], "claims 40 bytes where 39 are left"),
        (golden_bytes("paimon", "dv32-two-bins.bin"), "32-bit bitmap where only 64"),
    ):
        with pytest.raises(CorruptTable, match=reason):
            decode_delta(descriptor, damaged, "v.bin")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"path_or_inline_dv": "^Bg9^0"}, "multiple of 5"),
        ({"path_or_inline_dv": ""}, "promised inline"),
        ({"path_or_inline_dv": "", "size_in_bytes": 0}, "magic"),
        ({"path_or_inline_dv": '"' * 50}, "alphabet"),
        ({"path_or_inline_dv": "€" * 50}, "alphabet"),
        ({"path_or_inline_dv": "#" * 50}, "more than 32 bits"),
        ({"size_in_bytes": 36}, "36 bytes were promised inline; there are 40"),
        ({"size_in_bytes": 44}, "44 bytes were promised"),
        ({"size_in_bytes": 39}, "39 bytes were promised"),  # what is cut off is not zero
        ({"size_in_bytes": -4}, "promised"),
        ({"cardinality": 3}, "counts 3"),
    ],
)
def test_inline_vectors_that_are_refused(change: dict[str, Any], reason: str) -> None:
    descriptor = replace(encode_delta_inline(RowSet.of([0, 2, 5, 9 * 256])), **change)
    with pytest.raises(CorruptTable, match=f"{LOG}.*{reason}"):
        decode_delta(descriptor, b"", LOG)


GOOD = {"storageType": "u", "pathOrInlineDv": "0" * 20, "offset": 1, "sizeInBytes": 40, "cardinality": 4}


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        ({"storageType": "x"}, 1),
        ({"storageType": None, "pathOrInlineDv": 7, "offset": "1", "sizeInBytes": -1, "cardinality": 1.5}, 5),
        ({"storageType": "i"}, 1),
        ({"offset": 0}, 1),
        ({"offset": True}, 1),
        ({"sizeInBytes": None, "cardinality": True}, 2),
    ],
)
def test_descriptors_that_are_none(change: dict[str, Any], problems: int) -> None:
    assert DeltaVector.from_json(GOOD, LOG).to_json() == GOOD
    with pytest.raises(CorruptTable) as caught:
        DeltaVector.from_json(GOOD | change, LOG)
    assert len(caught.value.problems) == problems and caught.value.path == LOG
    with pytest.raises(CorruptTable):
        DeltaVector.from_json([GOOD], LOG)


def test_z85_of_its_specification() -> None:
    data = bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])
    assert encode_z85(data) == "HelloWorld" and decode_z85("HelloWorld") == data
    assert encode_z85(b"") == "" and decode_z85("") == b""
    assert encode_z85(b"\xff" * 4) == "%nSc0" and decode_z85("%nSc0") == b"\xff" * 4
    assert decode_z85(encode_z85(b"abcde")) == b"abcde\0\0\0"
    with pytest.raises(ValueError, match="32 bits"):
        decode_z85("%nSc1")
