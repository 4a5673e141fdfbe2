"""New members of structs that are there already: the struct is written again, with its old members and the new ones.

A struct has to be null in the same rows for all its members. In one file it is, whoever reads it; so the old members
move along, under the ids that they have.

Tests: ``tests/differential/api/test_columns.py``, ``tests/differential/test_columns.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as at

from tablewright.operations.columns.compute import Computation
from tablewright.reading.projection import Path

__all__ = ["WithMembers"]


@dataclass(frozen=True, slots=True)
class WithMembers:
    """What a computation makes, put into the columns ``known`` of the table where they have the same name."""

    inner: Computation
    known: frozenset[str]
    schema: pa.Schema

    @property
    def paths(self) -> tuple[Path, ...]:
        return (*self.inner.paths, *((name,) for name in self.schema.names if name in self.known))

    def compute(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        made = self.inner.compute(batch)
        arrays = [
            _grown(batch.column(field.name), made.column(field.name), field.type)
            if field.name in self.known
            else made.column(field.name)
            for field in self.schema
        ]
        return pa.RecordBatch.from_arrays(arrays, names=self.schema.names)


def _grown(old: pa.Array, new: pa.Array, kind: pa.DataType) -> pa.Array:
    """The members of both; where the old struct is null, it stays null."""
    assert isinstance(old, pa.StructArray) and isinstance(new, pa.StructArray), "only structs get members"
    assert at.is_struct(kind), "and stay structs"
    members = []
    for member in kind:
        mine, theirs = old.type.get_field_index(member.name), new.type.get_field_index(member.name)
        if mine < 0:
            members.append(new.flatten()[theirs])
        elif theirs < 0:
            members.append(old.field(mine))
        else:
            members.append(_grown(old.field(mine), new.flatten()[theirs], member.type))
    fields = [pa.field(each.name, array.type) for each, array in zip(kind, members, strict=True)]
    return pa.StructArray.from_arrays(members, fields=fields, mask=old.is_null() if old.null_count else None)
