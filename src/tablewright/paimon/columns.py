"""From the columns of a data file to those of the table: schemas change, files stay.

A data file holds the columns of the schema that it was written with. Fields are matched by id, so a renamed one is
found under its old name; one that came later is null; a dropped one is not read. A type that was widened is cast. What
would need more than widening, or a change within arrays and maps, is refused by name. Inside of structs the same holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tablewright.errors import UnsupportedFeature
from tablewright.paimon.format.manifest import DataFile
from tablewright.paimon.format.schema import TableSchema
from tablewright.paimon.format.types import DataType, Field

__all__ = ["Source", "match_columns"]

_WHOLE = ("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT")
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "INTEGER": 10, "BIGINT": 19}
_TEXTS = ("CHAR", "VARCHAR", "STRING")
_BINARIES = ("BINARY", "VARBINARY", "BYTES")
_WIDER = {
    "TINYINT": ("SMALLINT", "INT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"),
    "SMALLINT": ("INT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"),
    "INT": ("INTEGER", "BIGINT", "DOUBLE"),
    "INTEGER": ("INT", "BIGINT", "DOUBLE"),
    "FLOAT": ("DOUBLE",),
    "DATE": ("TIMESTAMP",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """How one column of the table comes out of a data file: ``name`` there, or ``None`` where the file lacks it."""

    field: Field
    name: str | None
    type: DataType

    def values(self, stored: pa.Array | None, rows: int) -> pa.Array:
        """The column, out of what the file holds (``None`` if nothing)."""
        wanted = self.field.type.to_arrow()
        if stored is None:
            return pa.nulls(rows, wanted)
        return _adapt(stored, self.type, self.field.type)


def match_columns(table: TableSchema, written: TableSchema, file: DataFile, names: Sequence[str]) -> tuple[Source, ...]:
    """Where the named columns of a table come from in one of its data files."""
    stored = {field.id: field for field in written.fields if file.write_cols is None or field.name in file.write_cols}
    sources = []
    for name in names:
        field = table.field(name)
        field.type.check_readable(name)
        there = stored.get(field.id)
        if there is not None:
            _check_widens(there.type, field.type, name, written.id)
        sources.append(
            Source(
                field=field,
                name=None if there is None else there.name,
                type=field.type if there is None else there.type,
            )
        )
    return tuple(sources)


def _adapt(array: pa.Array, stored: DataType, wanted: DataType) -> pa.Array:
    target = wanted.to_arrow()
    if wanted.root != "ROW" or _same_fields(stored, wanted):
        return array if array.type == target else array.cast(target)
    assert isinstance(array, pa.StructArray), "a ROW is read as a struct"
    members = array.flatten()
    places = {child.id: index for index, child in enumerate(stored.children)}
    parts = [
        _adapt(members[places[child.id]], stored.children[places[child.id]].type, child.type)
        if child.id in places
        else pa.nulls(len(array), child.type.to_arrow())
        for child in wanted.children
    ]
    fields = [child.to_arrow() for child in wanted.children]
    return pa.StructArray.from_arrays(parts, fields=fields, mask=pc.is_null(array))


def _same_fields(stored: DataType, wanted: DataType) -> bool:
    """Whether two types have the same fields by id and name, on all levels."""
    if len(stored.children) != len(wanted.children):
        return False
    return all(
        one.id == other.id and one.name == other.name and _same_fields(one.type, other.type)
        for one, other in zip(stored.children, wanted.children, strict=True)
    )


def _check_widens(stored: DataType, wanted: DataType, column: str, schema_id: int) -> None:
    if stored.root == wanted.root == "ROW":
        there = {child.id: child for child in stored.children}
        for child in wanted.children:
            if child.id in there:
                _check_widens(there[child.id].type, child.type, f"{column}.{child.name}", schema_id)
        return
    if not (_same_nested(stored, wanted) if stored.children or wanted.children else _widens(stored, wanted)):
        raise UnsupportedFeature(
            f"Column {column} is {wanted} and was {stored} in schema {schema_id}, which data files still have: this "
            "release casts to wider types only."
        )


def _same_nested(stored: DataType, wanted: DataType) -> bool:
    """Whether an array or a map is still what it was, nullability aside."""
    if (stored.root, stored.parameters) != (wanted.root, wanted.parameters) or not _same_fields(stored, wanted):
        return False
    pairs = zip(stored.children, wanted.children, strict=True)
    return all(
        _same_nested(one.type, other.type) if one.type.children else one.type.to_arrow() == other.type.to_arrow()
        for one, other in pairs
    )


def _widens(stored: DataType, wanted: DataType) -> bool:
    one, other = stored.root, wanted.root
    if one == other and stored.parameters == wanted.parameters:
        return True
    if other == "DECIMAL":
        whole, scale = _digits(wanted)
        if one in _WHOLE:
            return whole >= _DIGITS[one]
        return one == "DECIMAL" and whole >= _digits(stored)[0] and scale >= _digits(stored)[1]
    for family, endless in ((_TEXTS, "STRING"), (_BINARIES, "BYTES")):
        if one in family:
            return other in family and (other == endless or (_length(wanted) >= _length(stored) and one != endless))
    if one == other:
        return one in _WHOLE or _precision(wanted) >= _precision(stored)
    return other in _WIDER.get(one, ())


def _digits(type: DataType) -> tuple[int, int]:
    precision, scale = (*type.parameters, *(10, 0)[len(type.parameters) :])
    return precision - scale, scale


def _length(type: DataType) -> int:
    return type.parameters[0] if type.parameters else 1


def _precision(type: DataType) -> int:
    return type.parameters[0] if type.parameters else 6
