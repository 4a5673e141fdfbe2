"""Which columns make the key: names as people write them, paths into structs, or the declared primary key.

Tests: ``tests/unit/operations/merge_insert/source/test_fit.py``, ``tests/unit/api/test_merge_insert_calls.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from tablewright.errors import InvalidRequest, WrongType
from tablewright.expressions.scope import Scope
from tablewright.format.field import Field
from tablewright.format.field_path import format_path, parse_path
from tablewright.format.schema import Schema
from tablewright.reading.projection import Path

__all__ = ["KeyColumns", "find_key", "plain"]

_VALUES_SHOWN_MAX = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumns:
    """The key of a merge: paths of real names, and the fields' ids."""

    paths: tuple[Path, ...]
    ids: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The dotted names."""
        return tuple(format_path(path) for path in self.paths)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that hold the key."""
        return tuple(dict.fromkeys(path[0] for path in self.paths))

    @property
    def whole_columns(self) -> frozenset[str]:
        """Columns that are a key and nothing else: where rows match, their values are the same on both sides."""
        return frozenset(path[0] for path in self.paths if len(path) == 1)

    def of(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """The key's columns out of a batch; below a null struct all is null."""
        return [plain(_at(batch, path)) for path in self.paths]

    def described(self, batch: pa.RecordBatch) -> str:
        """The key of a batch's first row, for messages: ``id = 1, s = "x"``."""
        values = [array[0].as_py() for array in self.of(batch)]
        return ", ".join(f"{name} = {_shown(value)}" for name, value in zip(self.names, values, strict=True))


def _at(batch: pa.RecordBatch, path: Path) -> pa.Array:
    column = batch.column(path[0])
    return column if len(path) == 1 else pc.struct_field(column, list(path[1:]))


def plain(array: pa.Array) -> pa.Array:
    """Values without what only wraps them: extension types and dictionaries."""
    if isinstance(array, pa.ExtensionArray):
        return plain(array.storage)
    return array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array


def _shown(value: Any) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= _VALUES_SHOWN_MAX else f"{text[: _VALUES_SHOWN_MAX - 3]}..."


def find_key(table: Schema, on: Any) -> KeyColumns:
    """The key that ``on`` names: a column, several, or ``None`` for the primary key.

    >>> find_key(Schema.from_arrow(pa.schema({"id": pa.int64(), "s": pa.struct({"a": pa.int8()})})), "s.a").paths
    (('s', 'a'),)
    """
    paths = tuple(dict.fromkeys(_resolved(table, name) for name in _names(on)))
    if not paths:
        paths = tuple(_path_of(table, field) for field in _primary_key(table))
    if not paths:
        raise InvalidRequest(
            "Invalid user input: A merge insert operation requires join keys: specify `on` columns explicitly or "
            "configure a primary key in the dataset schema."
        )
    schema = table.to_arrow()
    for path in paths:
        _check_type(schema, path)
    return KeyColumns(paths=paths, ids=tuple(_field_id(table, path) for path in paths))


def _names(on: Any) -> list[str]:
    if on is None:
        return []
    names = [on] if isinstance(on, str) else list(on) if isinstance(on, Iterable) else [on]
    if not all(isinstance(name, str) for name in names):
        raise WrongType("The `on` argument to merge_insert must be a str or iterable of str.")
    return names


def _resolved(table: Schema, name: str) -> Path:
    schema = table.to_arrow()
    if name in schema.names:
        return (name,)
    try:
        return Scope(schema).resolve(parse_path(name) if name else [""])
    except InvalidRequest as error:
        raise InvalidRequest(
            f"Invalid user input: Merge insert key column '{name}' does not exist in schema. {error}"
        ) from error


def _primary_key(table: Schema) -> list[Field]:
    """The fields of the declared primary key, in their declared order, else in that of the schema."""
    marked = [field for field in table.fields if field.unenforced_primary_key]
    return sorted(marked, key=lambda field: field.unenforced_primary_key_position)


def _path_of(table: Schema, field: Field) -> Path:
    return tuple(table.by_id(id).name for id in (*table.ancestors(field.id), field.id))


def _field_id(table: Schema, path: Sequence[str]) -> int:
    level, found = table.top_level, -1
    for name in path:
        found = next(field.id for field in level if field.name == name)
        level = table.children(found)
    return found


def _check_type(schema: pa.Schema, path: Path) -> None:
    kind = schema.field(path[0]).type
    for name in path[1:]:
        assert at.is_struct(kind), "the path of a field leads through structs"
        kind = kind.field(name).type
    while isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if at.is_nested(kind) or at.is_null(kind) or at.is_interval(kind):
        hint = f', for one "{format_path((*path, kind.field(0).name))}"' if at.is_struct(kind) and len(kind) else ""
        raise InvalidRequest(
            f"Invalid user input: Merge insert key column '{format_path(path)}' of type {kind} can't be compared: use "
            f"columns of numbers, text, binary, times or booleans{hint}."
        )
