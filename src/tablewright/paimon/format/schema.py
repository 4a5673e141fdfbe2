"""A schema file, ``schema/schema-<id>``: fields with ids that never change, keys, options (JSON).

Two defaults depend on the version of the file: before version 2 a table without ``bucket`` has one, before version 3
its data files are ORC unless they say otherwise.

Tests: ``tests/unit/paimon/test_columns.py``, ``tests/unit/paimon/test_metadata.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import pyarrow as pa

from tablewright.errors import UnsupportedFeature
from tablewright.paimon.format.documents import Fields, checked, json_object, names_a_file
from tablewright.paimon.format.types import Field, decode_field

__all__ = ["DATA_DIRECTORY", "TableSchema", "decode_schema"]

DATA_DIRECTORY = "data-file.path-directory"

_VERSION_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """One version of a table's columns, keys and options."""

    id: int
    fields: tuple[Field, ...]
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: Mapping[str, str]
    comment: str | None = None

    def to_arrow(self) -> pa.Schema:
        """The columns as Arrow knows them."""
        return pa.schema([field.to_arrow() for field in self.fields])

    def field(self, name: str) -> Field:
        """The column of this name, which has to exist."""
        return next(field for field in self.fields if field.name == name)

    @property
    def partition_fields(self) -> tuple[Field, ...]:
        """The columns that split the table into directories."""
        return tuple(self.field(name) for name in self.partition_keys)

    def flag(self, option: str, *, default: bool = False) -> bool:
        """An option that is true or false."""
        return self.options.get(option, str(default)).strip().lower() == "true"


def decode_schema(data: bytes, path: str) -> TableSchema:
    """The schema in a file's bytes.

    >>> text = b'{"id": 0, "fields": [{"id": 0, "name": "x", "type": "INT"}], "partitionKeys": [], "primaryKeys": []}'
    >>> decode_schema(text, "schema-0").to_arrow()
    x: int32
    """
    document = json_object(data, path)
    problems: list[str] = []
    taken = Fields(document, problems)
    version = 1 if document.get("version") is None else taken.whole("version", minimum=1)
    if version > _VERSION_MAX:
        raise UnsupportedFeature(
            f"{path} is a Paimon schema of version {version}; this release reads up to {_VERSION_MAX}."
        )
    fields = tuple(
        decode_field(each, problems, f"field {number}") for number, each in enumerate(taken.objects("fields"))
    )
    options = taken.options("options")
    if version < 2:
        options.setdefault("bucket", "1")
    if version < 3:
        options.setdefault("file.format", "orc")
    schema = TableSchema(
        id=taken.whole("id", minimum=0),
        fields=fields,
        partition_keys=taken.texts("partitionKeys"),
        primary_keys=taken.texts("primaryKeys"),
        options=MappingProxyType(options),
        comment=taken.text_or_none("comment"),
    )
    names = [field.name for field in fields]
    problems += [f"field {name} occurs twice" for name in sorted({name for name in names if names.count(name) > 1})]
    problems += [
        f"{kind} key {key} is not a field"
        for kind, keys in (("partition", schema.partition_keys), ("primary", schema.primary_keys))
        for key in keys
        if key not in names
    ]
    ids = [field.id for field in fields]
    problems += [f"field id {id} occurs twice" for id in sorted({id for id in ids if ids.count(id) > 1})]
    directory = options.get(DATA_DIRECTORY, "").strip("/")
    if directory and not names_a_file(directory):
        problems.append(f"the option {DATA_DIRECTORY} is {directory!r}, which is no directory of the table")
    checked(path, problems)
    return schema
