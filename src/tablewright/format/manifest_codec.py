"""The manifest message: protobuf bytes to a checked value and back.

Fragments pass through as bytes (``ManifestShell``), so a manifest of a hundred thousand fragments costs no message per
fragment, and an untouched fragment keeps every byte.

Format: ``docs/format/table.md#manifest-fields``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tablewright.errors import CorruptTable, InternalError, UnsupportedFeature
from tablewright.format.flags import STABLE_ROW_IDS, check_readable, check_writable, derive_flags
from tablewright.format.fragment import FragmentList
from tablewright.format.manifest import BasePath, Manifest, WriterVersion
from tablewright.format.manifest_problems import problems_of_lineage, problems_of_manifest
from tablewright.format.proto import table_pb2 as pb
from tablewright.format.schema import schema_from_proto, schema_to_proto
from tablewright.format.wire import decode_message, encode_message, encode_varint, unknown_of
from tablewright.values import evolve

__all__ = [
    "Sections",
    "base_path_from_message",
    "base_path_to_message",
    "checked_after_reading",
    "decode_manifest",
    "encode_manifest",
    "ready_to_write",
]

_NS_PER_S = 1_000_000_000
_CURRENT_FILES = (2, 2)
_LONG_FRAGMENT_BYTES = 1 << 16
_FRAGMENTS_TAG = b"\x12"  # field 2, a message


@dataclass(frozen=True, slots=True)
class Sections:
    """Where in its file a manifest finds the other sections: the position of their length prefixes."""

    index: int | None = None
    transaction: int | None = None


def ready_to_write(manifest: Manifest) -> Manifest:
    """The manifest with flags derived from its content, checked. :class:`InternalError` if a rule is broken.

    Row ids and row versions that a changed fragment has kept may have been damaged before: :class:`CorruptTable`.
    """
    check_writable(manifest.writer_flags, f"version {manifest.version}")
    reader_flags, writer_flags = derive_flags(manifest)
    if (reader_flags, writer_flags) != (manifest.reader_flags, manifest.writer_flags):
        manifest = evolve(manifest, reader_flags=reader_flags, writer_flags=writer_flags)
    problems = problems_of_manifest(manifest)
    if problems and problems == problems_of_lineage(manifest):
        raise CorruptTable(manifest.fragments.path or f"the manifest of version {manifest.version - 1}", problems)
    if problems:
        raise InternalError(f"Version {manifest.version} can't be written: " + "; ".join(problems) + ".")
    manifest.fragments.mark_checked()
    return manifest


def checked_after_reading(manifest: Manifest, path: str) -> Manifest:
    """The manifest itself. :class:`CorruptTable` if a rule is broken."""
    problems = problems_of_manifest(manifest)
    if problems:
        raise CorruptTable(path, problems)
    return manifest


def encode_manifest(manifest: Manifest, sections: Sections) -> tuple[bytes, ...]:
    """The message of a manifest in pieces, as it is, without its indices, which have a section of their own.

    Fragments with long sequences are megabytes each, and protobuf would copy them several times: they are put where
    they belong, after the fields of the schema.
    """
    what, fragments = f"Version {manifest.version}", manifest.fragments.raw
    if sum(map(len, fragments)) <= len(fragments) * _LONG_FRAGMENT_BYTES:
        return (encode_message(what, lambda: _to_message(manifest, sections, fragments)),)
    schema = encode_message(what, lambda: pb.ManifestShell(fields=schema_to_proto(manifest.schema)))
    rest = encode_message(what, lambda: _to_message(manifest, sections, ()))
    framed = (part for fragment in fragments for part in (_FRAGMENTS_TAG, encode_varint(len(fragment)), fragment))
    return (schema, *framed, rest[len(schema) :])


def decode_manifest(data: bytes, path: str) -> tuple[Manifest, Sections]:
    """The manifest in ``data``, its indices left out, and where the other sections are.

    Raises :class:`UnsupportedFeature` for a table that we can't read, :class:`CorruptTable` for anything else that is
    no manifest. The invariants are left to :func:`checked_after_reading`, which needs the indices too.
    """
    message = decode_message(pb.ManifestShell, data, path, "the manifest")
    check_readable(message.reader_feature_flags, path)
    if message.HasField("fragment_tree"):
        raise UnsupportedFeature(f"The fragments in {path} are kept as a tree, which we can't read.")
    fragments = FragmentList(list(message.fragments), path)
    fragments.check()
    return _from_message(message, fragments, path), _sections(message)


def _sections(message: pb.ManifestShell) -> Sections:
    transaction = None
    if message.HasField("transaction_section"):
        transaction = message.transaction_section
    elif message.HasField("transaction_section_2025"):
        transaction = message.transaction_section_2025
    return Sections(message.index_section if message.HasField("index_section") else None, transaction)


def _to_message(manifest: Manifest, sections: Sections, fragments: Sequence[bytes]) -> pb.ManifestShell:
    """The message. Empty maps are left out: protobuf takes 10 us to copy one."""
    seconds, nanos = divmod(manifest.timestamp_ns, _NS_PER_S)
    message = pb.ManifestShell(
        fields=schema_to_proto(manifest.schema),
        fragments=fragments,
        version=manifest.version,
        version_aux_data=manifest.version_aux_data,
        schema_metadata=dict(manifest.schema.metadata) or None,
        index_section=sections.index,
        timestamp=pb.Instant(seconds=seconds, nanos=nanos) if manifest.timestamp_ns else None,
        tag=manifest.tag,
        reader_feature_flags=manifest.reader_flags,
        writer_feature_flags=manifest.writer_flags,
        max_fragment_id=manifest.max_fragment_id,
        transaction_file=manifest.transaction_file,
        writer_version=None if manifest.writer is None else _writer_to_message(manifest.writer),
        next_row_id=manifest.next_row_id,
        data_format=pb.DataFormat(file_format=manifest.data_file_format, version=manifest.data_storage_version),
        config=dict(manifest.config) or None,
        base_paths=[base_path_to_message(base) for base in manifest.base_paths],
        table_metadata=dict(manifest.table_metadata) or None,
        branch=manifest.branch,
        transaction_section=sections.transaction,
        max_allocated_field_id=manifest.max_allocated_field_id,
        clustering=manifest.clustering,
        max_clustering_id=manifest.max_clustering_id,
    )
    if manifest.data_format_unknown:
        message.data_format.MergeFromString(manifest.data_format_unknown)
    if manifest.unknown:
        message.MergeFromString(manifest.unknown)
    return message


def _from_message(message: pb.ManifestShell, fragments: FragmentList, path: str) -> Manifest:
    return Manifest(
        schema=schema_from_proto(message.fields, message.schema_metadata, path),
        fragments=fragments,
        version=message.version,
        version_aux_data=message.version_aux_data,
        timestamp_ns=_timestamp_ns(message.timestamp, path),
        tag=message.tag,
        reader_flags=message.reader_feature_flags,
        writer_flags=message.writer_feature_flags,
        stable_row_ids=bool(message.reader_feature_flags & STABLE_ROW_IDS),
        max_fragment_id=_max_fragment_id(message, fragments),
        transaction_file=message.transaction_file,
        writer=_writer_from_message(message.writer_version) if message.HasField("writer_version") else None,
        next_row_id=message.next_row_id,
        data_storage_version=message.data_format.version or _storage_version(fragments),
        data_file_format=message.data_format.file_format or "lance",
        config=dict(message.config),
        base_paths=tuple(base_path_from_message(base) for base in message.base_paths),
        table_metadata=dict(message.table_metadata),
        branch=message.branch if message.HasField("branch") else None,
        max_allocated_field_id=message.max_allocated_field_id if message.HasField("max_allocated_field_id") else None,
        clustering=tuple(message.clustering),
        max_clustering_id=message.max_clustering_id if message.HasField("max_clustering_id") else None,
        data_format_unknown=unknown_of(message.data_format),
        unknown=unknown_of(message),
    )


def _timestamp_ns(message: pb.Instant, path: str) -> int:
    if not 0 <= message.nanos < _NS_PER_S:
        raise CorruptTable(path, (f"the time of the commit has {message.nanos} nanoseconds",))
    return message.seconds * _NS_PER_S + message.nanos


def _max_fragment_id(message: pb.ManifestShell, fragments: FragmentList) -> int | None:
    """The mark as stored, raised to the ids in use: old writers left it out."""
    stored = message.max_fragment_id if message.HasField("max_fragment_id") else None
    if not len(fragments):
        return stored
    return max(int(fragments.ids.max()), stored or 0)


def _storage_version(fragments: FragmentList) -> str:
    """The default version of a manifest that does not state one: that of its files, else the current one."""
    major, minor = max(fragments.facts.file_versions, default=_CURRENT_FILES)
    return f"{major}.{minor}"


def _writer_to_message(writer: WriterVersion) -> pb.WriterVersion:
    message = pb.WriterVersion(
        library=writer.library,
        version=writer.version,
        prerelease=writer.prerelease or None,
        build_metadata=writer.build_metadata or None,
    )
    if writer.unknown:
        message.MergeFromString(writer.unknown)
    return message


def _writer_from_message(message: pb.WriterVersion) -> WriterVersion:
    return WriterVersion(
        library=message.library,
        version=message.version,
        prerelease=message.prerelease,
        build_metadata=message.build_metadata,
        unknown=unknown_of(message),
    )


def base_path_to_message(base: BasePath) -> pb.BasePath:
    """The protobuf message of a base path."""
    message = pb.BasePath(id=base.id, name=base.name, is_dataset_root=base.is_dataset_root, path=base.path)
    if base.unknown:
        message.MergeFromString(base.unknown)
    return message


def base_path_from_message(message: pb.BasePath) -> BasePath:
    """The value of a base path message."""
    return BasePath(
        id=message.id,
        path=message.path,
        name=message.name if message.HasField("name") else None,
        is_dataset_root=message.is_dataset_root,
        unknown=unknown_of(message),
    )
