"""Lance's own files: manifests, transactions, deletion files.

Tests: tests/unit/cli/test_app.py
"""

from __future__ import annotations

import uuid
from typing import Any

from tablewright.data.encoder import DataFileReader
from tablewright.describe.report import Report, moment, positions
from tablewright.format.deletion_vectors.lance import decode_deletion_vector
from tablewright.format.envelope import decode_manifest_file
from tablewright.format.fragment import DeletionFileType
from tablewright.format.manifest import Manifest
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import decode_transaction
from tablewright.storage import open_store
from tablewright.storage.base import Store

__all__ = [
    "describe_data",
    "describe_data_bytes",
    "describe_deletion_array",
    "describe_deletion_bitmap",
    "describe_manifest",
    "describe_transaction",
    "manifest_facts",
    "manifest_rows",
]

_FRAGMENTS_SHOWN = 50


def describe_manifest(data: bytes, path: str) -> Report:
    """A version of a Lance table."""
    manifest = decode_manifest_file(data, path).manifest
    return Report(
        title="Lance manifest",
        facts=manifest_facts(manifest),
        columns=("fragment", "rows", "deleted", "files"),
        rows=manifest_rows(manifest),
    )


def manifest_facts(manifest: Manifest) -> tuple[tuple[str, Any], ...]:
    """What a manifest says about its version as a whole."""
    facts = manifest.fragments.facts
    return (
        ("version", manifest.version),
        ("committed", moment(manifest.timestamp_ns // 1000)),
        ("writer", "" if manifest.writer is None else f"{manifest.writer.library} {manifest.writer.version}"),
        ("columns", ", ".join(field.name for field in manifest.schema.fields)),
        ("fragments", len(manifest.fragments)),
        ("rows", int(facts.physical_rows.sum() - facts.deleted_rows.sum())),
        ("deleted rows", int(facts.deleted_rows.sum())),
        ("stable row ids", "yes" if manifest.stable_row_ids else "no"),
        ("indices", ", ".join(sorted({index.name for index in manifest.indices})) or "none"),
        ("feature flags", f"reader {manifest.reader_flags}, writer {manifest.writer_flags}"),
    )


def manifest_rows(manifest: Manifest) -> tuple[tuple[Any, ...], ...]:
    """The first fragments of a manifest."""
    return tuple(
        (fragment.id, fragment.physical_rows, fragment.deleted_rows, ", ".join(file.path for file in fragment.files))
        for fragment in manifest.fragments[:_FRAGMENTS_SHOWN]
    )


def describe_data(store: Store, path: str) -> Report:
    """A data file, or a file of an index, which has the same form."""
    reader = DataFileReader(store, path)
    facts = (
        ("file version", reader.version),
        ("rows", reader.num_rows),
        ("bytes", store.head(path).size),
        ("encoded bytes", sum(reader.column_bytes)),
    )
    fields = tuple((field.name, str(field.type), "yes" if field.nullable else "no") for field in reader.schema)
    return Report(title="Lance data file", facts=facts, columns=("column", "type", "nullable"), rows=fields)


def describe_data_bytes(data: bytes, path: str) -> Report:
    """A data file that is in memory."""
    store = open_store(f"memory://describe-{uuid.uuid4()}")
    store.put("file.lance", data)
    try:
        return describe_data(store, "file.lance")
    finally:
        store.delete("file.lance")


def describe_transaction(data: bytes, path: str) -> Report:
    """The transaction of a commit."""
    transaction = decode_transaction(data, path)
    operation = transaction.operation
    fields = {name: getattr(operation, name) for name in getattr(operation, "__slots__", ())}
    lists = tuple(
        (name, len(value)) for name, value in fields.items() if isinstance(value, tuple | frozenset) and value
    )
    return Report(
        title="Lance transaction",
        facts=(
            ("operation", type(operation).__name__),
            ("read version", transaction.read_version),
            ("uuid", transaction.uuid),
            *lists,
        ),
    )


def describe_deletion_array(data: bytes, path: str) -> Report:
    """Deleted rows of a fragment, as an Arrow array."""
    return _deletions(decode_deletion_vector(data, DeletionFileType.ARROW_ARRAY, path), "array")


def describe_deletion_bitmap(data: bytes, path: str) -> Report:
    """Deleted rows of a fragment, as a bitmap."""
    return _deletions(decode_deletion_vector(data, DeletionFileType.BITMAP, path), "bitmap")


def _deletions(vector: RowSet, kind: str) -> Report:
    facts = (("stored as", kind), ("deleted rows", len(vector)), ("offsets", positions(vector)))
    return Report(title="Lance deletion file", facts=facts)
