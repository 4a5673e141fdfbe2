"""Blob columns: how a table's schema shows them, and where their bytes are.

A blob column is one physical column of a data file. There are two kinds:

- *v1* (files 2.0 and 2.1): the field is ``large_binary`` with the metadata key ``lance-encoding:blob``. The file keeps
  the bytes between its pages, and a page of (position, size).
- *v2* (files 2.2 and 2.3): the field is a struct of the extension type ``lance.blob.v2``. The file keeps a description
  per row, which says where the bytes are: in the file itself, in an object beside it, or elsewhere.

A table's schema holds the *logical* form, which is what a writer hands in. Reads use one of three others, each the same
schema with other nodes in the place of the blobs:

=============  =============================================  ============================================
form           v1                                             v2
=============  =============================================  ============================================
descriptions   ``struct<position, size>``                     ``struct<kind, position, size, blob_id, blob_uri>``
bytes          ``large_binary``                               ``large_binary``
rows           ``large_binary``                               what the codec writes blobs from, see :data:`PREPARED`
=============  =============================================  ============================================

The ids of nodes that only a form has are made from the blob's own id and their names, and lie above all ids of tables.

Format: ``docs/format/blobs.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tablewright.format.field import BLOB, EXTENSION_NAME, PACKED, Field, is_blob, is_blob_v1
from tablewright.format.schema import Schema

__all__ = [
    "DEDICATED",
    "DESCRIPTION",
    "EXTERNAL",
    "INLINE",
    "MANAGED",
    "MANAGED_IN_BASE",
    "PACKED_BLOB",
    "PREPARED",
    "Thresholds",
    "as_bytes",
    "as_descriptions",
    "as_rows",
    "prepared_blobs",
    "sidecar_path",
    "thresholds_of",
]

INLINE, PACKED_BLOB, DEDICATED, EXTERNAL, MANAGED, MANAGED_IN_BASE = range(6)

DESCRIPTION_V1 = (("position", "uint64"), ("size", "uint64"))
DESCRIPTION = (
    ("kind", "uint8"),
    ("position", "uint64"),
    ("size", "uint64"),
    ("blob_id", "uint32"),
    ("blob_uri", "string"),
)
PREPARED = (
    ("kind", "uint8"),
    ("data", "large_binary"),
    ("uri", "string"),
    ("blob_id", "uint32"),
    ("blob_size", "uint64"),
    ("position", "uint64"),
)
"""The members of a blob v2 that the codec writes. Inline ones have ``data``, packed ones the other numbers."""

_FORM_IDS_FROM = 1 << 29
_MEMBER_NAMES = tuple(dict.fromkeys(name for name, _ in (*DESCRIPTION, *PREPARED)))
_PREPARED_NAMES = tuple(name for name, _ in PREPARED)
_TRUE = b"true"


def as_descriptions(schema: Schema) -> Schema:
    """The schema with descriptions in the place of blobs: what a scan shows by default."""
    return schema.with_form("descriptions", _described)


def as_bytes(schema: Schema) -> Schema:
    """The schema with the bytes themselves in the place of blobs."""
    return schema.with_form("bytes", _bytes)


def as_rows(schema: Schema) -> Schema:
    """The schema of rows that are read to be written again: blobs with all that a writer needs."""
    return schema.with_form("rows", _prepared)


def _described(blob: Field) -> Iterator[Field]:
    if is_blob_v1(blob):
        yield replace(blob, logical_type="struct", encoding=None)
        yield from _members(blob, DESCRIPTION_V1, nullable=True)
        return
    yield _plain(blob, {BLOB: _TRUE, PACKED[1]: _TRUE})
    yield from _members(blob, DESCRIPTION, nullable=False)


def _bytes(blob: Field) -> Iterator[Field]:
    if is_blob_v1(blob):
        yield blob
        return
    metadata = {key: value for key, value in blob.arrow_metadata.items() if key != EXTENSION_NAME}
    yield replace(_plain(blob, metadata), logical_type="large_binary", is_bytes_of_blob=True)


def _prepared(blob: Field) -> Iterator[Field]:
    if is_blob_v1(blob):
        yield blob
        return
    metadata = {key: value for key, value in blob.metadata.items() if key.startswith(f"{BLOB}-")}
    yield _plain(blob, {**metadata, BLOB: _TRUE})
    yield from _members(blob, PREPARED, nullable=True)


def _plain(blob: Field, metadata: dict[str, bytes]) -> Field:
    return replace(blob, encoding=None).with_metadata(metadata)


def _members(blob: Field, members: tuple[tuple[str, str], ...], *, nullable: bool) -> Iterator[Field]:
    first = _FORM_IDS_FROM + len(_MEMBER_NAMES) * blob.id
    for name, kind in members:
        number = first + _MEMBER_NAMES.index(name)
        yield Field(id=number, parent_id=blob.id, name=name, logical_type=kind, nullable=nullable)


# -------------------------------------------------------------------------------------------------------------- places
def sidecar_path(data_path: str, blob_id: int) -> str:
    """The object with the bytes of packed and dedicated blobs beside a data file: 32 bits, the lowest first.

    >>> sidecar_path("data/x.lance", 3)
    'data/x/11000000000000000000000000000000.blob'
    """
    return f"{data_path.removesuffix('.lance')}/{f'{blob_id:032b}'[::-1]}.blob"


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Where the bytes of a new blob go, by their number: above ``dedicated`` to an object of their own, up to
    ``inline`` into the data file, the others to objects of up to ``pack`` bytes."""

    inline: int = 64 * 1024
    dedicated: int = 4 * 1024 * 1024
    pack: int = 1024**3


def thresholds_of(blob: Field) -> Thresholds:
    """The thresholds that a blob's metadata set, and the defaults of Lance for the others."""
    found = {}
    for name, key in (("inline", "inline-size"), ("dedicated", "dedicated-size"), ("pack", "pack-file-size")):
        text = blob.metadata.get(f"{BLOB}-{key}-threshold", b"")
        if text.isdigit():
            found[name] = int(text)
    return Thresholds(**found)


def prepared_blobs(schema: Schema) -> tuple[Field, ...]:
    """The blobs v2 of a schema of the form for rows."""
    return tuple(node for node in schema.fields if is_blob(node) and _names(schema, node) == _PREPARED_NAMES)


def _names(schema: Schema, node: Field) -> tuple[str, ...]:
    return tuple(child.name for child in schema.children(node.id))
