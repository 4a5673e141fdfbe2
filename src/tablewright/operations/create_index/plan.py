"""Decides a new index on a version: its column, its name, its fragments, and what it replaces. Pure.

Without a name an index is called ``<column>_idx``, nested ones ``a.b_idx``. If another column, or an index of another
kind, has that name, ``_2``, ``_3`` … follows. Words of the errors are those that scripts for pylance match.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from tablewright.errors import ColumnNotFound, IndexExists, InvalidRequest, UnknownIndexType, WrongType
from tablewright.format.field import TOP_LEVEL, Field
from tablewright.format.field_path import parse_path
from tablewright.format.flags import check_writable
from tablewright.format.fragment import FragmentList
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import BITMAP, BLOOMFILTER, BTREE, LABEL_LIST, NGRAM, IndexKind, kind_of
from tablewright.format.logical_types import STRUCT
from tablewright.format.schema import Schema
from tablewright.indices.registry import offered
from tablewright.operations.create_index.options import IndexRequest
from tablewright.operations.create_index.segment import IndexPlan, SegmentPlan, plain_type
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["default_name", "plan_index", "resolve_column"]

_NAMES_MAX = 10_000
_SCALARS = "int, float, bool, str, large_str, binary, large_binary, decimal, fixed-size-binary, or temporal"
_HASHED = "int, float32, float64, str, large_str, binary, large_binary, date, time, or timestamp"
_TYPES = {
    BTREE.name: f"BTREE/BITMAP index column {{}} must be {_SCALARS}",
    BITMAP.name: f"BTREE/BITMAP index column {{}} must be {_SCALARS}",
    LABEL_LIST.name: "LABEL_LIST index column {} must be a list or large list",
    NGRAM.name: "NGRAM index column {} must be a string",
    BLOOMFILTER.name: f"Bloom filter index does not support data type of column {{}}, which must be {_HASHED}",
}
_NESTED = {BLOOMFILTER.name: "A bloom filter index can only be created on a non-nested field, which column {} is not"}


def plan_index(snapshot: Snapshot, request: IndexRequest) -> IndexPlan:
    """The index that a request means on this version; bad requests fail here."""
    check_writable(snapshot.manifest.writer_flags, snapshot.location.uri)
    schema, indices = snapshot.schema, snapshot.manifest.indices
    node = resolve_column(schema, request.column)
    _check_type(schema, node, request.kind)
    name = default_name(schema, node, request.kind, indices) if request.name is None else request.name
    removed = tuple(index for index in indices if index.name == name)
    if any(index.fields != (node.id,) for index in removed):
        raise IndexExists(name, " with different fields, please specify a different name.")
    if removed and not request.replace:
        raise IndexExists(name, ", please specify a different name or use replace=True.")
    segment = SegmentPlan(
        name=name,
        kind=request.kind,
        field_id=node.id,
        path=tuple(schema.by_id(id).name for id in (*schema.ancestors(node.id), node.id)),
        type=plain_type(schema, node.id),
        read=_fragments(snapshot.fragments, request),
        removed=removed,
        settings=request.settings,
        reason="a new index" if not removed else "it replaces an index of this name",
    )
    return IndexPlan(segments=(segment,))


def resolve_column(schema: Schema, column: str) -> Field:
    """The field of a name or path; a part matches exactly, else in any case.

    >>> import pyarrow as pa
    >>> schema = Schema.from_arrow(pa.schema({"Id": pa.int64(), "at": pa.struct({"x": pa.float32()})}))
    >>> resolve_column(schema, "id").id, resolve_column(schema, "at.X").id
    (0, 2)
    """
    parts = (column,) if column in schema.names else parse_path(column)
    parent, found = TOP_LEVEL, None
    for part in parts:
        below = schema.top_level if parent == TOP_LEVEL else schema.children(parent)
        found = next((node for node in below if node.name == part), None) or next(
            (node for node in below if node.name.lower() == part.lower()), None
        )
        if found is None:
            raise ColumnNotFound(column, schema.names)
        parent = found.id
    assert found is not None
    return found


def default_name(schema: Schema, node: Field, kind: IndexKind, indices: tuple[IndexMetadata, ...]) -> str:
    """The first name that is free, or that an index of this kind on this column has."""
    column = ".".join(schema.by_id(id).name for id in (*schema.ancestors(node.id), node.id))
    for name in _candidates(f"{column}_idx"):
        same = [index for index in indices if index.name == name]
        if all(index.fields == (node.id,) and kind_of(index) is kind for index in same):
            return name
    raise InvalidRequest(f"Column {column} has very many indices: give the new one a name.")


def _candidates(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in range(2, _NAMES_MAX))


def _check_type(schema: Schema, node: Field, kind: IndexKind) -> None:
    functions, path = offered(kind), schema.path(node.id)
    if functions.build is None or functions.supported is None:
        raise UnknownIndexType(f"Indices of type {kind.name} are not built by this release.")
    above = [schema.by_id(id) for id in schema.ancestors(node.id)]
    if any(each.logical_type != STRUCT for each in above):
        raise WrongType(f"Column {path} is inside a list or a map: an index is on a column, or on a member of structs.")
    given = schema.arrow_field(node.id).type
    if node.id in schema.blob_ids or not functions.supported(given):
        texts = {**_TYPES, **_NESTED} if pa.types.is_nested(given) else _TYPES
        text = texts.get(kind.name, f"{kind.name} index column {{}} has a type that can't be indexed").format(path)
        raise WrongType(f"{text}; it is {given}.")


def _fragments(fragments: FragmentList, request: IndexRequest) -> FragmentList:
    if not request.train:
        return FragmentList.of([])
    if request.fragment_ids is None:
        return fragments
    missing = sorted(id for id in request.fragment_ids if not fragments.has(id))
    if missing:
        raise InvalidRequest(f"The table has no fragments {missing[:10]}; fragment_ids names those to be indexed.")
    return FragmentList.of(fragments.by_id(id) for id in sorted(set(request.fragment_ids)))
