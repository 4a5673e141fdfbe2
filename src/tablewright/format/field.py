"""One node of a table's schema, as a value and as a protobuf message.

A schema is a forest: every column is a tree of nodes, and the manifest lists all nodes depth first, parents before
children. A node has its id and its parent's; the helpers here turn the flat list into lookups by parent. Five facts
of the message repeat what the metadata says (extension name, primary and clustering key). :meth:`Field.with_metadata`
derives them, so they are never set by hand; a decoded field keeps them as they were written.

Format: ``docs/format/schema.md#nodes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tablewright.format.logical_types import default_encoding
from tablewright.format.proto import schema_pb2
from tablewright.format.wire import unknown_of

__all__ = [
    "EXTENSION_METADATA",
    "EXTENSION_NAME",
    "Children",
    "Field",
    "children_by_parent",
    "field_from_proto",
    "field_to_proto",
    "is_blob",
    "is_blob_v1",
    "is_blob_v2",
    "is_one_column",
    "is_packed",
]

EXTENSION_NAME = "ARROW:extension:name"
EXTENSION_METADATA = "ARROW:extension:metadata"
PRIMARY_KEY = "lance-schema:unenforced-primary-key"
CLUSTERING_KEY = "lance-schema:unenforced-clustering-key"
PACKED = ("packed", "lance-encoding:packed")
BLOB = "lance-encoding:blob"
BLOB_V2 = b"lance.blob.v2"
TOP_LEVEL = -1

_YES = frozenset({"true", "1", "yes"})
_PACKED_YES = _YES | {"on"}
_POSITION_MAX = 2**32 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One node: a column, a struct's member, a list's item, or one of the three nodes below a map.

    Invariants: ``id >= 0`` is unique in its schema; ``parent_id`` is -1 for a column, else the id of an earlier node.
    ``encoding`` ``None`` stands for what Lance writes for the type. ``is_bytes_of_blob`` marks nodes of a
    read schema (``format/blobs.py``), and is never stored.
    """

    id: int
    name: str
    logical_type: str
    parent_id: int = TOP_LEVEL
    nullable: bool = True
    metadata: Mapping[str, bytes] = field(default_factory=dict)
    encoding: int | None = None
    extension_name: str = ""
    unenforced_primary_key: bool = False
    unenforced_primary_key_position: int = 0
    unenforced_clustering_key: bool = False
    unenforced_clustering_key_position: int = 0
    kind: int = 0
    is_bytes_of_blob: bool = False
    dictionary: tuple[int, int] | None = None
    unknown: bytes = b""

    def with_metadata(self, metadata: Mapping[str, bytes]) -> Field:
        """The same node with other metadata, and with the facts that follow from it."""
        position = _position(metadata, PRIMARY_KEY)
        return replace(
            self,
            metadata=dict(metadata),
            extension_name=_text(metadata.get(EXTENSION_NAME)),
            unenforced_primary_key=_is_true(metadata.get(PRIMARY_KEY)) or position > 0,
            unenforced_primary_key_position=position,
            unenforced_clustering_key_position=_position(metadata, CLUSTERING_KEY),
        )

    @property
    def arrow_metadata(self) -> dict[str, bytes]:
        """The metadata as Arrow sees it: old tables name their extension type beside the metadata only."""
        if self.extension_name and EXTENSION_NAME not in self.metadata:
            return {**self.metadata, EXTENSION_NAME: self.extension_name.encode()}
        return dict(self.metadata)


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", errors="replace")


def _is_true(value: bytes | None) -> bool:
    return _text(value).lower() in _YES


def _position(metadata: Mapping[str, bytes], key: str) -> int:
    """The 1-based place in a key of several columns; 0 where there is none."""
    text = _text(metadata.get(f"{key}:position"))
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= _POSITION_MAX else 0


# ------------------------------------------------------------------------------------------------------- the tree
Children = Mapping[int, Sequence[Field]]


def children_by_parent(fields: Iterable[Field]) -> dict[int, tuple[Field, ...]]:
    """The children of every node that has any, in order; -1 holds the columns."""
    found: dict[int, list[Field]] = {TOP_LEVEL: []}
    for node in fields:
        found.setdefault(node.parent_id, []).append(node)
    return {parent: tuple(nodes) for parent, nodes in found.items()}


def packed_spelling(node: Field) -> str | None:
    """How the metadata ask for a packed struct (any spelling that the file writer takes for yes); else ``None``."""
    for key in PACKED:
        text = _text(node.metadata.get(key))
        if text.lower() in _PACKED_YES:
            return text
    return None


def is_packed(node: Field) -> bool:
    """Whether the node is a struct that its data files keep in one column, row by row."""
    return node.logical_type == "struct" and packed_spelling(node) is not None


def is_blob_v2(node: Field) -> bool:
    """Whether the node is a blob of the second kind: a struct to the schema, one column to its data files."""
    return node.logical_type == "struct" and node.arrow_metadata.get(EXTENSION_NAME) == BLOB_V2


def is_blob_v1(node: Field) -> bool:
    """Whether the node is a blob of the first kind: binary to the schema. The presence of the key counts."""
    return node.logical_type == "large_binary" and BLOB in node.metadata


def is_blob(node: Field) -> bool:
    """Whether the node is a blob in any form: of a table, of a data file, or of a read (``format/blobs.py``)."""
    if node.logical_type == "struct":
        return BLOB in node.metadata or is_blob_v2(node)
    return is_blob_v1(node) or node.is_bytes_of_blob


def is_one_column(node: Field) -> bool:
    """Whether the node is one column of a data file although it has children."""
    return node.logical_type == "struct" and (is_packed(node) or is_blob(node))


# --------------------------------------------------------------------------------------------------- the messages
def field_to_proto(node: Field) -> Any:
    """The message of one node, with the fields that we do not know put back."""
    message: Any = schema_pb2.Field(
        name=node.name,
        id=node.id,
        parent_id=node.parent_id,
        logical_type=node.logical_type,
        nullable=node.nullable,
        extension_name=node.extension_name,
        metadata=dict(node.metadata),
        unenforced_primary_key=node.unenforced_primary_key,
        unenforced_primary_key_position=node.unenforced_primary_key_position,
        unenforced_clustering_key=node.unenforced_clustering_key,
        unenforced_clustering_key_position=node.unenforced_clustering_key_position,
    )
    message.kind = node.kind
    message.encoding = default_encoding(node.logical_type) if node.encoding is None else node.encoding
    if node.dictionary is not None:
        message.dictionary.SetInParent()  # Lance writes an empty one for dictionaries once there are rows
        message.dictionary.offset, message.dictionary.length = node.dictionary
    message.MergeFromString(node.unknown)
    return message


def field_from_proto(message: Any) -> Field:
    """The node of one message. Nothing is checked here: the schema as a whole is."""
    place = message.dictionary
    return Field(
        kind=message.kind,
        name=message.name,
        id=message.id,
        parent_id=message.parent_id,
        logical_type=message.logical_type,
        nullable=message.nullable,
        encoding=message.encoding,
        extension_name=message.extension_name,
        metadata=dict(message.metadata),
        unenforced_primary_key=message.unenforced_primary_key,
        unenforced_primary_key_position=message.unenforced_primary_key_position,
        unenforced_clustering_key=message.unenforced_clustering_key,
        unenforced_clustering_key_position=message.unenforced_clustering_key_position,
        dictionary=(place.offset, place.length) if message.HasField("dictionary") else None,
        unknown=unknown_of(message),
    )
