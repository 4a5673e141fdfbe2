"""What a manifest file refers to: its fragments as bytes, its indices and its transaction file, and nothing else.

Cleanup reads the manifests of all versions, whose fragments are mostly the same bytes. So a fragment stays bytes here,
and each distinct one is decoded once (:func:`names_of_fragment`).

A *name* is a path below the root of a table. A file that lies at a base path may be one of the same table (a branch
reaches the files of its table so), or one elsewhere. Names are random, so the path alone identifies it.

Format: ``docs/format/table.md#directory-layout``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.envelope import manifest_section, section_at
from tablewright.format.flags import check_readable, check_writable
from tablewright.format.fragment.codec import fragment_from_message
from tablewright.format.index import decode_index_section
from tablewright.format.naming import (
    data_path,
    deletion_path,
    index_dir,
    parse_manifest_name,
    transaction_file_path,
)
from tablewright.format.proto import table_pb2 as pb
from tablewright.format.wire import decode_message

__all__ = ["Names", "References", "decode_references", "names_of_fragment"]

_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Names:
    """Names of files: ``own`` are in the table's own root, ``shared`` are reached through a base path."""

    own: tuple[str, ...] = ()
    shared: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """What one manifest refers to: serialised fragments, and names of all else. ``timestamp_ns``: its commit."""

    version: int
    timestamp_ns: int
    fragments: tuple[bytes, ...]
    others: Names


def decode_references(data: bytes, path: str) -> References:
    """What the manifest file ``data`` refers to; ``path`` is named in errors.

    Raises :class:`CorruptTable` for what is no manifest, and :class:`UnsupportedFeature` for a table that we can't read
    or write: it may refer to files in ways that we don't know.
    """
    message = decode_message(pb.ManifestShell, manifest_section(data, path), path, "the manifest")
    check_readable(message.reader_feature_flags, path)
    check_writable(message.writer_feature_flags, path)
    if message.HasField("fragment_tree"):
        raise UnsupportedFeature(f"The fragments in {path} are kept as a tree, which we can't read.")
    named = parse_manifest_name(path)
    if named and named[0] != message.version:
        raise CorruptTable(path, (f"it says version {message.version}, its name says {named[0]}",))
    return References(
        version=message.version,
        timestamp_ns=message.timestamp.seconds * _NS_PER_S + message.timestamp.nanos,
        fragments=tuple(message.fragments),
        others=_others(message, data, path),
    )


def _others(message: pb.ManifestShell, data: bytes, path: str) -> Names:
    own = [transaction_file_path(message.transaction_file)] if message.transaction_file else []
    shared: list[str] = []
    if message.HasField("index_section"):
        section = section_at(data, message.index_section, path, "the index section")
        for index in decode_index_section(section, path)[0]:
            (own if index.base_id is None else shared).append(index_dir(index.uuid))
    return Names(tuple(own), tuple(shared))


def names_of_fragment(data: bytes, path: str) -> Names:
    """The names of the data files and the deletion file of a serialised fragment, and of sequences in their own files.

    A base path that is no table has no ``data/`` directory, so both forms of a shared data file's name are given.
    """
    message = decode_message(pb.Fragment, data, path, "a fragment")
    fragment = fragment_from_message(message, path)
    own: list[str] = []
    shared: list[str] = []
    for file in fragment.files:
        if file.base_id is None:
            own.append(data_path(file.path))
        else:
            shared += (data_path(file.path), file.path)
    deletion = fragment.deletion
    if deletion is not None:
        (own if deletion.base_id is None else shared).append(deletion_path(fragment.id, deletion))
    if fragment.unknown:
        shared += _external(fragment.unknown, path)
    return Names(tuple(own), tuple(shared))


def _external(unknown: bytes, path: str) -> list[str]:
    """The files of row ids and row versions that old releases did not keep in the manifest."""
    named = decode_message(pb.FragmentExternals, unknown, path, "where row ids or row versions lie")
    fields = ("row_ids", "last_updated_at_versions", "created_at_versions")
    return [getattr(named, field).path for field in fields if named.HasField(field)]
