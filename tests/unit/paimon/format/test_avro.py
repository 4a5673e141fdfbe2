"""Avro files: codecs, sizes, and fields that only others know."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

from tablewright.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from tablewright.paimon.format.avro import combined_schema, decode_records, encode_records

OURS: dict[str, Any] = {
    "type": "record",
    "name": "Ours",
    "fields": [
        {"name": "a", "type": "int"},
        {"name": "r", "type": ["null", {"type": "array", "items": {"type": "record", "name": "In", "fields": []}}]},
    ],
}
THEIRS: dict[str, Any] = {
    "type": "record",
    "name": "org.example.Theirs",
    "fields": [
        {"name": "r", "type": ["null", {"type": "array", "items": {"type": "record", "name": "X", "fields": [
            {"name": "deep", "type": "long"}]}}]},
        {"name": "b", "type": "string"},
        {"name": "a", "type": "int"},
        {"name": "c", "type": [{"type": "record", "name": "C", "fields": [{"name": "d", "type": "bytes"}]}, "null"]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("compression", ["zstd", "null", "none", "deflate", "bzip2", "xz"])
def test_round_trip(compression: str) -> None:
    records = [{"a": n, "r": None} for n in range(1000)]
    data = encode_records(OURS, records, compression)
    assert list(decode_records(data, "f", len(data)).values) == records
    assert decode_records(encode_records(OURS, [], compression), "f").values == ()


def test_fields_of_others_are_kept_on_all_levels() -> None:
    theirs = {"a": 1, "b": "x", "c": {"d": b"y"}, "r": [{"deep": 5}]}
    read = decode_records(encode_records(THEIRS, [theirs], "null"), "f")
    schema = combined_schema(OURS, [read.schema])
    again = decode_records(encode_records(schema, [*read.values, {"a": 2, "r": [{}]}], "zstd"), "f")
    assert list(again.values) == [theirs, {"a": 2, "b": None, "c": None, "r": [{"deep": None}]}]
    assert [field["name"] for field in schema["fields"]] == ["a", "r", "b", "c"]


def test_fields_that_can_not_be_carried_on() -> None:
    """A field whose type is defined in another field, which we define in our own words."""
    named = {"type": "record", "name": "Mine", "fields": [{"name": "x", "type": "int"}]}
    theirs = {
        "type": "record",
        "name": "T",
        "fields": [{"name": "r", "type": named}, {"name": "again", "type": "Mine"}],
    }
    found = decode_records(encode_records(theirs, [{"r": {"x": 1}, "again": {"x": 2}}], "null"), "f")
    with pytest.raises(UnsupportedFeature, match="can't be carried on"):
        encode_records(combined_schema(OURS, [found.schema]), [], "null")


def test_what_is_no_file_of_records() -> None:
    data = encode_records(OURS, [{"a": 1, "r": None}], "null")
    for broken in (b"", b"Obj\x01", b"PAR1" + data, data[:-3], data[: len(data) // 2], data[:40] + data[60:]):
        with pytest.raises(CorruptTable):
            decode_records(broken, "f")
    with pytest.raises(CorruptTable, match=f"it has {len(data)} bytes, and 7 were noted"):
        decode_records(data, "f", 7)
    with pytest.raises(CorruptTable, match="no records"):
        decode_records(encode_records({"type": "long"}, [5], "null"), "f")  # type: ignore[list-item]
    with pytest.raises(InvalidRequest, match=r"manifest\.compression is 'lzo'"):
        encode_records(OURS, [], "lzo")


@pytest.mark.skipif(find_spec("cramjam") is not None, reason="the package for snappy is here")
def test_a_codec_that_is_not_installed() -> None:
    header = encode_records(OURS, [], "null").replace(b"\x08null", b"\x0csnappy")
    sync = header[-16:]
    with pytest.raises(UnsupportedFeature, match="needs another package: snappy"):
        decode_records(header + b"\x02\x0a" + b"12345" + sync, "f")
    with pytest.raises(UnsupportedFeature, match=r"manifest\.compression=snappy needs another package"):
        encode_records(OURS, [{"a": 1, "r": None}], "snappy")
