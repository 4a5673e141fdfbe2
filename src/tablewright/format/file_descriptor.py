"""A data file's own schema, the first of its global buffers, as the codec has to see it.

A blob column of the second kind (``lance.blob.v2``) is one physical column, a packed struct of five members. The file's
schema stores these members with the id -1 and the parent -1, right after the blob itself, so a reader that follows the
parents sees an empty struct and five more columns, and counts the columns after them wrongly. :func:`repaired` gives
them ids and their parent.

A blob column of the first kind reads as its bytes. With ``describe`` it becomes a struct of position and size, which
reads as the descriptions that the file holds.
"""

from __future__ import annotations

from typing import Any

from tablewright.errors import CorruptTable
from tablewright.format.blobs import DESCRIPTION, DESCRIPTION_V1
from tablewright.format.field import BLOB
from tablewright.format.logical_types import ENCODING_NONE, ENCODING_PLAIN
from tablewright.format.proto import schema_pb2
from tablewright.format.wire import decode_message

__all__ = ["repaired", "schema_bytes"]

_BLOB_BYTES = BLOB.encode()
_LEAF = 2


def repaired(descriptor: bytes, path: str, *, describe: bool = False) -> bytes | None:
    """The descriptor that makes the codec read the file right; ``None`` if it does so already.

    Costs one search of some hundred bytes in a file without blobs.
    """
    if _BLOB_BYTES not in descriptor:
        return None
    message: Any = decode_message(schema_pb2.FileDescriptor, descriptor, path, "the file's schema")
    nodes = list(message.schema.fields)
    fields = list(_fields(nodes, path, describe))
    if fields == nodes:
        return None
    del message.schema.fields[:]
    message.schema.fields.extend(fields)
    return bytes(message.SerializeToString())


def schema_bytes(descriptor: bytes, path: str) -> bytes:
    """The schema alone: the same for files of one schema, whatever their number of rows."""
    message: Any = decode_message(schema_pb2.FileDescriptor, descriptor, path, "the file's schema")
    return bytes(message.schema.SerializeToString(deterministic=True))


def _fields(nodes: list[Any], path: str, describe: bool) -> Any:
    free = max((node.id for node in nodes), default=0) + 1
    waiting: list[Any] = []
    parent = -1
    for node in nodes:
        if waiting and node.id < 0:
            waiting.pop()
            yield _copied(node, id=free, parent_id=parent)
            free += 1
            continue
        if waiting or node.id < 0:
            raise CorruptTable(path, ("the members of a blob column in its schema are not five",))
        if BLOB in node.metadata and node.logical_type == "large_binary" and describe:
            yield _copied(node, logical_type="struct", encoding=ENCODING_NONE)
            for name, kind in DESCRIPTION_V1:
                yield _member(name, kind, free, node.id)
                free += 1
            continue
        if BLOB in node.metadata and node.logical_type == "struct" and not _has_members(nodes, node.id):
            waiting, parent = list(DESCRIPTION), node.id
        yield node
    if waiting:
        raise CorruptTable(path, ("the members of a blob column in its schema are not five",))


def _has_members(nodes: list[Any], parent: int) -> bool:
    return any(node.parent_id == parent for node in nodes)


def _copied(node: Any, **changed: Any) -> Any:
    copy: Any = schema_pb2.Field()
    copy.CopyFrom(node)
    for name, value in changed.items():
        setattr(copy, name, value)
    return copy


def _member(name: str, kind: str, id: int, parent: int) -> Any:
    member: Any = schema_pb2.Field(name=name, id=id, parent_id=parent, logical_type=kind, nullable=True)
    member.kind, member.encoding = _LEAF, ENCODING_PLAIN
    return member
