"""Paimon's data types: as schema files spell them, and as Arrow knows them.

A simple type is a text, ``"DECIMAL(12, 2) NOT NULL"``; a nested one is an object whose ``type`` is ``ARRAY``, ``MAP``,
``MULTISET``, ``VECTOR`` or ``ROW``, again followed by ``NOT NULL``. Fields of a ROW carry ids that never change, so
they are found again after a rename. Timestamps become the coarsest Arrow unit that holds their precision, and
``WITH LOCAL TIME ZONE`` (an instant) becomes UTC, which is how pypaimon maps them too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tablewright.errors import UnsupportedFeature

__all__ = ["DataType", "Field", "decode_field", "decode_type"]

_TEXT = re.compile(r"(?P<root>[A-Z_]+)\s*(\((?P<parameters>[0-9,\s]{0,40})\))?(?P<local> WITH LOCAL TIME ZONE)?")
_SIMPLE: dict[str, pa.DataType] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "BYTES": pa.binary(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "BLOB": pa.large_binary(),
    "DATE": pa.date32(),
    "TIME": pa.time32("ms"),
    "VARIANT": pa.struct(
        [pa.field("value", pa.binary(), nullable=False), pa.field("metadata", pa.binary(), nullable=False)]
    ),
}
_NESTED = ("ARRAY", "MAP", "MULTISET", "VECTOR", "ROW")
_UNREADABLE = ("BLOB", "VARIANT")
_PRECISION_MAX = 38
_LENGTH_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DataType:
    """One type. ``children`` are a ROW's fields, an ARRAY's ``element``, a MAP's ``key`` and ``value``."""

    root: str
    nullable: bool = True
    parameters: tuple[int, ...] = ()
    children: tuple[Field, ...] = ()

    def __str__(self) -> str:
        inner = ", ".join(
            f"{child.name} {child.type}" if self.root == "ROW" else str(child.type) for child in self.children
        )
        text = self.root
        if self.root == "TIMESTAMP_LTZ":
            text = f"TIMESTAMP({self.parameters[0] if self.parameters else 6}) WITH LOCAL TIME ZONE"
        elif self.children:
            text += f"<{inner}>"
        elif self.parameters:
            text += f"({', '.join(map(str, self.parameters))})"
        return text if self.nullable else f"{text} NOT NULL"

    def to_arrow(self) -> pa.DataType:
        """The Arrow type of its values."""
        if self.root in _SIMPLE:
            return _SIMPLE[self.root]
        if self.root == "DECIMAL":
            precision, scale = (*self.parameters, *(10, 0)[len(self.parameters) :])
            return pa.decimal128(precision, scale)
        if self.root in ("TIMESTAMP", "TIMESTAMP_LTZ"):
            precision = self.parameters[0] if self.parameters else 6
            unit = ("s", "ms", "us", "ns")[(precision + 2) // 3]
            return pa.timestamp(unit, "UTC" if self.root == "TIMESTAMP_LTZ" else None)
        if self.root == "ARRAY":
            return pa.list_(self.children[0].to_arrow("item"))
        if self.root == "VECTOR":
            return pa.list_(self.children[0].type.to_arrow(), self.parameters[0])
        if self.root in ("MAP", "MULTISET"):
            key, value = self.children
            return pa.map_(key.to_arrow("key").with_nullable(False), value.to_arrow("value"))
        return pa.struct([child.to_arrow() for child in self.children])

    def check_readable(self, column: str) -> None:
        """Refuse by name what no Parquet column of this release's reader holds."""
        if self.root in _UNREADABLE:
            raise UnsupportedFeature(f"Column {column} is of type {self.root}, which this release does not read.")
        for child in self.children:
            child.type.check_readable(column)

    def walk(self) -> Iterator[DataType]:
        """This type and all within it."""
        yield self
        for child in self.children:
            yield from child.type.walk()


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A named type. ``id`` is -1 for the parts of arrays and maps, which have none."""

    id: int
    name: str
    type: DataType
    description: str | None = None

    def to_arrow(self, name: str | None = None) -> pa.Field:
        """The Arrow field, by default under its own name."""
        metadata = {"description": self.description} if self.description else None
        return pa.field(name or self.name, self.type.to_arrow(), self.type.nullable, metadata)


def decode_field(document: Any, problems: list[str], place: str) -> Field:
    """A field of a schema file or of a ROW."""
    known = document if isinstance(document, dict) else {}
    id, name, description = known.get("id"), known.get("name"), known.get("description")
    if not isinstance(id, int) or isinstance(id, bool) or not isinstance(name, str):
        problems.append(f"{place} has no id or no name: {_short(document)}")
        return Field(id=-1, name="", type=DataType(root="STRING"))
    text = description if isinstance(description, str) else None
    return Field(id=id, name=name, type=decode_type(known.get("type"), problems, f"field {name}"), description=text)


def decode_type(document: Any, problems: list[str], place: str) -> DataType:
    """A type; an invalid one is named in ``problems`` and read as text.

    >>> str(decode_type("timestamp(3) with local time zone not null", [], "field t"))
    'TIMESTAMP(3) WITH LOCAL TIME ZONE NOT NULL'
    >>> decode_type({"type": "ARRAY", "element": "INT NOT NULL"}, [], "field a").to_arrow()
    ListType(list<item: int32 not null>)
    """
    spelled = document.get("type") if isinstance(document, dict) else document
    if not isinstance(spelled, str):
        problems.append(f"{place} has no type: {_short(document)}")
        return DataType(root="STRING")
    text = " ".join(spelled.upper().split())
    nullable = not text.endswith(" NOT NULL")
    text = text.removesuffix(" NOT NULL").removesuffix(" NULL")
    if isinstance(document, dict) and text in _NESTED:
        return _decode_nested(text, nullable, document, problems, place)
    match = _TEXT.fullmatch(text)
    parameters = tuple(int(part) for part in re.findall(r"\d+", match["parameters"] or "")) if match else ()
    root = match["root"] if match else ""
    if match and match["local"]:
        root = "TIMESTAMP_LTZ" if root == "TIMESTAMP" else ""
    if root not in (*_SIMPLE, "DECIMAL", "TIMESTAMP", "TIMESTAMP_LTZ") or not _fits(root, parameters):
        problems.append(f"{place} is of type {spelled!r}, which is not known")
        return DataType(root="STRING")
    return DataType(root=root, nullable=nullable, parameters=parameters)


def _decode_nested(root: str, nullable: bool, document: dict[str, Any], problems: list[str], place: str) -> DataType:
    def part(name: str) -> Field:
        return Field(id=-1, name=name, type=decode_type(document.get(name), problems, f"{place}, its {name}"))

    if root == "ROW":
        fields = document.get("fields")
        if not isinstance(fields, list):
            problems.append(f"{place} is a ROW without a list of fields")
            fields = []
        children = tuple(
            decode_field(each, problems, f"{place}, field {n} of its ROW") for n, each in enumerate(fields)
        )
        return DataType(root=root, nullable=nullable, children=children)
    if root == "MAP":
        return DataType(root=root, nullable=nullable, children=(part("key"), part("value")))
    if root == "MULTISET":
        count = Field(id=-1, name="value", type=DataType(root="INT", nullable=False))
        return DataType(root=root, nullable=nullable, children=(part("element"), count))
    length = document.get("length") if root == "VECTOR" else None
    if root == "VECTOR" and (not isinstance(length, int) or not 1 <= length <= _LENGTH_MAX):
        problems.append(f"{place} is a VECTOR of length {length!r}")
        length = 1
    parameters = () if length is None else (length,)
    return DataType(root=root, nullable=nullable, parameters=parameters, children=(part("element"),))


def _fits(root: str, parameters: tuple[int, ...]) -> bool:
    match root:
        case "DECIMAL":
            precision, scale = (*parameters, *(10, 0)[len(parameters) :])[:2]
            return len(parameters) <= 2 and 1 <= precision <= _PRECISION_MAX and scale <= precision
        case "TIMESTAMP" | "TIMESTAMP_LTZ" | "TIME":
            return len(parameters) <= 1 and all(precision <= 9 for precision in parameters)
        case "CHAR" | "VARCHAR" | "BINARY" | "VARBINARY":
            return len(parameters) <= 1
        case _:
            return not parameters


def _short(document: Any) -> str:
    text = repr(document)
    return text if len(text) <= 60 else f"{text[:57]}..."
