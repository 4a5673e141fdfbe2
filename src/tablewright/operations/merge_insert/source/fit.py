"""The source in the shape of the table: which columns it gives, in the table's order and types.

- Columns may come in any order, and some may be missing: a *partial* source changes the columns it gives. Of a struct
  it may give some members only; the others keep their values. Structs in lists have to be complete where rows are
  updated, since nothing tells which of the old items a new one replaces; new rows have null in missing members.
- Types that fit (:mod:`tablewright.data.fit_types`) are cast; others, and unknown columns, are refused in Lance's
  words.
- Rows that are inserted need a value, or may be null, in all columns. Where none are inserted a null that may not be in
  the table is looked at when it is about to be written: rows that match nothing, or are deleted, may hold any.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as at

from tablewright.data.conform import conform
from tablewright.data.fit_types import fits, is_any_list, refusal
from tablewright.errors import SchemaMismatch, UnsupportedFeature
from tablewright.format.blobs import as_rows
from tablewright.format.field import is_blob_v2
from tablewright.format.schema import Schema
from tablewright.operations.merge_insert.clauses import InvalidMerge
from tablewright.operations.merge_insert.keys.key_columns import KeyColumns

__all__ = [
    "FittedSchema",
    "check_insertable",
    "fit_read_columns",
    "fit_schema",
    "fitted_batches",
    "new_columns",
    "types_once_fitted",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedSchema:
    """What a source gives of a table.

    ``schema`` are the columns, in the table's order and types, structs with the given members only; ``table`` is all of
    the table. ``in_part`` are the columns of which some members are missing. ``only_read`` are columns after the
    others, in their own types, that expressions read and that no row gets as they are. ``reads_some``: the source may
    have more columns, which nobody asks for.
    """

    table: Schema
    schema: pa.Schema
    in_part: tuple[str, ...] = ()
    only_read: tuple[str, ...] = ()
    reads_some: bool = False

    @property
    def rows(self) -> Schema:
        """The table's schema in the form for rows that are read and written again."""
        return as_rows(self.table)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that are given, in the table's order."""
        return tuple(self.schema.names[: len(self.schema) - len(self.only_read)])

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


def fit_read_columns(
    table: Schema, incoming: pa.Schema, key: KeyColumns, read: Iterable[str], *, takes_all: bool, updates: bool
) -> FittedSchema:
    """The source of clauses with expressions: its key, the columns that they ``read``, and no others.

    ``takes_all``: some clause takes rows as they are. Then columns of the table have to fit it, and what is neither of
    the table nor read is refused. Nulls are looked at when rows are written.
    """
    known, read = frozenset(table.names), frozenset(read)
    fits = known if takes_all else frozenset(key.columns)
    given = [field for field in incoming if field.name in fits or (takes_all and field.name not in read)]
    fitted = fit_schema(table, pa.schema(given), key, inserts=False, updates=updates)
    taken = frozenset(fitted.schema.names)
    extra = [field.with_nullable(True) for field in incoming if field.name in read and field.name not in taken]
    return FittedSchema(
        table=table,
        schema=pa.schema([*fitted.schema, *extra]),
        in_part=fitted.in_part,
        only_read=tuple(field.name for field in extra),
        reads_some=True,
    )


def types_once_fitted(table: Schema, incoming: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """The source's columns in the types that they are kept in, if those with these names are fitted to the table."""
    known, fits = table.to_arrow(), frozenset(names)
    return pa.schema([_once_fitted(known, field) if field.name in fits else field for field in incoming])


def _once_fitted(known: pa.Schema, own: pa.Field) -> pa.Field:
    if own.name not in known.names:
        return own
    kind = _given_type(known.field(own.name).type, own.type)
    return own.with_type(kind) if fits(own.type, kind) else own


def check_insertable(table: Schema, given: Iterable[str]) -> None:
    """Refuse new rows with values in these columns only, if others may not be null."""
    names = frozenset(given)
    missing = [field.name for field in table.to_arrow() if field.name not in names and not field.nullable]
    if missing:
        raise InvalidMerge(
            f"Invalid user input: Cannot insert rows without values for the column(s) {missing}, which are "
            "non-nullable: give them values in every insert clause."
        )


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
    names = fitted.schema.names
    for batch in batches:
        if batch.num_rows:
            given = batch if not fitted.reads_some else batch.select(names)
            yield conform(given, fitted.schema)


def _differences(table: Schema, known: pa.Schema, field: pa.Field, updates: bool) -> tuple[str, ...]:
    kind = known.field(field.name).type
    if fits(field.type, _given_type(kind, field.type)):
        lacking = list(_lacking(field.type, kind, field.name, updates))
        if not lacking:
            return ()
        return (
            f"`{field.name}` had mismatched children: fields did not match, missing=[{', '.join(lacking)}], "
            "unexpected=[]: structs in lists need all their members where rows are updated, others at least one",
        )
    own = next(each for each in table.top_level if each.name == field.name)
    mismatch = refusal(table.project_ids(table.descendants(own.id)), pa.schema([field]))
    words = f"`{field.name}` should have type {kind} but type was {field.type}"
    return (words,) if mismatch is None else mismatch.differences


def _lacking(own: pa.DataType, known: pa.DataType, path: str, updates: bool) -> Iterator[str]:
    """The members that can't be left out: all of a struct at once, and, for updates, those of structs in lists."""
    if at.is_struct(own) and at.is_struct(known):
        if known.num_fields and not own.num_fields:
            yield from (f"{path}.{member.name}" for member in known)
        for member in own:
            yield from _lacking(member.type, known.field(member.name).type, f"{path}.{member.name}", updates)
    elif updates and is_any_list(own) and is_any_list(known):
        below = f"{path}.{known.value_field.name}"
        if at.is_struct(own.value_type) and at.is_struct(known.value_type):
            names = {member.name for member in own.value_type}
            yield from (f"{below}.{member.name}" for member in known.value_type if member.name not in names)
        yield from _lacking(own.value_type, known.value_type, below, updates)


def _optional(field: pa.Field) -> pa.Field:
    """The field, and the members of its structs, with nulls allowed."""
    kind = pa.struct([_optional(member) for member in field.type]) if at.is_struct(field.type) else field.type
    return field.with_type(kind).with_nullable(True)


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
