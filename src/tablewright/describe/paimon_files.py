"""Paimon's files, and the deletion vectors of Delta Lake and Iceberg, whose bins are Paimon's.

Tests: tests/unit/cli/test_app.py
"""

from __future__ import annotations

from tablewright.describe.report import Report, moment, positions, shown
from tablewright.format.deletion_vectors.paimon import walk_vector_file
from tablewright.format.deletion_vectors.puffin import decode_puffin_blob, decode_puffin_footer
from tablewright.paimon.format.avro import decode_records
from tablewright.paimon.format.hash_file import decode_hashes
from tablewright.paimon.format.index_manifest import decode_index_manifest
from tablewright.paimon.format.manifest import decode_manifest, decode_manifest_list
from tablewright.paimon.format.schema import decode_schema
from tablewright.paimon.format.snapshot import decode_snapshot

__all__ = [
    "describe_delta_vectors",
    "describe_hashes",
    "describe_index_manifest",
    "describe_manifest",
    "describe_manifest_list",
    "describe_puffin",
    "describe_schema",
    "describe_snapshot",
    "describe_vectors",
]

_BIN = ("bin", "offset", "length", "bits", "deleted rows", "positions")


def describe_vectors(data: bytes, path: str) -> Report:
    """The bins of a deletion-vectors file; every checksum is checked on the way."""
    bins = walk_vector_file(data, path)
    rows = tuple(
        (number, place.offset, place.length, place.width, len(vector), positions(vector))
        for number, (place, vector) in enumerate(bins)
    )
    facts = (("bytes", len(data)), ("bins", len(bins)), ("deleted rows", sum(len(vector) for _, vector in bins)))
    return Report(title="Paimon deletion vectors", facts=facts, columns=_BIN, rows=rows)


def describe_delta_vectors(data: bytes, path: str) -> Report:
    """The same bytes as Delta Lake counts them: its ``sizeInBytes`` leaves out 8 bytes of frame."""
    report = describe_vectors(data, path)
    rows = tuple(
        (number, offset, length - 8 if bits == 64 else length, bits, *rest)
        for number, offset, length, bits, *rest in report.rows
    )
    columns = ("bin", "offset", "sizeInBytes", *_BIN[3:])
    return Report(title="Delta Lake deletion vectors", facts=report.facts, columns=columns, rows=rows)


def describe_puffin(data: bytes, path: str) -> Report:
    """The blobs of a Puffin file."""
    footer = decode_puffin_footer(data, path)
    rows = []
    for number, blob in enumerate(footer.blobs):
        of = blob.properties.get("referenced-data-file", "")
        content = data[blob.offset : blob.offset + blob.length]
        vector = decode_puffin_blob(content, blob, path) if blob.type == "deletion-vector-v1" else None
        deleted = ("", "") if vector is None else (len(vector), positions(vector))
        rows.append((number, blob.type, blob.offset, blob.length, of, *deleted))
    columns = ("blob", "type", "offset", "length", "data file", "deleted rows", "positions")
    facts = (("bytes", len(data)), ("blobs", len(rows)), *sorted(footer.properties.items()))
    return Report(title="Iceberg Puffin file", facts=facts, columns=columns, rows=tuple(rows))


def describe_hashes(data: bytes, path: str) -> Report:
    """The key hashes of a bucket."""
    hashes = decode_hashes(data, path)
    facts = (("bytes", len(data)), ("hashes", len(hashes)), ("first", shown(hashes.tolist(), len(hashes))))
    return Report(title="Paimon key hashes of a bucket", facts=facts)


def describe_index_manifest(data: bytes, path: str) -> Report:
    """All index files of a snapshot; those with deletion vectors have a line per bin."""
    files = decode_index_manifest(data, path).files
    rows: list[tuple[object, ...]] = []
    for file in files:
        where = (file.type, file.partition.hex(), file.bucket, file.name, file.size)
        rows += [(*where, bin.data_file, bin.offset, bin.length, bin.cardinality) for bin in file.ranges]
        if not file.ranges:
            rows.append((*where, "", "", "", file.row_count))
    columns = ("type", "partition", "bucket", "index file", "bytes", "data file", "offset", "length", "rows")
    return Report(
        title="Paimon index manifest", facts=(("index files", len(files)),), columns=columns, rows=tuple(rows)
    )


def describe_manifest_list(data: bytes, path: str) -> Report:
    """The manifests of a snapshot, or those that it added."""
    manifests = decode_manifest_list(decode_records(data, path), path)
    rows = tuple((manifest.name, manifest.size) for manifest in manifests)
    return Report(
        title="Paimon manifest list", facts=(("manifests", len(rows)),), columns=("manifest", "bytes"), rows=rows
    )


def describe_manifest(data: bytes, path: str) -> Report:
    """The data files that a manifest adds and deletes."""
    entries = decode_manifest(data, path)
    rows = tuple(
        (
            "add" if entry.added else "delete",
            entry.file.partition.hex(),
            entry.file.bucket,
            entry.file.level,
            entry.file.name,
            entry.file.row_count,
            entry.file.size,
        )
        for entry in entries
    )
    columns = ("kind", "partition", "bucket", "level", "data file", "rows", "bytes")
    return Report(title="Paimon manifest", facts=(("entries", len(rows)),), columns=columns, rows=rows)


def describe_snapshot(data: bytes, path: str) -> Report:
    """A snapshot: the state of a table after a commit."""
    snapshot = decode_snapshot(data, path)
    return Report(
        title="Paimon snapshot",
        facts=(
            ("snapshot", snapshot.id),
            ("kind", snapshot.commit_kind),
            ("committed", moment(snapshot.time_millis * 1000)),
            ("by", f"{snapshot.commit_user}, commit {snapshot.commit_identifier}"),
            ("schema", snapshot.schema_id),
            ("records", snapshot.total_record_count),
            ("base manifests", snapshot.base.name),
            ("new manifests", snapshot.delta.name),
            ("index manifest", snapshot.index_manifest or "none"),
        ),
    )


def describe_schema(data: bytes, path: str) -> Report:
    """Columns, keys and options of a table."""
    schema = decode_schema(data, path)
    rows = tuple((field.id, field.name, str(field.type)) for field in schema.fields)
    return Report(
        title="Paimon schema",
        facts=(
            ("schema", schema.id),
            ("primary key", ", ".join(schema.primary_keys) or "none"),
            ("partitioned by", ", ".join(schema.partition_keys) or "nothing"),
            *sorted(schema.options.items()),
        ),
        columns=("id", "column", "type"),
        rows=rows,
    )
