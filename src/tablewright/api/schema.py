"""``LanceSchema`` and ``LanceField``: the table's schema with its field ids, as pylance shows it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tablewright.format.schema import Field, Schema

__all__ = ["LanceField", "LanceSchema"]


@dataclass(frozen=True)
class LanceField:
    """One field with its id."""

    _schema: Schema
    _field: Field

    def name(self) -> str:
        """Its own name, not the path."""
        return self._field.name

    def id(self) -> int:
        """The id that data files know it by."""
        return self._field.id

    def children(self) -> list[LanceField]:
        """Fields below it."""
        return [LanceField(self._schema, child) for child in self._schema.children(self._field.id)]

    def to_pyarrow(self) -> pa.Field:
        """As an Arrow field."""
        return self._schema.arrow_field(self._field.id)


@dataclass(frozen=True)
class LanceSchema:
    """A schema with field ids.

    >>> LanceSchema.from_pyarrow(pa.schema({"a": pa.int64(), "b": pa.string()})).fields()[1].id()
    1
    """

    value: Schema

    @staticmethod
    def from_pyarrow(schema: pa.Schema) -> LanceSchema:
        """Assign ids from 0."""
        return LanceSchema(Schema.from_arrow(schema))

    def fields(self) -> list[LanceField]:
        """Top-level fields."""
        return [LanceField(self.value, field) for field in self.value.top_level]

    def field(self, name: str) -> LanceField | None:
        """A field by its path, ``None`` if there is none."""
        try:
            return LanceField(self.value, self.value.resolve(name))
        except ValueError:
            return None

    def to_pyarrow(self) -> pa.Schema:
        """As an Arrow schema."""
        return self.value.to_arrow()
