"""A data file's own schema: the first of its global buffers.

A blob column of the second kind (``lance.blob.v2``) is one physical column, a packed struct of five members. The file's
schema stores these members with the id -1 and the parent -1, right after the blob itself, so a reader that follows the
parents sees an empty struct and five more columns, and counts the columns after them wrongly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tablewright.format.field_path import format_path
from tablewright.format.proto import schema_pb2
from tablewright.format.wire import decode_message

__all__ = ["blob_v2_columns"]

BLOB = "lance-encoding:blob"
_BLOB_BYTES = BLOB.encode()


def blob_v2_columns(descriptor: bytes, path: str) -> tuple[str, ...]:
    """The dotted names of a data file's blob columns of the second kind. Costs one search in a file without any."""
    if _BLOB_BYTES not in descriptor:
        return ()
    message: Any = decode_message(schema_pb2.FileDescriptor, descriptor, path, "the file's schema")
    fields = list(message.schema.fields)
    by_id = {field.id: field for field in fields if field.id >= 0}
    return tuple(format_path(_path(by_id, field)) for field in fields if is_blob_v2_node(field))


def is_blob_v2_node(field: Any) -> bool:
    """Whether a node of a data file's schema is a blob of the second kind."""
    return field.logical_type == "struct" and BLOB in field.metadata


def _path(by_id: dict[int, Any], field: Any) -> Iterator[str]:
    above = by_id.get(field.parent_id)
    if above is not None and above is not field:
        yield from _path(by_id, above)
    yield field.name
