"""Arrow types and the strings that name them in a manifest.

A schema node stores its type as a string. A *leaf* string says everything: ``decimal:128:10:2``, and also
``fixed_size_list:float:128``, because a fixed-size list of fixed-size values is one column. A *nested* string
(``struct``, ``list``, ``map``…) says only which kind of node it is; the children are nodes of their own, and
``arrow_schema.py`` puts them together. Both directions are here:

1. :func:`logical_type_of` names an Arrow type, or refuses it with :class:`InvalidRequest`. View types are named as
   the plain types that they are stored as.
2. :func:`arrow_type_of` reads the name of a leaf, or raises :class:`UnsupportedFeature`: only a newer release can
   have written a name that we do not know.

Deliberate differences from Lance: a timestamp whose zone is ``-`` is refused, because its name reads back without a
zone.

Format: ``docs/format/schema.md#logical-types``.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as at

from tablewright.errors import InvalidRequest, UnsupportedFeature

__all__ = [
    "BFLOAT16",
    "arrow_type_of",
    "default_encoding",
    "fixed_list_of_structs",
    "is_list",
    "logical_type_of",
]

BFLOAT16 = "lance.bfloat16"
JSON = "json"
STRUCT, MAP = "struct", "map"
LISTS = frozenset({"list", "list.struct", "large_list", "large_list.struct"})


ENCODING_NONE, ENCODING_PLAIN, ENCODING_VAR_BINARY, ENCODING_DICTIONARY = 0, 1, 2, 3

_UNITS = ("s", "ms", "us", "ns")
_FIXED_LIST = "fixed_size_list:"
_FIXED_LIST_DEPTH_MAX = 16

_ARROW_BY_NAME: dict[str, pa.DataType] = {
    "null": pa.null(),
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "halffloat": pa.float16(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "date32:day": pa.date32(),
    "date64:ms": pa.date64(),
    "time32:s": pa.time32("s"),
    "time32:ms": pa.time32("ms"),
    "time64:us": pa.time64("us"),
    "time64:ns": pa.time64("ns"),
    **{f"duration:{unit}": pa.duration(unit) for unit in _UNITS},
}
_NAME_BY_ARROW = {arrow: name for name, arrow in _ARROW_BY_NAME.items()}
_STORED_AS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
_INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_VARIABLE = frozenset({"string", "large_string", "binary", "large_binary", JSON})


def is_list(logical_type: str) -> bool:
    """Whether a node of this type is a list or large list, and so has exactly one child."""
    return logical_type in LISTS


def fixed_list_of_structs(logical_type: str) -> int | None:
    """The size of a ``fixed_size_list:struct:n``, the one fixed-size list with a child node; else ``None``."""
    prefix, _, size = logical_type.rpartition(":")
    return int(size) if prefix == "fixed_size_list:struct" and size.isdecimal() and len(size) < 10 else None


def default_encoding(logical_type: str) -> int:
    """What Lance writes in ``Field.encoding`` for this type. Readers of files from 2.0 on ignore it."""
    if logical_type in ("null", STRUCT):
        return ENCODING_NONE
    if logical_type in _VARIABLE:
        return ENCODING_VAR_BINARY
    return ENCODING_DICTIONARY if logical_type.startswith("dict:") else ENCODING_PLAIN


# ------------------------------------------------------------------------------------------------ Arrow to name
def logical_type_of(arrow: pa.DataType, column: str) -> str:
    """The name of an Arrow storage type (no extension type); ``column`` is what an error calls it.

    >>> logical_type_of(pa.timestamp("us", "UTC"), "at"), logical_type_of(pa.list_(pa.float32(), 3), "vector")
    ('timestamp:us:UTC', 'fixed_size_list:float:3')
    """
    arrow = _STORED_AS.get(arrow, arrow)
    name = _NAME_BY_ARROW.get(arrow)
    if name is not None:
        return name
    if at.is_fixed_size_list(arrow):
        return _fixed_list_name(arrow, column)
    if at.is_dictionary(arrow):
        return _dictionary_name(arrow, column)
    name = _parametrised_name(arrow, column) or _nested_name(arrow)
    if name is None:
        raise _unsupported(arrow, column)
    return name


def _parametrised_name(arrow: pa.DataType, column: str) -> str | None:
    if at.is_timestamp(arrow):
        if arrow.tz == "-":
            raise InvalidRequest(f"Column `{column}`: a timestamp can't have the time zone '-'. Name a zone, or none.")
        return f"timestamp:{arrow.unit}:{arrow.tz or '-'}"
    if at.is_decimal128(arrow):
        return f"decimal:128:{arrow.precision}:{arrow.scale}"
    if at.is_decimal256(arrow):
        return f"decimal:256:{arrow.precision}:{arrow.scale}"
    return f"fixed_size_binary:{arrow.byte_width}" if at.is_fixed_size_binary(arrow) else None


def _nested_name(arrow: pa.DataType) -> str | None:
    if at.is_struct(arrow):
        return STRUCT
    if at.is_list(arrow) or at.is_large_list(arrow):
        name = "large_list" if at.is_large_list(arrow) else "list"
        item = arrow.value_type
        storage = item.storage_type if isinstance(item, pa.BaseExtensionType) else item
        return f"{name}.struct" if at.is_struct(storage) else name
    return MAP if at.is_map(arrow) else None


def _fixed_list_name(arrow: pa.FixedSizeListType, column: str) -> str:
    if arrow.list_size < 1:
        raise InvalidRequest(f"Column `{column}`: a fixed-size list needs a positive dimension, not {arrow.list_size}.")
    item = arrow.value_field
    inner = item.type
    extension = (item.metadata or {}).get(b"ARROW:extension:name", b"").decode(errors="replace")
    if isinstance(inner, pa.BaseExtensionType):
        extension, inner = inner.extension_name, inner.storage_type
    if extension == BFLOAT16 and inner == pa.binary(2):
        return f"{_FIXED_LIST}{BFLOAT16}:{arrow.list_size}"
    if extension:
        raise InvalidRequest(
            f"Column `{column}`: a fixed-size list can't hold values of the extension type {extension}. "
            f"Store them as {inner}, or use a list of variable size."
        )
    if at.is_list(inner) or at.is_large_list(inner) or at.is_map(inner) or _struct_below(inner):
        raise _unsupported(arrow, column)
    return f"{_FIXED_LIST}{logical_type_of(inner, column)}:{arrow.list_size}"


def _struct_below(inner: pa.DataType) -> bool:
    """Whether a fixed-size list of fixed-size lists ends in structs, which no name can say."""
    levels = 0
    while at.is_fixed_size_list(inner):
        inner, levels = inner.value_type, levels + 1
    return (levels > 0 and at.is_struct(inner)) or levels >= _FIXED_LIST_DEPTH_MAX


def _dictionary_name(arrow: pa.DictionaryType, column: str) -> str:
    value = _STORED_AS.get(arrow.value_type, arrow.value_type)
    name = _NAME_BY_ARROW.get(value, ":")
    if ":" in name:  # the parts of a dictionary's name are split at colons, so its parts may not have any
        raise _unsupported(arrow, column)
    return f"dict:{name}:{_NAME_BY_ARROW[arrow.index_type]}:false"


def _unsupported(arrow: pa.DataType, column: str) -> InvalidRequest:
    hint = "Cast the column to a type that Lance stores"
    if at.is_decimal(arrow):
        hint += f", for example decimal128({arrow.precision}, {arrow.scale})"
    elif at.is_dictionary(arrow):
        hint += f", for example {arrow.value_type}"
    return InvalidRequest(f"Unsupported data type: column `{column}` has type {arrow}. {hint}.")


# ------------------------------------------------------------------------------------------------ name to Arrow
def arrow_type_of(logical_type: str, column: str) -> pa.DataType:
    """The Arrow type of a leaf's name. ``json`` gives its text, with the extension type left to the caller.

    >>> arrow_type_of("dict:string:int8:false", "kind")
    DictionaryType(dictionary<values=string, indices=int8, ordered=0>)
    """
    try:
        arrow = _leaf(logical_type)
    except (ValueError, OverflowError, TypeError, pa.ArrowException):  # parts that are no numbers, or out of range
        arrow = None
    if arrow is None:
        raise UnsupportedFeature(
            f"Column `{column}` has the logical type '{logical_type}', which this release does not know. "
            "Upgrade Tablewright to read it."
        )
    return arrow


def _leaf(name: str) -> pa.DataType | None:
    sizes: list[int] = []
    while name.startswith(_FIXED_LIST) and len(sizes) <= _FIXED_LIST_DEPTH_MAX:
        name, _, size = name.removeprefix(_FIXED_LIST).rpartition(":")
        sizes.append(int(size))
    if not sizes:
        return _scalar(name)
    item: pa.Field | pa.DataType | None = _bfloat16_item() if name == BFLOAT16 else _scalar(name)
    if item is None or min(sizes) < 1:
        return None
    arrow = pa.list_(item, sizes.pop())
    while sizes:
        arrow = pa.list_(arrow, sizes.pop())
    return arrow


def _bfloat16_item() -> pa.Field:
    metadata = {"ARROW:extension:name": BFLOAT16, "ARROW:extension:metadata": ""}
    return pa.field("item", pa.binary(2), metadata=metadata)


def _scalar(name: str) -> pa.DataType | None:
    known = _ARROW_BY_NAME.get(name)
    if known is not None:
        return known
    match name.split(":"):
        case ["json"]:
            return pa.string()
        case ["timestamp", unit, *zone] if unit in _UNITS and zone:
            return pa.timestamp(unit, None if zone == ["-"] else ":".join(zone))
        case ["decimal", "128", precision, scale]:
            return pa.decimal128(int(precision), int(scale))
        case ["decimal", "256", precision, scale]:
            return pa.decimal256(int(precision), int(scale))
        case ["fixed_size_binary", size] if int(size) >= 0:
            return pa.binary(int(size))
        case ["dict", value, index, _] if value in _ARROW_BY_NAME and index in _INTEGERS:
            return pa.dictionary(_ARROW_BY_NAME[index], _ARROW_BY_NAME[value])
    return None
