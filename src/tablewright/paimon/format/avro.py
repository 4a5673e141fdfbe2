"""Avro files as Paimon uses them: a list of records, self-describing, compressed by block.

Reading is tolerant: records come as mappings with whatever fields their writer had. Writing keeps that: the schema of a
file that carries records on is ours plus the fields that some record's writer knew and we don't, each of them made
nullable, because records of other writers lack it.

A truncated file can end between two blocks and look complete, so the size recorded by the referring file is compared.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from tablewright.errors import CorruptTable, InvalidRequest, UnsupportedFeature

__all__ = ["CODECS", "Records", "codec_of", "combined_schema", "decode_records", "encode_carried", "encode_records"]

CODECS = {
    "zstd": "zstandard",
    "null": "null",
    "none": "null",
    "deflate": "deflate",
    "snappy": "snappy",
    "bzip2": "bzip2",
    "xz": "xz",
}
"""Names of ``manifest.compression``, and what Avro calls them."""

_MAGIC = b"Obj\x01"


@dataclass(frozen=True, slots=True)
class Records:
    """The records of a file, the schema of the writer that made it, and where it lies."""

    values: tuple[Mapping[str, Any], ...]
    schema: Mapping[str, Any]
    path: str = field(default="", compare=False)


def codec_of(compression: str) -> str:
    """Avro's name for a table's ``manifest.compression``.

    >>> codec_of("ZSTD")
    'zstandard'
    """
    try:
        return CODECS[compression.strip().lower()]
    except KeyError:
        raise InvalidRequest(
            f"manifest.compression is {compression!r}: this release writes {', '.join(CODECS)}."
        ) from None


def decode_records(data: bytes, path: str, size: int | None = None) -> Records:
    """The records in a file's bytes. ``size`` is its expected size in bytes, if that is recorded."""
    if size is not None and size != len(data):
        raise CorruptTable(path, (f"it has {len(data)} bytes, and {size} were noted when it was written",))
    if not data.startswith(_MAGIC):
        raise CorruptTable(path, (f"it does not start like an Avro file but with {data[:4]!r}",))
    try:
        reader = fastavro.reader(io.BytesIO(data))
        values = tuple(reader)
        schema = reader.writer_schema
    except Exception as error:  # a damaged file can make the decoder raise anything
        if "codec" in str(error) and "install" in str(error):
            raise UnsupportedFeature(f"{path} is compressed in a way that needs another package: {error}.") from error
        problem = f"its Avro records can't be decoded: {type(error).__name__}: {error}"
        raise CorruptTable(path, (problem,)) from error
    records = tuple(value for value in values if isinstance(value, dict))
    if not isinstance(schema, dict) or len(records) < len(values):
        raise CorruptTable(path, ("its Avro values are no records",))
    return Records(records, schema, path)


def encode_records(schema: Mapping[str, Any], records: Iterable[Mapping[str, Any]], compression: str) -> bytes:
    """The bytes of a file with these records."""
    return encode_carried(schema, ((record, "") for record in records), compression)


def encode_carried(
    schema: Mapping[str, Any], records: Iterable[tuple[Mapping[str, Any], str]], compression: str
) -> bytes:
    """The bytes of a file with records that others wrote, each given with the path that it was read from."""
    sink, codec = io.BytesIO(), codec_of(compression)
    last = ""

    def carried() -> Iterator[Mapping[str, Any]]:
        nonlocal last
        for record, path in records:
            last = path
            yield record

    try:
        fastavro.writer(sink, fastavro.parse_schema(dict(schema)), carried(), codec=codec)
    except (SchemaParseException, UnknownType) as error:
        raise UnsupportedFeature(f"A newer Paimon's fields can't be carried on: {error}.") from error
    except Exception as error:  # a record that does not fit can make the encoder raise anything
        if isinstance(error, ValueError) and "codec" in str(error):
            raise UnsupportedFeature(f"manifest.compression={compression} needs another package: {error}.") from error
        problem = f"a record of it can't be written again: {type(error).__name__}: {error}"
        raise CorruptTable(last, (problem,)) from error
    return sink.getvalue()


def combined_schema(ours: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Our schema, and after its fields those that only ``found`` schemas have, nullable; in nested records as well.

    >>> ours = {"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}
    >>> theirs = {"type": "record", "name": "s", "fields": [{"name": "b", "type": "long"}]}
    >>> combined_schema(ours, [theirs])["fields"][1]
    {'name': 'b', 'type': ['null', 'long'], 'default': None}
    """
    combined: dict[str, Any] = dict(ours)
    for schema in found:
        combined = _combined(combined, schema)
    return combined


def _combined(ours: Any, theirs: Any) -> Any:
    """One type out of two that describe the same value; where only one of them can be kept it is ours."""
    if isinstance(ours, list):
        return [_combined(option, other) for option in ours for other in [_counterpart(option, theirs)]]
    other = _counterpart(ours, theirs)
    if other is None or not isinstance(ours, dict):
        return ours
    if ours["type"] == "array":
        return {**ours, "items": _combined(ours["items"], other.get("items"))}
    if ours["type"] != "record":
        return ours
    known = {field["name"]: field for field in other.get("fields", ())}
    fields = [
        {**field, "type": _combined(field["type"], known.pop(field["name"])["type"])}
        if field["name"] in known
        else field
        for field in ours["fields"]
    ]
    fields += [{"name": name, "type": _nullable(field["type"]), "default": None} for name, field in known.items()]
    return {**ours, "fields": fields}


def _counterpart(kind: Any, among: Any) -> Any:
    """The type among others (a union's, or a single one) that is a record, or an array, as ``kind`` is."""
    options = among if isinstance(among, list) else [among]
    wanted = kind.get("type") if isinstance(kind, dict) else None
    return next((option for option in options if isinstance(option, dict) and option.get("type") == wanted), None)


def _nullable(kind: Any) -> list[Any]:
    options = kind if isinstance(kind, list) else [kind]
    return ["null", *(option for option in options if option != "null")]
