"""Manifest lists and manifests: which data files a snapshot has (Avro).

A manifest list names manifests; a manifest holds entries, each adding or deleting one data file. A snapshot's files are
those that are added and not deleted in all manifests of its two lists. What makes two entries mean the same file is its
whole identity: partition, bucket, level, name, extra files, embedded index and external path.

Tests: ``tests/unit/paimon/test_hostile.py``, ``tests/unit/paimon/test_metadata.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tablewright.errors import UnsupportedFeature
from tablewright.paimon.format.avro import Records, combined_schema, decode_records, encode_carried
from tablewright.paimon.format.documents import Fields, checked

__all__ = [
    "LIST_SCHEMA",
    "DataFile",
    "FileEntry",
    "Manifest",
    "decode_manifest",
    "decode_manifest_list",
    "encode_manifest_list",
    "live_files",
]

_VERSION = 2
_ADD, _DELETE = 0, 1
_STATS = [
    {"name": "_MIN_VALUES", "type": "bytes"},
    {"name": "_MAX_VALUES", "type": "bytes"},
    {"name": "_NULL_COUNTS", "type": ["null", {"type": "array", "items": ["null", "long"]}], "default": None},
]


def _optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


LIST_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "ManifestFileMeta",
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "_FILE_NAME", "type": "string"},
        {"name": "_FILE_SIZE", "type": "long"},
        {"name": "_NUM_ADDED_FILES", "type": "long"},
        {"name": "_NUM_DELETED_FILES", "type": "long"},
        {"name": "_PARTITION_STATS", "type": {"type": "record", "name": "record_PARTITION_STATS", "fields": _STATS}},
        {"name": "_SCHEMA_ID", "type": "long"},
        _optional("_MIN_BUCKET", "int"),
        _optional("_MAX_BUCKET", "int"),
        _optional("_MIN_LEVEL", "int"),
        _optional("_MAX_LEVEL", "int"),
        _optional("_MIN_ROW_ID", "long"),
        _optional("_MAX_ROW_ID", "long"),
        _optional("_TOTAL_BUCKETS", "int"),
        _optional("_EXTRA_FILES", {"type": "array", "items": "string"}),
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One manifest, as a manifest list names it."""

    name: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One data file of a table. ``partition`` is stored form: arity, then a BinaryRow.

    ``stats_low`` and ``stats_high`` are rows as well: bounds for the values of ``stats_columns``. ``manifest`` is the
    file it was read from, for error messages.
    """

    partition: bytes
    bucket: int
    level: int
    name: str
    size: int
    row_count: int
    schema_id: int
    extra_files: tuple[str, ...] = ()
    embedded_index: bytes | None = None
    external_path: str | None = None
    delete_row_count: int | None = None
    first_row_id: int | None = None
    write_cols: tuple[str, ...] | None = None
    stats_columns: tuple[str, ...] | None = None
    stats_low: bytes = b""
    stats_high: bytes = b""
    manifest: str = field(default="", compare=False)

    @property
    def identity(self) -> tuple[Any, ...]:
        """What two entries have to share to mean the same file."""
        return (
            self.partition,
            self.bucket,
            self.level,
            self.name,
            self.extra_files,
            self.embedded_index,
            self.external_path,
        )

    @property
    def format(self) -> str:
        """The data file's format, by its name."""
        return self.name.rpartition(".")[2].lower()


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A data file that is added (or, if not ``added``, deleted)."""

    added: bool
    file: DataFile


def decode_manifest_list(records: Records, path: str) -> tuple[Manifest, ...]:
    """The manifests that a list names."""
    problems: list[str] = []
    manifests = []
    for number, record in enumerate(records.values):
        taken = Fields(record, problems, f"manifest {number}")
        _check_version(taken, "manifest list", path)
        manifests.append(Manifest(name=taken.file_name("_FILE_NAME"), size=taken.whole("_FILE_SIZE", minimum=0)))
    checked(path, problems)
    return tuple(manifests)


def encode_manifest_list(lists: Sequence[Records], compression: str) -> bytes:
    """One list of all that some lists name, with every field that their writers knew; of none, an empty list."""
    schema = combined_schema(LIST_SCHEMA, [records.schema for records in lists])
    carried = ((record, records.path) for records in lists for record in records.values)
    return encode_carried(schema, carried, compression)


def decode_manifest(data: bytes, path: str, size: int | None = None) -> tuple[FileEntry, ...]:
    """The entries of a manifest, in order."""
    problems: list[str] = []
    entries = tuple(
        _entry(record, problems, f"entry {number}", path)
        for number, record in enumerate(decode_records(data, path, size).values)
    )
    checked(path, problems)
    return entries


def live_files(entries: Iterable[FileEntry], path: str) -> tuple[DataFile, ...]:
    """The files that are added and not deleted, in the order in which they were added.

    ``path`` names the snapshot in the error for entries that contradict each other.
    """
    added: dict[tuple[Any, ...], DataFile] = {}
    deleted: dict[tuple[Any, ...], DataFile] = {}
    problems = []
    for entry in entries:
        identity, known = entry.file.identity, added if entry.added else deleted
        if identity in known:
            problems.append(f"its manifests {'add' if entry.added else 'delete'} {entry.file.name} twice")
        known[identity] = entry.file
    problems += [
        f"its manifests delete {file.name}, which none adds" for id, file in deleted.items() if id not in added
    ]
    checked(path, problems)
    return tuple(file for identity, file in added.items() if identity not in deleted)


def _entry(record: Mapping[str, Any], problems: list[str], place: str, path: str) -> FileEntry:
    taken = Fields(record, problems, place)
    _check_version(taken, "manifest", path)
    kind = taken.whole("_KIND")
    if kind not in (_ADD, _DELETE):
        problems.append(f"{place}: _KIND is {kind}, neither ADD (0) nor DELETE (1)")
    file = Fields(taken.object("_FILE"), problems, place)
    stats = taken.object("_FILE").get("_VALUE_STATS")
    value = DataFile(
        partition=taken.binary("_PARTITION"),
        bucket=taken.whole("_BUCKET"),
        level=file.whole("_LEVEL", minimum=0),
        name=file.file_name("_FILE_NAME"),
        size=file.whole("_FILE_SIZE", minimum=0),
        row_count=file.whole("_ROW_COUNT", minimum=0),
        schema_id=file.whole("_SCHEMA_ID", minimum=0),
        extra_files=file.texts("_EXTRA_FILES", required=False),
        embedded_index=file.binary_or_none("_EMBEDDED_FILE_INDEX"),
        external_path=file.address_or_none("_EXTERNAL_PATH"),
        delete_row_count=file.whole_or_none("_DELETE_ROW_COUNT"),
        first_row_id=file.whole_or_none("_FIRST_ROW_ID"),
        write_cols=file.texts_or_none("_WRITE_COLS"),
        stats_columns=file.texts_or_none("_VALUE_STATS_COLS"),
        stats_low=_bytes_in(stats, "_MIN_VALUES"),
        stats_high=_bytes_in(stats, "_MAX_VALUES"),
        manifest=path,
    )
    return FileEntry(kind == _ADD, value)


def _bytes_in(stats: Any, name: str) -> bytes:
    """Statistics are optional; without them the file is read."""
    value = stats.get(name) if isinstance(stats, dict) else None
    return value if isinstance(value, bytes) else b""


def _check_version(taken: Fields, what: str, path: str) -> None:
    version = taken.whole("_VERSION")
    if version != _VERSION:
        raise UnsupportedFeature(f"{path} is a Paimon {what} of version {version}; this release knows {_VERSION}.")
