"""The source in the shape of the table: which columns it gives, in the table's order and types.

- Columns may come in any order, and some may be missing: a *partial* source changes the columns it gives. Of a struct
  it may give some members only; the others keep their values. Structs in lists have to be complete where rows are
  updated, since nothing tells which of the old items a new one replaces; new rows have null in missing members.
- Types that widen safely are cast (:mod:`.widening`); all others, and unknown columns, are refused in Lance's words.
- Rows that are inserted need a value, or may be null, in all columns. Where none are inserted a null that may not be in
  the table is looked at when it is about to be written: rows that match nothing, or are deleted, may hold any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeGuard

import pyarrow as pa
import pyarrow.types as at

from tablewright.data.conform import conform
from tablewright.errors import InvalidRequest, SchemaMismatch, UnsupportedFeature
from tablewright.format.blobs import as_rows
from tablewright.format.field import is_blob_v2
from tablewright.format.schema import Schema, schema_differences
from tablewright.operations.merge_insert.clauses import InvalidMerge
from tablewright.operations.merge_insert.keys.key_columns import KeyColumns
from tablewright.operations.merge_insert.source.widening import widens

__all__ = ["FittedSchema", "fit_schema", "fitted_batches", "new_columns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedSchema:
    """What a source gives of a table.

    ``schema`` are the columns, in the table's order and types, structs with the given members only; ``table`` is all of
    the table. ``in_part`` are the columns of which some members are missing.
    """

    table: Schema
    schema: pa.Schema
    in_part: tuple[str, ...] = ()

    @property
    def rows(self) -> Schema:
        """The table's schema in the form for rows that are read and written again."""
        return as_rows(self.table)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are given, in the table's order."""
        return tuple(self.schema.names)

    @property
    def is_full(self) -> bool:
        """Whether nothing is missing."""
        return len(self.columns) == len(self.table.top_level) and not self.in_part

    @property
    def missing(self) -> tuple[str, ...]:
        """The columns that are not given at all."""
        given = frozenset(self.columns)
        return tuple(name for name in self.table.names if name not in given)

    @property
    def kept(self) -> tuple[str, ...]:
        """The columns of which updated rows keep something: those that are missing, or given in part."""
        whole = frozenset(self.columns).difference(self.in_part)
        return tuple(name for name in self.table.names if name not in whole)

    def changed(self, key: KeyColumns) -> tuple[str, ...]:
        """The columns whose values may change where rows match."""
        whole = frozenset(key.whole_columns)
        return tuple(name for name in self.columns if name not in whole)

    def written(self) -> Schema:
        """The part of the table's schema that inserted rows bring: whole columns."""
        return self.rows.project_ids(self.rows.node_ids(self.columns))


def new_columns(table: Schema, incoming: pa.Schema) -> pa.Schema:
    """The columns of the source that the table does not have; they may be null in rows that came before."""
    known = frozenset(table.names)
    return pa.schema([field.with_nullable(True) for field in incoming if field.name not in known])


def fit_schema(
    table: Schema, incoming: pa.Schema, key: KeyColumns, *, inserts: bool, updates: bool = True
) -> FittedSchema:
    """Compare the source's schema with the table's. Whatever does not fit is refused, all of it at once."""
    known = table.to_arrow()
    _check_blobs(table, incoming)
    names, given_names = frozenset(known.names), frozenset(incoming.names)
    lacking = [name for name in key.columns if name not in given_names]
    unknown = [name for name in incoming.names if name not in names]
    if unknown:
        raise SchemaMismatch(
            (
                f"fields did not match, missing=[{', '.join(lacking)}], unexpected=[{', '.join(unknown)}]",
                "give columns of the table only, or let schema_evolution=True add the new ones",
            )
        )
    if lacking:
        raise InvalidMerge(
            f"Invalid user input: Schema error: No field named {lacking[0]}. It is part of the merge's key, and the "
            f"source has the columns: {', '.join(incoming.names)}."
        )
    differences = tuple(text for field in incoming for text in _differences(table, known, field, updates))
    if differences:
        raise SchemaMismatch(differences)
    given = [_given(known.field(name), incoming.field(name)) for name in known.names if name in given_names]
    in_part = tuple(field.name for field in given if _lacks_members(field.type, known.field(field.name).type))
    _check_key_members(pa.schema(given), key)
    if inserts:
        _check_inserts(known, pa.schema(given))
    else:
        given = [_optional(field) for field in given]
    return FittedSchema(table=table, schema=pa.schema(given), in_part=in_part)


def _check_blobs(table: Schema, incoming: pa.Schema) -> None:
    for blob in table.blobs:
        if is_blob_v2(blob) and _gives(incoming, [table.by_id(id).name for id in (*table.ancestors(blob.id), blob.id)]):
            raise UnsupportedFeature(
                f"The source gives the blob column `{table.path(blob.id)}` (lance.blob.v2), and this release does not "
                "write blobs that it did not read from the table. Leave the column out: updated rows keep their blobs, "
                "new ones have null. Or merge with pylance."
            )


def _gives(incoming: pa.Schema, path: list[str]) -> bool:
    """Whether data of a schema have something at a path; what is below a list counts as given with it."""
    if path[0] not in incoming.names:
        return False
    kind = incoming.field(path[0]).type
    for name in path[1:]:
        if not at.is_struct(kind):
            return True
        if kind.get_field_index(name) < 0:
            return False
        kind = kind.field(name).type
    return True


def fitted_batches(fitted: FittedSchema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The source's batches in the table's order and types; a null where none may be is refused."""
    for batch in batches:
        if batch.num_rows:
            yield conform(batch, fitted.schema)


def _differences(table: Schema, known: pa.Schema, field: pa.Field, updates: bool) -> tuple[str, ...]:
    kind = known.field(field.name).type
    if widens(field.type, _given_type(kind, field.type)) and _castable(field.type, _given_type(kind, field.type)):
        lacking = list(_lacking(field.type, kind, field.name, updates))
        if not lacking:
            return ()
        return (
            f"`{field.name}` had mismatched children: fields did not match, missing=[{', '.join(lacking)}], "
            "unexpected=[]: structs in lists need all their members where rows are updated, others at least one",
        )
    own = next(each for each in table.top_level if each.name == field.name)
    found = schema_differences(table.project_ids(table.descendants(own.id)), pa.schema([field]))
    return found or (f"`{field.name}` should have type {kind} but type was {field.type}",)


def _lacking(own: pa.DataType, known: pa.DataType, path: str, updates: bool) -> Iterator[str]:
    """The members that can't be left out: all of a struct at once, and, for updates, those of structs in lists."""
    if at.is_struct(own) and at.is_struct(known):
        if known.num_fields and not own.num_fields:
            yield from (f"{path}.{member.name}" for member in known)
        for member in own:
            yield from _lacking(member.type, known.field(member.name).type, f"{path}.{member.name}", updates)
    elif updates and _is_list(own) and _is_list(known):
        below = f"{path}.{known.value_field.name}"
        if at.is_struct(own.value_type) and at.is_struct(known.value_type):
            names = {member.name for member in own.value_type}
            yield from (f"{below}.{member.name}" for member in known.value_type if member.name not in names)
        yield from _lacking(own.value_type, known.value_type, below, updates)


def _is_list(kind: pa.DataType) -> TypeGuard[pa.ListType | pa.LargeListType | pa.FixedSizeListType]:
    return at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind)


def _optional(field: pa.Field) -> pa.Field:
    """The field, and the members of its structs, with nulls allowed."""
    kind = pa.struct([_optional(member) for member in field.type]) if at.is_struct(field.type) else field.type
    return field.with_type(kind).with_nullable(True)


def _castable(own: pa.DataType, wanted: pa.DataType) -> bool:
    try:
        conform(pa.record_batch([pa.nulls(0, own)], names=["x"]), pa.schema([pa.field("x", wanted)]))
    except InvalidRequest:
        return False
    return True


def _given(known: pa.Field, own: pa.Field) -> pa.Field:
    return known.with_type(_given_type(known.type, own.type))


def _given_type(known: pa.DataType, own: pa.DataType) -> pa.DataType:
    """The table's type, structs with the members that the source has."""
    if not (at.is_struct(known) and at.is_struct(own)):
        return known
    members = [_given(member, own.field(member.name)) for member in known if own.get_field_index(member.name) >= 0]
    return pa.struct(members) if members else known


def _lacks_members(own: pa.DataType, known: pa.DataType) -> bool:
    if not (at.is_struct(own) and at.is_struct(known)):
        return False
    return own.num_fields < known.num_fields or any(
        _lacks_members(member.type, known.field(member.name).type) for member in own
    )


def _check_key_members(given: pa.Schema, key: KeyColumns) -> None:
    for path, name in zip(key.paths, key.names, strict=True):
        kind = given.field(path[0]).type
        for part in path[1:]:
            if not at.is_struct(kind) or kind.get_field_index(part) < 0:
                raise InvalidMerge(f"Invalid user input: Schema error: No field named {name} in the source.")
            kind = kind.field(part).type


def _check_inserts(known: pa.Schema, given: pa.Schema) -> None:
    names = frozenset(given.names)
    missing = [field.name for field in known if field.name not in names and not field.nullable]
    for field in given:
        missing += _missing_members(field.type, known.field(field.name).type, field.name)
    if missing:
        raise InvalidMerge(
            f"Invalid user input: Cannot insert rows with a partial-schema source: target column(s) {missing} are "
            "non-nullable and not provided by the source. Either add them to the source or set when_not_matched to "
            "DoNothing."
        )


def _missing_members(own: pa.DataType, known: pa.DataType, path: str) -> list[str]:
    if not (at.is_struct(own) and at.is_struct(known)):
        return []
    missing = []
    for member in known:
        index = own.get_field_index(member.name)
        if index >= 0:
            missing += _missing_members(own.field(index).type, member.type, f"{path}.{member.name}")
        elif not member.nullable:
            missing.append(f"{path}.{member.name}")
    return missing
