"""Lance's own files: manifests, transactions, deletion files."""

from __future__ import annotations

from tablewright.describe.report import Report, moment, positions
from tablewright.format.deletion_vector import DeletionVector, decode_deletion_vector
from tablewright.format.envelope import decode_manifest_file
from tablewright.format.fragment import DeletionFileType
from tablewright.format.transaction import decode_transaction

__all__ = ["describe_deletion_array", "describe_deletion_bitmap", "describe_manifest", "describe_transaction"]

_FRAGMENTS_SHOWN = 50


def describe_manifest(data: bytes, path: str) -> Report:
    """A version of a Lance table."""
    manifest = decode_manifest_file(data, path).manifest
    fragments, facts = manifest.fragments, manifest.fragments.facts
    return Report(
        title="Lance manifest",
        facts=(
            ("version", manifest.version),
            ("committed", moment(manifest.timestamp_ns // 1000)),
            ("writer", "" if manifest.writer is None else f"{manifest.writer.library} {manifest.writer.version}"),
            ("columns", ", ".join(field.name for field in manifest.schema.fields)),
            ("fragments", len(fragments)),
            ("rows", int(facts.physical_rows.sum() - facts.deleted_rows.sum())),
            ("deleted rows", int(facts.deleted_rows.sum())),
            ("stable row ids", "yes" if manifest.stable_row_ids else "no"),
            ("indices", ", ".join(sorted({index.name for index in manifest.indices})) or "none"),
            ("feature flags", f"reader {manifest.reader_flags}, writer {manifest.writer_flags}"),
        ),
        columns=("fragment", "rows", "deleted", "files"),
        rows=tuple(
            (
                fragment.id,
                fragment.physical_rows,
                fragment.deleted_rows,
                ", ".join(file.path for file in fragment.files),
            )
            for fragment in fragments[:_FRAGMENTS_SHOWN]
        ),
    )


def describe_transaction(data: bytes, path: str) -> Report:
    """What a writer of a Lance table meant to change."""
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


def _deletions(vector: DeletionVector, kind: str) -> Report:
    facts = (("stored as", kind), ("deleted rows", len(vector)), ("offsets", positions(vector)))
    return Report(title="Lance deletion file", facts=facts)
