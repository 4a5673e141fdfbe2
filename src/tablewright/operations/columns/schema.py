"""What a table's schema becomes when columns are added. Pure.

New columns go to the end, their nodes numbered depth first from the first id that is not in use. A
struct (or list of structs) that is there already may get new members, as in Lance, from file version 2.2 on.

Everything that no reader could read back is refused here: names that are taken or reserved, types that the table's
data files can't hold.

Format: ``docs/format/schema.md#field-ids``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeGuard

import pyarrow as pa

from tablewright.data.conform import conform
from tablewright.errors import InvalidRequest, SchemaMismatch, WrongType
from tablewright.expressions.casts import lance_name
from tablewright.format.field import TOP_LEVEL, is_blob
from tablewright.format.limits import FIELD_ID_MAX, check_limit
from tablewright.format.logical_types import STRUCT, is_list
from tablewright.format.manifest import Manifest
from tablewright.format.schema import Field, Schema, check_file_version

__all__ = ["AddedColumns", "InvalidColumns", "add_to_schema", "as_column_errors", "check_names", "fit_batch", "rebuilt"]

_VERSIONS_WITHOUT_MEMBERS = ("2.0", "2.1")
_METADATA_OF_FRAMES = b"pandas"


class InvalidColumns(InvalidRequest, OSError):
    """Columns can't be added or changed like this. It is also an OSError, as pylance raises it."""


@contextmanager
def as_column_errors() -> Iterator[None]:
    """Whatever is wrong with a request for columns, as :class:`InvalidColumns`."""
    try:
        yield
    except (InvalidColumns, WrongType):
        raise
    except InvalidRequest as error:
        raise InvalidColumns(str(error)) from error


def fit_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly these columns and types, and no null where none may be."""
    try:
        return conform(batch, schema)
    except SchemaMismatch as error:
        raise InvalidColumns(f"Invalid user input: {'; '.join(error.differences)}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedColumns:
    """The schema afterwards, that part of it which is new, and the fields that got new members."""

    after: Schema
    new: Schema
    grown: tuple[int, ...]


def add_to_schema(manifest: Manifest, incoming: pa.Schema) -> AddedColumns:
    """The schema of a table with the columns of ``incoming`` after its own."""
    if not len(incoming):
        raise InvalidColumns("Invalid user input: there are no columns to add. Name at least one.")
    table, version = manifest.schema, manifest.data_storage_version
    plain = _plain(incoming)
    metadata = {**table.metadata, **Schema.from_arrow(plain).metadata}
    additions: dict[int, list[Field]] = {}
    number = manifest.max_field_id + 1
    for column in plain:
        own = next((field for field in table.top_level if field.name == column.name), None)
        for parent, child in [(TOP_LEVEL, column)] if own is None else list(_members(table, own, column, version)):
            nodes = Schema.from_arrow(pa.schema([child]), number).fields
            nodes = tuple(replace(node, parent_id=parent) if node.parent_id == TOP_LEVEL else node for node in nodes)
            additions.setdefault(parent, []).extend(nodes)
            number += len(nodes)
    check_limit("field id", number - 1, FIELD_ID_MAX)
    after = replace(rebuilt(table, {}, additions), metadata=metadata)
    new = after.project_ids(node.id for nodes in additions.values() for node in nodes)
    check_names(new)
    problems = check_file_version(new, version)
    if problems:
        raise InvalidColumns(f"File version {version} can't store these columns: " + "; ".join(problems))
    return AddedColumns(after=after, new=new, grown=tuple(id for id in additions if id != TOP_LEVEL))


def check_names(schema: Schema) -> None:
    """Refuse names of columns that Lance can't read back."""
    unreadable = [field.name for field in schema.top_level if not field.name or "`" in field.name]
    if unreadable:
        raise InvalidColumns(f"Column names {unreadable} can't be read back by Lance: use names without backticks.")


def rebuilt(
    table: Schema, replaced: Mapping[int, tuple[Field, ...]], additions: Mapping[int, list[Field]] | None = None
) -> Schema:
    """The schema with some subtrees exchanged and some nodes added below others (-1: after the last column)."""
    added = additions or {}

    def below(parent: int) -> Iterator[Field]:
        for node in table.top_level if parent == TOP_LEVEL else table.children(parent):
            if node.id in replaced:
                yield from replaced[node.id]
            else:
                yield node
                yield from below(node.id)
        yield from added.get(parent, ())

    return replace(table, fields=tuple(below(TOP_LEVEL)))


def _plain(incoming: pa.Schema) -> pa.Schema:
    """Without what pandas remembers about a frame of its own."""
    metadata = {key: value for key, value in (incoming.metadata or {}).items() if key != _METADATA_OF_FRAMES}
    return incoming.with_metadata(metadata or None)


def _members(table: Schema, own: Field, given: pa.Field, version: str) -> Iterator[tuple[int, pa.Field]]:
    """The new members that a struct of the table gets, each with the id of its parent."""
    below = table.children(own.id)
    if is_list(own.logical_type) and _is_list(given.type):
        yield from _members(table, below[0], given.type.value_field, version)
        return
    if own.logical_type != STRUCT or is_blob(own) or not pa.types.is_struct(given.type):
        raise _taken(own.name, table.arrow_field(own.id).type, given.type)
    if version in _VERSIONS_WITHOUT_MEMBERS:
        raise InvalidColumns(
            f"Invalid user input: Column {own.name} is a struct col, add sub column is not supported in Lance file "
            f"version {version}."
        )
    for member in given.type:
        known_member = next((field for field in below if field.name == member.name), None)
        if known_member is None:
            yield own.id, member
        else:
            yield from _members(table, known_member, member, version)


def _taken(name: str, known: pa.DataType, given: pa.DataType) -> InvalidColumns:
    text = f"Invalid user input: Column {name} already exists in the dataset"
    if known != given:
        text += f": Type conflicts between {name}({lance_name(known)}) and {name}({lance_name(given)})"
    return InvalidColumns(f"{text}. Choose another name, or drop the column first.")


def _is_list(kind: pa.DataType) -> TypeGuard[pa.ListType | pa.LargeListType]:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)
