"""A table's metadata, read through the store: schemas, snapshots, manifests, index manifest.

The newest snapshot: ``snapshot/LATEST`` is a hint that may lag, so it is used only if its snapshot exists and the next
one does not; otherwise the directory is listed. The columns of a table are those of its newest schema
file; of an older snapshot, those of the schema that it was written with. Options are always the newest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tablewright.engine import flow
from tablewright.errors import CorruptTable, TableNotFound, TablewrightError, VersionNotFound
from tablewright.paimon.format.avro import Records, decode_records
from tablewright.paimon.format.index_manifest import IndexManifest, decode_index_manifest
from tablewright.paimon.format.layout import (
    EARLIEST_HINT,
    LATEST_HINT,
    MANIFESTS,
    SCHEMAS,
    SNAPSHOTS,
    numbered,
    schema_path,
    snapshot_path,
)
from tablewright.paimon.format.manifest import (
    DataFile,
    FileEntry,
    Manifest,
    decode_manifest,
    decode_manifest_list,
    live_files,
)
from tablewright.paimon.format.schema import TableSchema, decode_schema
from tablewright.paimon.format.snapshot import ManifestList, Snapshot, decode_snapshot
from tablewright.storage.address import join_uri
from tablewright.storage.base import Location, ObjectNotFound, Store, exists

__all__ = [
    "NotPaimon",
    "TableState",
    "earliest_snapshot_id",
    "latest_snapshot_id",
    "read_snapshot",
    "read_state",
]

_READERS = 8
_DIGITS_MAX = 19


class NotPaimon(TableNotFound):
    """There is no Paimon table at this address."""

    def __init__(self, uri: str) -> None:
        TablewrightError.__init__(
            self,
            f"There is no Paimon table at {uri}: no schema/schema-<n> lies there. "
            "Give the table's own directory, as in warehouse/db.db/table.",
        )
        self.uri = uri


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """A table at one snapshot, all of its metadata read. A table without snapshots has none, and no files.

    ``schemas`` holds the schemas that data files were written with, by id; ``manifest_lists`` the records of the
    snapshot's two lists as they are stored, for the writer of the next one.
    """

    location: Location
    schema: TableSchema
    schemas: Mapping[int, TableSchema]
    snapshot: Snapshot | None
    manifest_lists: tuple[Records, ...] = ()
    files: tuple[DataFile, ...] = ()
    index: IndexManifest = field(default_factory=IndexManifest)


def read_state(store: Store, snapshot_id: int | None = None) -> TableState:
    """The table at a snapshot, by default the newest."""
    newest = _latest_schema_id(store)
    if newest is None:
        raise NotPaimon(store.location.uri)
    schema = _read_schema(store, newest)
    if snapshot_id is None:
        snapshot = _read_latest(store)
    else:
        snapshot = read_snapshot(store, snapshot_id)
        past = schema if snapshot.schema_id == newest else _read_schema(store, snapshot.schema_id)
        schema = _with_options(past, schema.options)
    if snapshot is None:
        return TableState(location=store.location, schema=schema, schemas=MappingProxyType({}), snapshot=None)
    lists = tuple(_read_list(store, each) for each in (snapshot.base, snapshot.delta))
    files = _read_files(store, snapshot, lists)
    schemas = {id: schema if id == newest else _read_schema(store, id) for id in {file.schema_id for file in files}}
    return TableState(
        location=store.location,
        schema=schema,
        schemas=MappingProxyType(schemas),
        snapshot=snapshot,
        manifest_lists=lists,
        files=files,
        index=_read_index(store, snapshot),
    )


def latest_snapshot_id(store: Store) -> int | None:
    """The id of the newest snapshot; ``None`` if there is none."""
    hint = _read_hint(store, LATEST_HINT)
    if hint is not None and exists(store, snapshot_path(hint)) and not exists(store, snapshot_path(hint + 1)):
        return hint
    return max(_listed(store, SNAPSHOTS), default=None)


def earliest_snapshot_id(store: Store) -> int | None:
    """The id of the oldest snapshot that is still there; ``None`` if there is none."""
    hint = _read_hint(store, EARLIEST_HINT)
    if hint is not None and exists(store, snapshot_path(hint)):
        return hint
    return min(_listed(store, SNAPSHOTS), default=None)


def read_snapshot(store: Store, id: int) -> Snapshot:
    """One snapshot by its id; :class:`VersionNotFound` if it is not there (any more)."""
    path = snapshot_path(id)
    try:
        snapshot = decode_snapshot(store.get(path), join_uri(store.location.uri, path))
    except ObjectNotFound:
        first, last = earliest_snapshot_id(store), latest_snapshot_id(store)
        hint = "The table has no snapshots." if last is None else f"There are snapshots {first} to {last}."
        raise VersionNotFound(store.location.uri, f"Snapshot {id}", hint) from None
    if snapshot.id != id:
        raise CorruptTable(join_uri(store.location.uri, path), (f"it says that it is snapshot {snapshot.id}",))
    return snapshot


def _read_latest(store: Store) -> Snapshot | None:
    id = latest_snapshot_id(store)
    return None if id is None else read_snapshot(store, id)


def _latest_schema_id(store: Store) -> int | None:
    return max(_listed(store, SCHEMAS), default=None)


def _read_schema(store: Store, id: int) -> TableSchema:
    schema = decode_schema(_get(store, schema_path(id)), join_uri(store.location.uri, schema_path(id)))
    if schema.id != id:
        raise CorruptTable(join_uri(store.location.uri, schema_path(id)), (f"it says that it is schema {schema.id}",))
    return schema


def _with_options(schema: TableSchema, options: Mapping[str, str]) -> TableSchema:
    return TableSchema(
        id=schema.id,
        fields=schema.fields,
        partition_keys=schema.partition_keys,
        primary_keys=schema.primary_keys,
        options=options,
        comment=schema.comment,
    )


def _read_list(store: Store, place: ManifestList) -> Records:
    path = f"{MANIFESTS}/{place.name}"
    return decode_records(_get(store, path), join_uri(store.location.uri, path), place.size)


def _read_files(store: Store, snapshot: Snapshot, lists: tuple[Records, ...]) -> tuple[DataFile, ...]:
    """The files of all manifests, read in parallel: a table has many, and a store has latency."""

    def read(manifest: Manifest) -> tuple[FileEntry, ...]:
        path = f"{MANIFESTS}/{manifest.name}"
        return decode_manifest(_get(store, path), join_uri(store.location.uri, path), manifest.size)

    manifests = [
        manifest
        for place, records in zip((snapshot.base, snapshot.delta), lists, strict=True)
        for manifest in decode_manifest_list(records, join_uri(store.location.uri, f"{MANIFESTS}/{place.name}"))
    ]
    entries = flow(lambda manifest: (read(manifest),), manifests, threads=_READERS)
    where = join_uri(store.location.uri, snapshot_path(snapshot.id))
    return live_files((entry for some in entries for entry in some), where)


def _read_index(store: Store, snapshot: Snapshot) -> IndexManifest:
    if snapshot.index_manifest is None:
        return IndexManifest()
    path = f"{MANIFESTS}/{snapshot.index_manifest}"
    return decode_index_manifest(_get(store, path), join_uri(store.location.uri, path))


def _get(store: Store, path: str) -> bytes:
    try:
        return store.get(path)
    except ObjectNotFound:
        raise CorruptTable(join_uri(store.location.uri, path), ("it is missing",)) from None


def _read_hint(store: Store, path: str) -> int | None:
    try:
        text = store.get(path).strip()
    except ObjectNotFound:
        return None
    return int(text) if text.isdigit() and len(text) <= _DIGITS_MAX else None


def _listed(store: Store, directory: str) -> list[int]:
    ids = (numbered(info.path) for info in store.list(directory) if info.path.count("/") == 1)
    return [id for id in ids if id is not None]
