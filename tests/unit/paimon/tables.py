"""A small writer of Paimon append tables, for tests that need one without pypaimon: memory stores, races, damage.

`create` writes a schema, `append` commits rows as pypaimon would, `compact` puts all live rows into one new file per
bucket. tests/differential/paimon lets pypaimon read what it writes.
"""

from __future__ import annotations

import io
import itertools
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tablewright.paimon import PaimonTable
from tablewright.paimon.format.avro import encode_records
from tablewright.paimon.format.binary_row import encode_partition
from tablewright.paimon.format.index_manifest import DELETION_VECTORS, encode_index_manifest
from tablewright.paimon.format.manifest import LIST_SCHEMA
from tablewright.paimon.metadata import TableState, latest_snapshot_id, read_state
from tablewright.paimon.opening import open_in
from tablewright.storage import Store, open_store
from tablewright.testing import seeded_world

__all__ = ["append", "compact", "copied", "create", "ids_of", "new_store", "numbers", "overwrite_option"]

_names = itertools.count()
_ADD, _DELETE = 0, 1
_TYPES = {
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.date32(): "DATE",
    pa.timestamp("ms"): "TIMESTAMP(3)",
}
_STATS = [
    {"name": "_MIN_VALUES", "type": "bytes"},
    {"name": "_MAX_VALUES", "type": "bytes"},
    {"name": "_NULL_COUNTS", "type": ["null", {"type": "array", "items": ["null", "long"]}]},
]
_NO_STATS = {"_MIN_VALUES": bytes(12), "_MAX_VALUES": bytes(12), "_NULL_COUNTS": []}


def _stats(name: str) -> dict[str, Any]:
    return {"name": name, "type": {"type": "record", "name": f"record{name}", "fields": _STATS}}


def _optional(name: str, kind: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


ENTRY_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "ManifestEntry",
    "fields": [
        {"name": "_VERSION", "type": "int"},
        {"name": "_KIND", "type": "int"},
        {"name": "_PARTITION", "type": "bytes"},
        {"name": "_BUCKET", "type": "int"},
        {"name": "_TOTAL_BUCKETS", "type": "int"},
        {
            "name": "_FILE",
            "type": {
                "type": "record",
                "name": "DataFileMeta",
                "fields": [
                    {"name": "_FILE_NAME", "type": "string"},
                    {"name": "_FILE_SIZE", "type": "long"},
                    {"name": "_ROW_COUNT", "type": "long"},
                    {"name": "_MIN_KEY", "type": "bytes"},
                    {"name": "_MAX_KEY", "type": "bytes"},
                    _stats("_KEY_STATS"),
                    _stats("_VALUE_STATS"),
                    {"name": "_MIN_SEQUENCE_NUMBER", "type": "long"},
                    {"name": "_MAX_SEQUENCE_NUMBER", "type": "long"},
                    {"name": "_SCHEMA_ID", "type": "long"},
                    {"name": "_LEVEL", "type": "int"},
                    {"name": "_EXTRA_FILES", "type": {"type": "array", "items": "string"}},
                    _optional("_CREATION_TIME", {"type": "long", "logicalType": "timestamp-millis"}),
                    _optional("_DELETE_ROW_COUNT", "long"),
                    _optional("_EMBEDDED_FILE_INDEX", "bytes"),
                    _optional("_FILE_SOURCE", "int"),
                    _optional("_VALUE_STATS_COLS", {"type": "array", "items": "string"}),
                    _optional("_EXTERNAL_PATH", "string"),
                    _optional("_FIRST_ROW_ID", "long"),
                    _optional("_WRITE_COLS", {"type": "array", "items": "string"}),
                ],
            },
        },
    ],
}


def numbers(start: int, stop: int) -> pa.Table:
    """Rows `start` to `stop` (exclusive)."""
    return pa.table({"id": pa.array(range(start, stop), pa.int64()), "s": [f"row {i}" for i in range(start, stop)]})


def new_store() -> Store:
    """An empty memory store that nobody else uses."""
    return open_store(f"memory://paimon-{next(_names)}/db.db/table")


def copied(store: Store) -> Store:
    """A memory store of its own with the same objects."""
    copy = new_store()
    for info in store.list(""):
        copy.put(info.path, store.get(info.path))
    return copy


def ids_of(store: Store, snapshot: int | None = None) -> list[int]:
    """The ids that a fresh reader finds, ascending."""
    return sorted(open_in(seeded_world(store), snapshot).to_table(columns=["id"])["id"].to_pylist())


def create(
    store: Store,
    schema: pa.Schema,
    *,
    options: Mapping[str, str] | None = None,
    partition_keys: Sequence[str] = (),
    primary_keys: Sequence[str] = (),
    id: int = 0,
) -> None:
    """Write a schema file."""
    fields = [{"id": n, "name": field.name, "type": _TYPES[field.type]} for n, field in enumerate(schema)]
    document = {
        "version": 3,
        "id": id,
        "fields": fields,
        "highestFieldId": len(fields) - 1,
        "partitionKeys": list(partition_keys),
        "primaryKeys": list(primary_keys),
        "options": {"deletion-vectors.enabled": "true", **(options or {})},
        "timeMillis": 1,
    }
    store.put(f"schema/schema-{id}", json.dumps(document).encode())


def overwrite_option(store: Store, name: str, value: str) -> None:
    """Change an option in the first schema file."""
    document = json.loads(store.get("schema/schema-0"))
    document["options"][name] = value
    store.put("schema/schema-0", json.dumps(document).encode())


def append(
    store: Store,
    rows: pa.Table,
    *,
    partition: Sequence[Any] = (),
    bucket: int = 0,
    level: int = 0,
    delete_rows: int = 0,
    external: str | None = None,
    others: Mapping[str, Any] | None = None,
    group_rows: Sequence[int] = (100,),
    schema_id: int = 0,
    stats: Sequence[str] = (),
) -> str:
    """Commit rows as one data file. Its name. `others` are more fields for the snapshot.

    `stats` are the columns whose least and greatest values the manifest notes; all columns may be named so.
    """
    state = read_state(store)
    name = f"data-{uuid.uuid4()}-0.parquet"
    data = parquet(rows, group_rows)
    fields = state.schema.partition_fields
    directory = "".join(f"{field.name}={value}/" for field, value in zip(fields, partition, strict=True))
    if external is None:
        store.put(f"{directory}bucket-{bucket}/{name}", data)
    else:
        open_store(external).put(name, data)
    where = encode_partition(partition, [field.type.to_arrow() for field in fields])
    file = entry(name, len(data), rows.num_rows, bucket=bucket, level=level, partition=where)
    file["_FILE"] |= {"_DELETE_ROW_COUNT": delete_rows, "_SCHEMA_ID": schema_id, **_value_stats(rows.select(stats))}
    file["_FILE"]["_EXTERNAL_PATH"] = None if external is None else f"{external}/{name}"
    while not _commit(store, state, [file], state.snapshot and state.snapshot.index_manifest, "APPEND", others):
        state = read_state(store)  # another writer was quicker
    return name


def compact(store: Store) -> str:
    """Put all live rows of an unpartitioned table into one new file, without vectors."""
    state = read_state(store)
    rows = open_in(seeded_world(store)).to_table()
    name, data = f"data-{uuid.uuid4()}-0.parquet", parquet(rows)
    store.put(f"bucket-0/{name}", data)
    old = [entry(file.name, file.size, file.row_count, kind=_DELETE, level=file.level) for file in state.files]
    vectors = [file.name for file in state.index.of_type(DELETION_VECTORS)]
    store.put(f"manifest/index-{name}", encode_index_manifest(state.index.replaced(vectors, ()), "zstd"))
    assert _commit(store, state, [*old, entry(name, len(data), rows.num_rows)], f"index-{name}", "COMPACT", None)
    return name


def parquet(rows: pa.Table, group_rows: Sequence[int] = (100,)) -> bytes:
    """The bytes of a data file, in row groups of so many rows, in turns."""
    sink, sizes, begin = io.BytesIO(), itertools.cycle(group_rows), 0
    with pq.ParquetWriter(sink, rows.schema) as writer:
        while begin < rows.num_rows:
            group = rows.slice(begin, next(sizes))
            writer.write_table(group)
            begin += group.num_rows
    return sink.getvalue()


def _value_stats(rows: pa.Table) -> dict[str, Any]:
    """The statistics of all columns, as a manifest has them."""
    types = [field.type for field in rows.schema]
    ends = [pc.min_max(column).as_py() for column in rows.columns]
    return {
        "_VALUE_STATS": {
            "_MIN_VALUES": encode_partition([end["min"] for end in ends], types),
            "_MAX_VALUES": encode_partition([end["max"] for end in ends], types),
            "_NULL_COUNTS": [column.null_count for column in rows.columns],
        },
        "_VALUE_STATS_COLS": rows.schema.names,
    }


def entry(
    name: str, size: int, rows: int, *, kind: int = _ADD, bucket: int = 0, level: int = 0, partition: bytes = bytes(12)
) -> dict[str, Any]:
    """A manifest entry."""
    file = {
        "_FILE_NAME": name,
        "_FILE_SIZE": size,
        "_ROW_COUNT": rows,
        "_MIN_KEY": bytes(12),
        "_MAX_KEY": bytes(12),
        "_KEY_STATS": _NO_STATS,
        "_VALUE_STATS": _NO_STATS,
        "_MIN_SEQUENCE_NUMBER": 0,
        "_MAX_SEQUENCE_NUMBER": 0,
        "_SCHEMA_ID": 0,
        "_LEVEL": level,
        "_EXTRA_FILES": [],
        "_DELETE_ROW_COUNT": 0,
        "_VALUE_STATS_COLS": [],
        "_EXTERNAL_PATH": None,
    }
    return {
        "_VERSION": 2,
        "_KIND": kind,
        "_PARTITION": partition,
        "_BUCKET": bucket,
        "_TOTAL_BUCKETS": -1,
        "_FILE": file,
    }


def _commit(
    store: Store,
    state: TableState,
    entries: list[dict[str, Any]],
    index_manifest: str | None,
    kind: str,
    others: Mapping[str, Any] | None,
) -> bool:
    """Make the next snapshot; False if another writer has made it."""
    unique = uuid.uuid4()
    manifest = encode_records(ENTRY_SCHEMA, entries, "zstd")
    store.put(f"manifest/manifest-{unique}", manifest)
    record = {
        "_VERSION": 2,
        "_FILE_NAME": f"manifest-{unique}",
        "_FILE_SIZE": len(manifest),
        "_NUM_ADDED_FILES": sum(each["_KIND"] == _ADD for each in entries),
        "_NUM_DELETED_FILES": sum(each["_KIND"] == _DELETE for each in entries),
        "_PARTITION_STATS": _NO_STATS,
        "_SCHEMA_ID": 0,
    }
    before = [dict(record) for records in state.manifest_lists for record in records.values]
    base = encode_records(LIST_SCHEMA, before, "zstd")
    delta = encode_records(LIST_SCHEMA, [record], "zstd")
    store.put(f"manifest/manifest-list-{unique}-0", base)
    store.put(f"manifest/manifest-list-{unique}-1", delta)
    id = 1 if state.snapshot is None else state.snapshot.id + 1
    rows = sum((1 if each["_KIND"] == _ADD else -1) * each["_FILE"]["_ROW_COUNT"] for each in entries)
    document = {
        "version": 3,
        "id": id,
        "schemaId": 0,
        "baseManifestList": f"manifest-list-{unique}-0",
        "baseManifestListSize": len(base),
        "deltaManifestList": f"manifest-list-{unique}-1",
        "deltaManifestListSize": len(delta),
        "indexManifest": index_manifest,
        "commitUser": str(unique),
        "commitIdentifier": 2**63 - 1,
        "commitKind": kind,
        "timeMillis": 1_700_000_000_000 + id,
        "totalRecordCount": rows + (0 if state.snapshot is None else state.snapshot.total_record_count),
        "deltaRecordCount": rows,
        **(others or {}),
    }
    data = json.dumps({key: value for key, value in document.items() if value is not None}).encode()
    if not store.put_if_absent(f"snapshot/snapshot-{id}", data):
        return False
    store.put("snapshot/LATEST", str(id).encode())
    return True


def table_of(store: Store, snapshot: int | None = None, seed: int = 0) -> PaimonTable:
    return open_in(seeded_world(store, seed), snapshot)


def made(**how: Any) -> Store:
    """A table of two files of ten rows; row 3 is deleted."""
    store = new_store()
    create(store, numbers(0, 1).schema, **how)
    append(store, numbers(0, 10))
    append(store, numbers(10, 20))
    if not how.get("primary_keys"):
        table_of(store, seed=1).delete("id = 3")
    return store


def rewritten(store: Store, path: str, change: Callable[[dict[str, Any]], Any], field: Any = None) -> None:
    """Change every record of an Avro file in place, and perhaps add a field to its schema."""
    reader = fastavro.reader(io.BytesIO(store.get(path)))
    records, schema = list(reader), dict(reader.writer_schema)
    for record in records:
        change(record)
    schema = {key: value for key, value in schema.items() if not key.startswith("__")}
    if field is not None:
        schema["fields"] = [*schema["fields"], field]
    sink = io.BytesIO()
    fastavro.writer(sink, fastavro.parse_schema(schema), records, codec="deflate")
    store.put(path, sink.getvalue())


def sized(store: Store) -> None:
    """Forget the noted sizes of manifest lists, which `rewritten` makes wrong."""
    path = f"snapshot/snapshot-{latest_snapshot_id(store)}"
    document = json.loads(store.get(path))
    store.put(
        path, json.dumps({key: value for key, value in document.items() if not key.endswith("ListSize")}).encode()
    )
