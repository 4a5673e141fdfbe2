"""The manifest file: length-prefixed sections and a footer around the messages.

::

    [u32 length][index section]     if there are indices
    [u32 length][transaction]       the commit that made this version
    [u32 length][manifest]          holds the positions of both
    i64 position of the manifest, u16 major, u16 minor, "LANC"

All numbers are little-endian. Sections are found by the positions in the manifest, so any order can be read. The
manifest ends exactly where the footer begins.

Format: ``docs/format/table.md#manifest-file``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from tablewright.errors import CorruptTable, InternalError, TablewrightError
from tablewright.format.fragment import SequenceFile, with_external
from tablewright.format.index import decode_index_section, encode_index_section
from tablewright.format.manifest import Manifest
from tablewright.format.manifest_codec import (
    Sections,
    checked_after_reading,
    decode_manifest,
    encode_manifest,
    ready_to_write,
)
from tablewright.format.naming import parse_manifest_name
from tablewright.format.transaction import Transaction, decode_transaction
from tablewright.lazy import cached_property
from tablewright.values import evolve

__all__ = [
    "ManifestFile",
    "decode_manifest_file",
    "encode_manifest_file",
    "encode_ready_manifest",
    "manifest_section",
    "section_at",
]

MAGIC = b"LANC"
VERSION_MAJOR, VERSION_MINOR = 0, 2
_FOOTER = struct.Struct("<qHH4s")
_LENGTH = struct.Struct("<I")
_SECTION_BYTES_MAX = (1 << 32) - 1


@dataclass(frozen=True, kw_only=True)
class ManifestFile:
    """What one manifest file holds. ``transaction_bytes`` is the inline transaction, ``None`` if there is none.

    The transaction is decoded when first asked for, and one that can't be decoded does not hinder reading the table:
    ``transaction`` is ``None`` then, and ``transaction_error`` says why.
    """

    manifest: Manifest
    transaction_bytes: bytes | None
    path: str
    section_error: str | None = None

    @property
    def transaction(self) -> Transaction | None:
        """The commit that made this version, if the file holds it in a form that we can read."""
        return self._decoded[0]

    @property
    def transaction_error(self) -> str | None:
        """Why the inline transaction can't be read; ``None`` if it can, or if there is none."""
        return self._decoded[1]

    @cached_property
    def _decoded(self) -> tuple[Transaction | None, str | None]:
        if self.section_error or not self.transaction_bytes:
            return None, self.section_error
        try:
            return decode_transaction(self.transaction_bytes, self.path), None
        except TablewrightError as error:
            return None, str(error)


def encode_manifest_file(manifest: Manifest, transaction_bytes: bytes) -> bytes:
    """The bytes of a manifest file. Derives the flags; :class:`InternalError` if the manifest breaks a rule.

    ``transaction_bytes`` is the serialised transaction, the same as in its own file; empty leaves the section out.
    """
    return encode_ready_manifest(ready_to_write(manifest), transaction_bytes)


def encode_ready_manifest(manifest: Manifest, transaction_bytes: bytes) -> bytes:
    """The same for a manifest that :func:`ready_to_write` has returned."""
    parts: list[bytes] = []
    index_position = transaction_position = None
    if manifest.indices or manifest.index_unknown:
        index_position = 0
        parts += _prefixed(encode_index_section(manifest.indices, manifest.index_unknown))
    if transaction_bytes:
        transaction_position = sum(map(len, parts))
        parts += _prefixed(transaction_bytes)
    position = sum(map(len, parts))
    parts += _prefixed(*encode_manifest(manifest, Sections(index_position, transaction_position)))
    parts.append(_FOOTER.pack(position, VERSION_MAJOR, VERSION_MINOR, MAGIC))
    return b"".join(parts)


def decode_manifest_file(
    data: bytes, path: str, external: Callable[[SequenceFile], bytes] | None = None
) -> ManifestFile:
    """The manifest in the bytes of a manifest file, with its indices, checked against every rule.

    ``path`` is named in errors; if it ends in a manifest's name, the version must agree. ``external`` reads sequences
    that old releases left in files of their own. Raises :class:`CorruptTable`, or :class:`UnsupportedFeature` if the
    table needs a newer reader.
    """
    manifest, sections = decode_manifest(manifest_section(data, path), path)
    if external is not None:
        manifest = evolve(manifest, fragments=with_external(manifest.fragments, external))
    if sections.index is not None:
        indices, unknown = decode_index_section(section_at(data, sections.index, path, "the index section"), path)
        manifest = evolve(manifest, indices=indices, index_unknown=unknown)
    named = parse_manifest_name(path)
    if named and named[0] != manifest.version:
        raise CorruptTable(path, (f"it says version {manifest.version}, its name says {named[0]}",))
    transaction_bytes, section_error = _transaction_section(data, sections.transaction, path)
    return ManifestFile(
        manifest=checked_after_reading(manifest, path),
        transaction_bytes=transaction_bytes,
        path=path,
        section_error=section_error,
    )


def _prefixed(*section: bytes) -> tuple[bytes, ...]:
    size = sum(map(len, section))
    if size > _SECTION_BYTES_MAX:
        raise InternalError(f"A section of {size} bytes does not fit a manifest file.")
    return _LENGTH.pack(size), *section


def manifest_section(data: bytes, path: str) -> bytes:
    """The manifest message in the bytes of a manifest file."""
    if len(data) < _FOOTER.size + _LENGTH.size:
        raise CorruptTable(path, (f"{len(data)} bytes are too few for a manifest file",))
    position, _, _, magic = _FOOTER.unpack_from(data, len(data) - _FOOTER.size)
    if magic != MAGIC:
        raise CorruptTable(path, (f"it ends in {magic!r} instead of {MAGIC!r}: truncated, or not a manifest file",))
    section = section_at(data, position, path, "the manifest")
    if position + _LENGTH.size + len(section) != len(data) - _FOOTER.size:
        raise CorruptTable(path, ("the manifest does not end where the footer begins",))
    return section


def section_at(data: bytes, position: int, path: str, what: str) -> bytes:
    """The section whose length prefix is at ``position``."""
    end = len(data) - _FOOTER.size
    if not 0 <= position <= end - _LENGTH.size:
        raise CorruptTable(path, (f"the position of {what}, {position}, is outside the {len(data)} bytes of the file",))
    (length,) = _LENGTH.unpack_from(data, position)
    start = position + _LENGTH.size
    if start + length > end:
        raise CorruptTable(path, (f"{what} claims {length} bytes, of which the file has {end - start}",))
    return data[start : start + length]


def _transaction_section(data: bytes, position: int | None, path: str) -> tuple[bytes | None, str | None]:
    if position is None:
        return None, None
    try:
        return section_at(data, position, path, "the transaction"), None
    except CorruptTable as error:
        return None, str(error)
