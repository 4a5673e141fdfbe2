"""Fragments as bytes: protobuf messages to values and back, unknown fields included.

Format: ``docs/format/table.md#fragments``, ``docs/format/data-files.md#data-file-entries``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.fragment.value import (
    DataFile,
    DeletionFile,
    DeletionFileType,
    Fragment,
    problems_of_fragment,
)
from tablewright.format.proto import table_pb2 as pb
from tablewright.format.wire import decode_message, encode_message, encode_varint, unknown_of

__all__ = [
    "data_file_from_message",
    "data_file_to_message",
    "decode_fragment",
    "encode_fragment",
    "fragment_from_message",
    "fragment_to_message",
]

_LONG_BYTES = 1 << 16
_LAST_UPDATED_TAG = b"\x3a"  # field 7, bytes

REFUSED = {
    "overlays": "data overlays",
    "spilled_row_ids": "row ids spilled into a data file",
    "spilled_last_updated_at_versions": "row versions spilled into a data file",
    "spilled_created_at_versions": "row versions spilled into a data file",
}
"""Fields of a fragment that change what its rows are, and that we can't read."""


def encode_fragment(fragment: Fragment) -> bytes:
    """The fragment as a protobuf message.

    Where scattered rows were updated, their versions are megabytes, which protobuf would copy several times: they are
    spliced in by hand, before the fields of higher numbers.
    """
    what, updated = f"Fragment {fragment.id}", fragment.last_updated_at
    if updated is None or len(updated) < _LONG_BYTES:
        return encode_message(what, lambda: fragment_to_message(fragment))
    rest = encode_message(what, lambda: fragment_to_message(replace(fragment, last_updated_at=None)))
    higher = Fragment(
        id=0,
        files=(),
        physical_rows=0,
        created_at=fragment.created_at,
        clustering_id=fragment.clustering_id,
        unknown=fragment.unknown,
    )
    at = len(rest) - len(encode_message(what, lambda: fragment_to_message(higher)))
    return b"".join((rest[:at], _LAST_UPDATED_TAG, encode_varint(len(updated)), updated, rest[at:]))


def decode_fragment(data: bytes, path: str) -> Fragment:
    """The fragment in ``data``, checked. ``path`` names the file that the bytes come from.

    Raises :class:`CorruptTable` for anything that is no sound fragment, and :class:`UnsupportedFeature` for one whose
    rows are kept in a way that we can't read.
    """
    fragment = fragment_from_message(decode_message(pb.Fragment, data, path, "a fragment"), path)
    problems = problems_of_fragment(fragment)
    if problems:
        raise CorruptTable(path, problems)
    return fragment


def fragment_to_message(fragment: Fragment) -> pb.Fragment:
    """The protobuf message of a fragment."""
    message = pb.Fragment(
        id=fragment.id,
        files=[data_file_to_message(file) for file in fragment.files],
        physical_rows=fragment.physical_rows,
        inline_row_ids=fragment.row_ids,
        inline_last_updated_at_versions=fragment.last_updated_at,
        inline_created_at_versions=fragment.created_at,
        clustering_id=fragment.clustering_id,
    )
    if fragment.deletion:
        message.deletion_file.CopyFrom(_deletion_to_message(fragment.deletion))
    if fragment.unknown:
        message.MergeFromString(fragment.unknown)
    return message


def fragment_from_message(message: pb.Fragment, path: str) -> Fragment:
    """The value of a fragment message; the rules are left to :func:`problems_of_fragment`."""
    refused = [REFUSED[field.name] for field, _ in message.ListFields() if field.name in REFUSED]
    if refused:
        raise UnsupportedFeature(f"Fragment {message.id} in {path} has {', '.join(refused)}, which we can't read.")
    return Fragment(
        id=message.id,
        files=tuple(data_file_from_message(file) for file in message.files),
        physical_rows=message.physical_rows,
        deletion=_deletion_from_message(message.deletion_file, path) if message.HasField("deletion_file") else None,
        row_ids=message.inline_row_ids if message.HasField("inline_row_ids") else None,
        last_updated_at=(
            message.inline_last_updated_at_versions if message.HasField("inline_last_updated_at_versions") else None
        ),
        created_at=message.inline_created_at_versions if message.HasField("inline_created_at_versions") else None,
        clustering_id=message.clustering_id if message.HasField("clustering_id") else None,
        unknown=unknown_of(message),
    )


def data_file_to_message(file: DataFile) -> pb.DataFile:
    """The protobuf message of a data file."""
    message = pb.DataFile(
        path=file.path,
        fields=file.fields,
        column_indices=file.column_indices,
        file_major_version=file.file_major_version,
        file_minor_version=file.file_minor_version,
        file_size_bytes=file.file_size_bytes,
        base_id=file.base_id,
    )
    if file.unknown:
        message.MergeFromString(file.unknown)
    return message


def data_file_from_message(message: pb.DataFile) -> DataFile:
    """The value of a data file message."""
    return DataFile(
        path=message.path,
        fields=tuple(message.fields),
        column_indices=tuple(message.column_indices),
        file_major_version=message.file_major_version,
        file_minor_version=message.file_minor_version,
        file_size_bytes=message.file_size_bytes,
        base_id=message.base_id if message.HasField("base_id") else None,
        unknown=unknown_of(message),
    )


def _deletion_to_message(deletion: DeletionFile) -> Any:
    message: Any = pb.DeletionFile(
        read_version=deletion.read_version,
        id=deletion.id,
        num_deleted_rows=deletion.num_deleted_rows,
        base_id=deletion.base_id,
    )
    message.file_type = int(deletion.file_type)
    if deletion.unknown:
        message.MergeFromString(deletion.unknown)
    return message


def _deletion_from_message(message: pb.DeletionFile, path: str) -> DeletionFile:
    try:
        file_type = DeletionFileType(message.file_type)
    except ValueError as error:
        raise CorruptTable(path, (f"deletion file type {message.file_type} does not exist",)) from error
    return DeletionFile(
        file_type=file_type,
        read_version=message.read_version,
        id=message.id,
        num_deleted_rows=message.num_deleted_rows,
        base_id=message.base_id if message.HasField("base_id") else None,
        unknown=unknown_of(message),
    )
