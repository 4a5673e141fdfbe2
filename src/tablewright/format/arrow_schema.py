"""An Arrow schema becomes schema nodes with ids, and nodes become Arrow fields.

*From Arrow.* Depth first, parent before child, every node takes the next id: struct and members, list and item, map,
its ``entries``, key and value. A fixed-size list of fixed-size values is one node. Extension types turn into metadata;
Arrow's JSON becomes the logical type ``json``, marked ``lance.json``. What no table could hold is refused, with the
dotted name of the column.

*To Arrow.* Leaves parse their name, nested nodes put their children together. The result equals what Lance shows:
dictionaries unordered, items of fixed-size lists called ``item`` and nullable, ``json`` as Arrow's JSON.

Format: ``docs/format/schema.md#field-ids``, ``docs/format/schema.md#logical-types``.

Tests: ``tests/unit/format/test_schema.py``, ``tests/property/test_schema_codecs.py``,
``tests/differential/format/test_schema.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeGuard

import pyarrow as pa
import pyarrow.types as at

from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.format.arrow_extensions import metadata_of, with_extension_types
from tablewright.format.field import EXTENSION_NAME, TOP_LEVEL, Children, Field
from tablewright.format.logical_types import (
    JSON,
    MAP,
    STRUCT,
    arrow_type_of,
    default_encoding,
    fixed_list_of_structs,
    is_list,
    logical_type_of,
)

__all__ = ["arrow_schema_of", "checked_metadata", "fields_of_arrow"]

_ARROW_JSON, _LANCE_JSON = b"arrow.json", b"lance.json"
_JSON_STORAGE = {
    _ARROW_JSON: (pa.string(), pa.large_string(), pa.string_view()),
    _LANCE_JSON: (pa.large_binary(),),
}
_DEPTH_MAX = 64


# --------------------------------------------------------------------------------------------------- from Arrow
def fields_of_arrow(schema: pa.Schema, first_id: int) -> tuple[Field, ...]:
    """All nodes of ``schema``, depth first, with ids from ``first_id`` on."""
    _check_names(schema.names, "")
    for name in schema.names:
        if "." in name:
            raise InvalidRequest(
                f"Top level field {name} cannot contain `.`. Maybe you meant to create a struct field? "
                "Rename the column, or make it a struct."
            )
    nodes: list[Field] = []
    for column in schema:
        nodes.extend(_nodes(column, column.name, TOP_LEVEL, first_id + len(nodes), 1))
    _check_primary_key(nodes)
    return tuple(nodes)


def checked_metadata(metadata: Mapping[bytes, bytes] | None, where: str) -> dict[str, bytes]:
    """Arrow metadata with its keys as text. Lance stores text only, so both sides have to be UTF-8."""
    checked = {}
    for key, value in (metadata or {}).items():
        try:
            value.decode()
            checked[key.decode()] = bytes(value)
        except UnicodeDecodeError as error:
            raise InvalidRequest(
                f"{where}: Metadata key {key!r} is not valid utf8. Consider base64 encode for generic binary metadata."
            ) from error
    return checked


def _nodes(field: pa.Field, path: str, parent_id: int, own_id: int, depth: int) -> list[Field]:
    if depth > _DEPTH_MAX:
        raise InvalidRequest(f"Column `{path[:200]}…` is nested deeper than {_DEPTH_MAX} levels.")
    metadata = checked_metadata(metadata_of(field), f"Column `{path}`")
    storage = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    if storage in _JSON_STORAGE.get(metadata.get(EXTENSION_NAME, b""), ()):
        logical_type = JSON
        metadata[EXTENSION_NAME] = _LANCE_JSON
    else:
        logical_type = logical_type_of(storage, path)
    node = Field(
        id=own_id,
        parent_id=parent_id,
        name=field.name,
        logical_type=logical_type,
        nullable=field.nullable,
        encoding=default_encoding(logical_type),
    )
    nodes = [node.with_metadata(metadata)]
    for child in _arrow_children(storage, path):
        nodes.extend(_nodes(child, f"{path}.{child.name}", own_id, own_id + len(nodes), depth + 1))
    return nodes


def _arrow_children(storage: pa.DataType, path: str) -> Iterator[pa.Field]:
    if at.is_struct(storage):
        _check_names([member.name for member in storage], path)
        yield from storage
    elif at.is_map(storage):
        if storage.keys_sorted:
            raise InvalidRequest(
                f"Unsupported map field with keys_sorted=true: column `{path}`. Cast it to a plain map."
            )
        yield pa.field("entries", pa.struct([storage.key_field, storage.item_field]), nullable=False)
    elif at.is_list(storage) or at.is_large_list(storage) or _is_fixed_list_of_structs(storage):
        yield storage.value_field


def _is_fixed_list_of_structs(storage: pa.DataType) -> TypeGuard[pa.FixedSizeListType]:
    return at.is_fixed_size_list(storage) and at.is_struct(storage.value_type)


def _check_names(names: list[str], path: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        where = f"struct `{path}`" if path else "schema"
        raise InvalidRequest(f'Duplicate field name "{twice[0]}" in {where}. Rename one of the columns.')


def _check_primary_key(nodes: list[Field]) -> None:
    by_id = {node.id: node for node in nodes}
    for node in nodes:
        if not node.unenforced_primary_key:
            continue
        line = [node]
        while line[-1].parent_id in by_id:
            line.append(by_id[line[-1].parent_id])
        if any(above.logical_type != STRUCT for above in line[1:]):
            raise InvalidRequest(f"Primary key column must not be in a list type: `{node.name}`.")
        if any(above.nullable for above in line):
            raise InvalidRequest(f"Primary key column and all its ancestors must not be nullable: `{node.name}`.")


# ----------------------------------------------------------------------------------------------------- to Arrow
def arrow_schema_of(columns: tuple[Field, ...], children: Children, metadata: Mapping[str, bytes]) -> pa.Schema:
    """The Arrow schema of some columns (or nodes), with extension types where pyarrow knows them."""
    plain = pa.schema([_arrow_field(node, node.name, children) for node in columns], metadata=dict(metadata) or None)
    return with_extension_types(plain)


def _arrow_field(node: Field, path: str, children: Children) -> pa.Field:
    metadata = node.arrow_metadata
    if node.logical_type == JSON:
        metadata[EXTENSION_NAME] = _ARROW_JSON
    nullable = node.nullable or node.logical_type == "null"  # pyarrow knows no null column without nulls
    return pa.field(node.name, _arrow_type(node, path, children), nullable, metadata or None)


def _arrow_type(node: Field, path: str, children: Children) -> pa.DataType:
    below = [_arrow_field(child, f"{path}.{child.name}", children) for child in children.get(node.id, ())]
    size = fixed_list_of_structs(node.logical_type)
    try:
        if node.logical_type == STRUCT:
            return pa.struct(below)
        if node.logical_type == MAP:
            entries = below[0].type
            if not at.is_struct(entries):
                raise TypeError(f"its entries are of type {entries}")
            key, value = entries
            return pa.map_(key.with_name("key"), value.with_name("value"))
        if is_list(node.logical_type):
            return pa.large_list(below[0]) if node.logical_type.startswith("large") else pa.list_(below[0])
        if size is not None:
            return pa.list_(below[0], size)
    except (TypeError, ValueError, IndexError, pa.ArrowException) as error:  # a map whose key may be null…
        raise UnsupportedFeature(
            f"Column `{path}` of type {node.logical_type} can't be read as Arrow: {error}."
        ) from error
    return arrow_type_of(node.logical_type, path)
