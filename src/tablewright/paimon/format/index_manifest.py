"""The index manifest: every index file of a snapshot (Avro).

It is a full list, not a delta: each entry is an ADD. Two types matter here, ``HASH`` (dynamic buckets) and
``DELETION_VECTORS``; entries of all other types are carried on as they are, with the fields that we don't know.

How old and new entries of deletion vectors combine depends on the table:

- with buckets (primary key or bucketed append), one file per partition and bucket: the new one replaces the old;
- without (``bucket=-1``), files have to be taken out by name before others hold the vectors of their data files.

Format: ``docs/format/paimon.md#index-manifest``, ``docs/format/paimon.md#which-deletion-vectors-apply``.

Tests: ``tests/unit/paimon/test_hostile.py``, ``tests/unit/paimon/test_delete_plan.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from tablewright.errors import UnsupportedFeature
from tablewright.format.deletion_vectors.paimon import VectorRange
from tablewright.paimon.format.avro import combined_schema, decode_records, encode_carried
from tablewright.paimon.format.documents import Fields, checked

__all__ = ["DELETION_VECTORS", "HASH", "IndexFile", "IndexManifest", "decode_index_manifest", "encode_index_manifest"]

HASH = "HASH"
DELETION_VECTORS = "DELETION_VECTORS"

_VERSION = 1
_ADD = 0
_INT_MAX = 2**31 - 1
_RANGE_SCHEMA = {
    "type": "record",
    "name": "DeletionVectorMeta",
    "fields": [
        {"name": "f0", "type": "string"},
        {"name": "f1", "type": "int"},
        {"name": "f2", "type": "int"},
        {"name": "_CARDINALITY", "type": ["null", "long"], "default": None},
    ],
}
_GLOBAL_SCHEMA = {
    "type": "record",
    "name": "GlobalIndexMeta",
    "fields": [
        {"name": "_ROW_RANGE_START", "type": "long"},
        {"name": "_ROW_RANGE_END", "type": "long"},
        {"name": "_INDEX_FIELD_ID", "type": "int"},
        {"name": "_EXTRA_FIELD_IDS", "type": ["null", {"type": "array", "items": "int"}], "default": None},
        {"name": "_INDEX_META", "type": ["null", "bytes"], "default": None},
        {"name": "_SOURCE_META", "type": ["null", "bytes"], "default": None},
    ],
}
_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "IndexManifestEntry",
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "_KIND", "type": "int"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_INDEX_TYPE", "type": "string"},
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_ROW_COUNT", "type": "long"},
        {
            "name": "_DELETIONS_VECTORS_RANGES",
            "type": ["null", {"type": "array", "items": _RANGE_SCHEMA}],
            "default": None,
        },
        {"name": "_EXTERNAL_PATH", "type": ["null", "string"], "default": None},
        {"name": "_GLOBAL_INDEX", "type": ["null", _GLOBAL_SCHEMA], "default": None},
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """One index file. ``ranges`` are the bins of a deletion-vectors file; ``record`` is the entry as it was stored.

    ``manifest`` is the file it was read from, for error messages.
    """

    type: str
    partition: bytes
    bucket: int
    name: str
    size: int
    row_count: int
    ranges: tuple[VectorRange, ...] = ()
    external_path: str | None = None
    record: Mapping[str, Any] | None = None
    manifest: str = field(default="", compare=False)

    def to_record(self) -> Mapping[str, Any]:
        """The entry to store: the very one that was read, or a new one."""
        if self.record is not None:
            return dict(self.record)
        return {
            "_VERSION": _VERSION,
            "_KIND": _ADD,
            "_PARTITION": self.partition,
            "_BUCKET": self.bucket,
            "_INDEX_TYPE": self.type,
            "_FILE_NAME": self.name,
            "_FILE_SIZE": self.size,
            "_ROW_COUNT": self.row_count,
            "_DELETIONS_VECTORS_RANGES": [
                {"f0": bin.data_file, "f1": bin.offset, "f2": bin.length, "_CARDINALITY": bin.cardinality}
                for bin in self.ranges
            ]
            if self.type == DELETION_VECTORS
            else None,
            "_EXTERNAL_PATH": self.external_path,
            "_GLOBAL_INDEX": None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexManifest:
    """All index files of a snapshot, and the schema of the writer that listed them."""

    files: tuple[IndexFile, ...] = ()
    schema: Mapping[str, Any] | None = None

    def of_type(self, type: str) -> tuple[IndexFile, ...]:
        """The files of one type."""
        return tuple(file for file in self.files if file.type == type)

    def replaced(self, removed: Iterable[str], added: Iterable[IndexFile]) -> IndexManifest:
        """The list without the files of these names, and with others appended."""
        gone = set(removed)
        kept = (file for file in self.files if file.name not in gone)
        return IndexManifest(files=(*kept, *added), schema=self.schema)


def decode_index_manifest(data: bytes, path: str) -> IndexManifest:
    """The index files that an index manifest lists."""
    records = decode_records(data, path)
    problems: list[str] = []
    files = tuple(_file(record, problems, f"entry {number}", path) for number, record in enumerate(records.values))
    names = [file.name for file in files]
    if len(set(names)) < len(names):
        problems.append("an index file is listed twice")
    checked(path, problems)
    return IndexManifest(files=files, schema=records.schema)


def encode_index_manifest(manifest: IndexManifest, compression: str) -> bytes:
    """The bytes of an index manifest."""
    schema = combined_schema(_SCHEMA, () if manifest.schema is None else (manifest.schema,))
    return encode_carried(schema, ((file.to_record(), file.manifest) for file in manifest.files), compression)


def _file(record: Mapping[str, Any], problems: list[str], place: str, path: str) -> IndexFile:
    taken = Fields(record, problems, place)
    version = taken.whole("_VERSION")
    if version != _VERSION:
        raise UnsupportedFeature(
            f"{path} is a Paimon index manifest of version {version}; this release knows version {_VERSION}."
        )
    if taken.whole("_KIND") != _ADD:
        problems.append(f"{place}: _KIND is {record.get('_KIND')}, and an index manifest lists only what is there (0)")
    ranges = tuple(
        _range(each, problems, f"{place}, range {number}")
        for number, each in enumerate(taken.objects("_DELETIONS_VECTORS_RANGES", required=False))
    )
    return IndexFile(
        type=taken.text("_INDEX_TYPE"),
        partition=taken.binary("_PARTITION"),
        bucket=taken.whole("_BUCKET"),
        name=taken.file_name("_FILE_NAME"),
        size=taken.whole("_FILE_SIZE", minimum=0),
        row_count=taken.whole("_ROW_COUNT", minimum=0),
        ranges=ranges,
        external_path=taken.address_or_none("_EXTERNAL_PATH"),
        record=MappingProxyType(dict(record)),
        manifest=path,
    )


def _range(record: Mapping[str, Any], problems: list[str], place: str) -> VectorRange:
    taken = Fields(record, problems, place)
    return VectorRange(
        data_file=taken.text("f0"),
        offset=taken.whole("f1", minimum=0, maximum=_INT_MAX),
        length=taken.whole("f2", minimum=0, maximum=_INT_MAX),
        cardinality=taken.whole_or_none("_CARDINALITY"),
    )
