"""What new rows are made of: the columns that the source gives, and the table's own where it gives none.

Of a struct that is given in part, the members that are given are put into the row's own struct, as Lance does it: a
struct that is null on both sides stays null, and otherwise it has the members of both.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from tablewright.operations.merge_insert.source.fit import FittedSchema

__all__ = ["merged_rows", "merged_values"]


def merged_rows(fitted: FittedSchema, source: pa.RecordBatch, target: pa.RecordBatch | None) -> pa.RecordBatch:
    """All columns of the table for rows that match; ``target`` has those of which something is kept."""
    names, given, in_part = fitted.table.names, frozenset(fitted.columns), frozenset(fitted.in_part)
    arrays = [
        source.column(name) if name in given and name not in in_part else merged_values(fitted, name, source, target)
        for name in names
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(names))


def merged_values(fitted: FittedSchema, name: str, source: pa.RecordBatch, target: pa.RecordBatch | None) -> pa.Array:
    """One column of rows that match."""
    if name in fitted.in_part:
        assert target is not None
        return _members_of_both(target.column(name), source.column(name))
    if name in fitted.columns:
        return source.column(name)
    assert target is not None
    return target.column(name)


def _members_of_both(own: pa.Array, given: pa.Array) -> pa.Array:
    """A struct with some of its members exchanged."""
    if not (at.is_struct(own.type) and at.is_struct(given.type)):
        return given
    kept, new = own.flatten(), dict(zip(_names(given.type), given.flatten(), strict=True))
    members = [
        _members_of_both(member, new[name]) if name in new else member
        for name, member in zip(_names(own.type), kept, strict=True)
    ]
    absent = pc.and_(own.is_null(), given.is_null())
    fields = [field.with_nullable(True) for field in own.type]
    return pa.StructArray.from_arrays(members, fields=fields, mask=absent)


def _names(kind: pa.StructType) -> Sequence[str]:
    return [field.name for field in kind]
