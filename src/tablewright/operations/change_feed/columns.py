"""Rows of any version in the columns of the last one.

The feed has one schema: that of the version it ends with, with every column nullable. A row of an earlier version is
read through a *side schema*: the tree and the names of the feed, with the field ids and types of that version. For each
column (and each member of a struct) the counterpart in the earlier version is

1. the field of the same id, if it has the same type: a column that was renamed keeps its id. An id that was given to
   another column after the first was dropped is not the same field;
2. else the field that became this one by casts, which give another id and type: its values are cast
   (:mod:`.fields` says which field that is);
3. else none: the column did not exist, and is null. One that was dropped, and had the same name, is another column.

A column that the last version does not have any more is not in the feed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count

import pyarrow as pa

from tablewright.errors import InvalidRequest, TablewrightError
from tablewright.format.field import TOP_LEVEL, Field
from tablewright.format.logical_types import STRUCT
from tablewright.format.schema import Schema
from tablewright.operations.columns.cast import recast

__all__ = ["fit_rows", "new_ids", "nullable_schema", "shared_ids", "side_schema"]

_FREE_FIELD_IDS = 1 << 30
"""From here on no table has field ids, so no file holds them: such a field reads as null."""
_NO_ORIGINS: Mapping[int, int] = {}


def nullable_schema(schema: Schema) -> Schema:
    """The schema with columns and members of structs that may all be null: a row may be older than they are."""
    structs = {TOP_LEVEL}  # what is inside lists and maps comes and goes with them
    for node in schema.fields:
        if node.logical_type == STRUCT and node.parent_id in structs:
            structs.add(node.id)
    return Schema(
        fields=tuple(replace(node, nullable=node.nullable or node.parent_id in structs) for node in schema.fields),
        metadata=schema.metadata,
    )


def shared_ids(side: Schema, feed: Schema) -> frozenset[int]:
    """Fields that look the same, by id and type. Only files and versions between tell if they are."""
    return _same_ids(side, feed, frozenset())


def new_ids(side: Schema, feed: Schema, others: frozenset[int]) -> frozenset[int]:
    """Fields of the feed that an earlier version has not by id, if it has some that are gone: they may be casts."""
    same = _same_ids(side, feed, others)
    if all(node.id in same for node in side.fields):
        return frozenset()
    return frozenset(node.id for node in feed.fields if node.id not in same)


def side_schema(
    side: Schema, feed: Schema, others: frozenset[int] = frozenset(), origins: Mapping[int, int] = _NO_ORIGINS
) -> Schema:
    """The tree and names of ``feed`` over the fields of an earlier version.

    ``others`` are ids of different fields. ``origins`` tells of fields of the feed which ones they were, by id.
    """
    walk = _Walk(side, feed, _same_ids(side, feed, others), origins)
    return Schema(fields=tuple(walk.below(TOP_LEVEL, TOP_LEVEL, TOP_LEVEL)), metadata=feed.metadata)


def _same_ids(side: Schema, feed: Schema, others: frozenset[int]) -> frozenset[int]:
    return frozenset(
        node.id
        for node in feed.fields
        if side.has(node.id) and node.id not in others and _same_type(side.by_id(node.id), node)
    )


class _Walk:
    def __init__(self, side: Schema, feed: Schema, same: frozenset[int], origins: Mapping[int, int]) -> None:
        self._side, self._feed, self._same, self._origins = side, feed, same, origins
        self._free = count(_FREE_FIELD_IDS)

    def below(self, feed_id: int, side_id: int | None, parent_id: int) -> Iterator[Field]:
        """The nodes below one of the feed's, whose counterpart is ``side_id``, and which became ``parent_id``."""
        for node in _children(self._feed, feed_id):
            twin = None if side_id is None else self._twin(node, side_id)
            if twin is None:
                id = next(self._free)
            elif _same_type(twin, node):
                id = twin.id
            else:  # as it was, under its new name, with all below it
                yield replace(twin, name=node.name, parent_id=parent_id, nullable=True)
                yield from (self._side.by_id(id) for id in self._side.descendants(twin.id)[1:])
                continue
            yield replace(node, id=id, parent_id=parent_id)
            yield from self.below(node.id, None if twin is None else twin.id, id)

    def _twin(self, node: Field, side_id: int) -> Field | None:
        siblings = _children(self._side, side_id)
        id = node.id if node.id in self._same else self._origins.get(node.id)
        twin = next((each for each in siblings if each.id == id), None)
        return twin if twin is not None and self._can_be_cast(twin, node) else None

    def _can_be_cast(self, old: Field, new: Field) -> bool:
        if _same_type(old, new):
            return True
        try:
            recast(pa.nulls(1, self._side.arrow_field(old.id).type), self._feed.arrow_field(new.id).type, new.name)
        except (TablewrightError, pa.ArrowException):
            return False
        return True


def _children(schema: Schema, id: int) -> tuple[Field, ...]:
    return schema.top_level if id == TOP_LEVEL else schema.children(id)


def _same_type(one: Field, other: Field) -> bool:
    return (one.logical_type, one.extension_name) == (other.logical_type, other.extension_name)


def fit_rows(batch: pa.RecordBatch, schema: pa.Schema, version: int) -> pa.RecordBatch:
    """Rows as read, whose columns are those of ``schema`` in other types where they were cast since."""
    if batch.schema.types == schema.types:
        return pa.RecordBatch.from_arrays(batch.columns, schema=schema) if len(schema) else batch
    try:
        arrays = [recast(column, field.type, field.name) for column, field in zip(batch.columns, schema, strict=True)]
    except InvalidRequest as error:
        raise InvalidRequest(
            f"{error} The feed shows rows of version {version} in the types of its last version. "
            "Leave the column out with columns=, or end the feed before the cast."
        ) from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
