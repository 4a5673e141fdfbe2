"""Arrow extension types as field metadata and back.

In a manifest an extension type is its storage type plus two entries of field metadata. pyarrow hides both entries
behind a type object and offers no general way to ask for them. The Arrow C data interface does: a field exported
through it carries exactly these entries, and a schema imported through it gets its registered types back. Both
directions go that way, so every extension type works that pyarrow knows at the time, ours or not.
"""

from __future__ import annotations

import ctypes
from typing import Any

import pyarrow as pa

__all__ = ["metadata_of", "with_extension_types"]


class _CSchema(ctypes.Structure):
    """The head of ``struct ArrowSchema``; the rest of it is of no interest here."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


def metadata_of(field: pa.Field) -> dict[bytes, bytes]:
    """The field's metadata with the two entries of its extension type, if it has one.

    >>> metadata_of(pa.field("key", pa.uuid()))
    {b'ARROW:extension:name': b'arrow.uuid', b'ARROW:extension:metadata': b''}
    """
    if not isinstance(field.type, pa.BaseExtensionType):
        return dict(field.metadata or {})
    capsule = field.__arrow_c_schema__()  # owns the memory that is read below
    exported = _CSchema.from_address(_pointer_of(capsule, b"arrow_schema"))
    return _pairs(exported.metadata)


def _pairs(address: int | None) -> dict[bytes, bytes]:
    """Read ``count, (length, key, length, value)*``: native 32-bit integers, each followed by that many bytes."""
    if not address:
        return {}
    at = address

    def number() -> int:
        nonlocal at
        at += 4
        return ctypes.c_int32.from_address(at - 4).value

    def text() -> bytes:
        nonlocal at
        length = number()
        at += length
        return ctypes.string_at(at - length, length)

    return {text(): text() for _ in range(number())}


class _Exported:
    """Hides that a schema is pyarrow's own, so that pyarrow imports it and looks up its extension types."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def __arrow_c_schema__(self) -> Any:
        return self._schema.__arrow_c_schema__()


def with_extension_types(schema: pa.Schema) -> pa.Schema:
    """The schema with metadata entries turned into extension types where pyarrow knows the type.

    A column whose entries make no sense to its type keeps them as plain metadata: its values can still be read.
    """
    try:
        return pa.schema(_Exported(schema))
    except Exception:  # an extension type of a user may raise anything
        if len(schema) == 1:
            return schema
    columns = [with_extension_types(pa.schema([column])).field(0) for column in schema]
    return pa.schema(columns, metadata=schema.metadata)
