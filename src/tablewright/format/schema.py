"""A table's schema: a flat tuple of nodes with ids, seen as a tree and as an Arrow schema.

A column keeps its id, names may change. Data files list the ids of what they hold, so nearly all lookups in a schema
are by id: the node, its descendants, a projection to some ids. The tree is indexed once per value. Other modules do the
details:

- ``field.py``: one node and its message;  ``logical_types.py``: type names;  ``arrow_schema.py``: Arrow both ways
- ``file_layout.py``: which nodes are columns of a data file, and what a file version can't hold
- ``schema_match.py``: whether data fit the table, in Lance's words

Format: ``docs/format/schema.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from tablewright.errors import CorruptTable, InvalidRequest, UnsupportedFeature
from tablewright.format import file_layout, schema_match
from tablewright.format.arrow_schema import arrow_schema_of, checked_metadata, fields_of_arrow
from tablewright.format.field import (
    TOP_LEVEL,
    Field,
    children_by_parent,
    field_from_proto,
    field_to_proto,
    is_blob,
    is_blob_v1,
    is_blob_v2,
)
from tablewright.format.field_path import format_path, parse_path
from tablewright.format.logical_types import MAP, STRUCT, fixed_list_of_structs, is_list

__all__ = [
    "Field",
    "Schema",
    "check_file_version",
    "file_columns",
    "problems_of_schema",
    "schema_differences",
    "schema_from_proto",
    "schema_to_proto",
]

T = TypeVar("T")

_DEPTH_MAX = 64
_NAMES_SHOWN = 40
_KEPT_MAX, _KEPT_BYTES_MAX = 64, 1 << 16


@dataclass(slots=True)
class _Facts:
    """What follows from the nodes, computed when first asked for."""

    by_id: dict[int, Field]
    children: dict[int, tuple[Field, ...]]
    columns: dict[str, Field]
    names: tuple[str, ...] | None = None
    arrow: pa.Schema | None = None
    blobs: tuple[Field, ...] | None = None
    any_blobs: frozenset[int] | None = None
    forms: dict[str, Schema] = field(default_factory=dict)
    problems: tuple[str, ...] | None = None
    messages: list[Any] | None = None
    columns_by_version: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    problems_by_version: dict[str, tuple[str, ...]] = field(default_factory=dict)
    worked_out: dict[Callable[[Schema], Any], Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """All nodes of a table, depth first, parents before children; and the Arrow schema metadata.

    >>> schema = Schema.from_arrow(pa.schema({"id": pa.int64(), "at": pa.struct({"x": pa.float32()})}))
    >>> [(node.id, node.parent_id, node.name, node.logical_type) for node in schema.fields]
    [(0, -1, 'id', 'int64'), (1, -1, 'at', 'struct'), (2, 1, 'x', 'float')]
    >>> schema.resolve("at.x").id, schema.max_field_id
    (2, 2)
    """

    fields: tuple[Field, ...] = ()
    metadata: Mapping[str, bytes] = field(default_factory=dict)
    _facts: _Facts | None = field(default=None, init=False, repr=False, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.fields, dict(self.metadata))

    # ------------------------------------------------------------------------------------------------- Arrow
    @classmethod
    def from_arrow(cls, schema: pa.Schema, first_id: int = 0) -> Schema:
        """The nodes of an Arrow schema, ids depth first from ``first_id`` on; :class:`InvalidRequest` if impossible."""
        return cls(
            fields=fields_of_arrow(schema, first_id), metadata=checked_metadata(schema.metadata, "Schema metadata")
        )

    def to_arrow(self) -> pa.Schema:
        """The schema that readers see, as Lance would show it. A type that we do not know raises UnsupportedFeature."""
        facts = self._facts or self._index()
        if facts.arrow is None:
            facts.arrow = arrow_schema_of(self.top_level, facts.children, self.metadata)
        return facts.arrow

    def is_arrow(self, other: pa.Schema) -> bool:
        """Whether ``other`` has the very columns that readers see, in their order; schema metadata do not count.

        ``False`` says nothing where a blob, or a type that we do not know, is among them.
        """
        if self.blobs:
            return False
        try:
            own = self.to_arrow().remove_metadata()
        except UnsupportedFeature:
            return False
        return bool(own.equals(other.remove_metadata(), check_metadata=True))

    def arrow_field(self, field_id: int) -> pa.Field:
        """One node with all below it, as an Arrow field."""
        return arrow_schema_of((self.by_id(field_id),), (self._facts or self._index()).children, {}).field(0)

    # -------------------------------------------------------------------------------------------------- tree
    @property
    def top_level(self) -> tuple[Field, ...]:
        """The columns."""
        return (self._facts or self._index()).children[TOP_LEVEL]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        facts = self._facts or self._index()
        if facts.names is None:
            facts.names = tuple(node.name for node in facts.children[TOP_LEVEL])
        return facts.names

    @property
    def max_field_id(self) -> int:
        """The highest id of any node; -1 when there is none."""
        facts = self._facts or self._index()
        return max(facts.by_id, default=-1)

    @property
    def ids(self) -> frozenset[int]:
        """The ids of all nodes."""
        return frozenset((self._facts or self._index()).by_id)

    def column_ids(self, names: Iterable[str]) -> tuple[int, ...]:
        """The ids of the columns with these names, in the schema's order; other names are ignored.

        >>> schema = Schema.from_arrow(pa.schema({"id": pa.int64(), "at": pa.struct({"x": pa.float32()})}))
        >>> schema.column_ids(["at", "id", "z"]), schema.node_ids(["at"])
        ((0, 1), (1, 2))
        """
        wanted = frozenset(names)
        return tuple([node.id for node in self.top_level if node.name in wanted])

    def node_ids(self, names: Iterable[str]) -> tuple[int, ...]:
        """The ids of the columns with these names and of all nodes below them, in the schema's order."""
        return self.descendants(*self.column_ids(names))

    def has(self, field_id: int) -> bool:
        """Whether a node has this id."""
        return field_id in (self._facts or self._index()).by_id

    def by_id(self, field_id: int) -> Field:
        """The node of an id; ``KeyError`` if there is none."""
        return (self._facts or self._index()).by_id[field_id]

    def children(self, field_id: int) -> tuple[Field, ...]:
        """The nodes right below one."""
        return (self._facts or self._index()).children.get(field_id, ())

    def descendants(self, *field_ids: int) -> tuple[int, ...]:
        """The ids themselves and those of all nodes below them, depth first."""
        facts = self._facts or self._index()
        found, waiting = [], [facts.by_id[field_id].id for field_id in reversed(field_ids)]
        while waiting:
            at = waiting.pop()
            found.append(at)
            if below := facts.children.get(at):
                waiting.extend([node.id for node in reversed(below)])
        return tuple(found)

    def ancestors(self, field_id: int) -> tuple[int, ...]:
        """The ids above one, the column first, itself left out."""
        above = []
        parent = self.by_id(field_id).parent_id
        while parent != TOP_LEVEL:
            above.append(parent)
            parent = self.by_id(parent).parent_id
        return tuple(reversed(above))

    def path(self, field_id: int) -> str:
        """The dotted name that :meth:`resolve` finds again; parts that need it are in backticks."""
        return format_path(self.by_id(at).name for at in (*self.ancestors(field_id), field_id))

    def resolve(self, path: str) -> Field:
        """The node of an exact dotted path; a part may be `` `in backticks` ``. InvalidRequest lists the columns."""
        columns = (self._facts or self._index()).columns
        first, *rest = (path,) if path in columns else parse_path(path)
        found = columns.get(first)
        for part in rest:
            below = self.children(found.id) if found is not None else ()
            found = next((node for node in below if node.name == part), None)
        if found is None:
            shown = ", ".join(self.names[:_NAMES_SHOWN]) + (", …" if len(self.names) > _NAMES_SHOWN else "")
            raise InvalidRequest(f"No field named {path}. Columns are: {shown or 'none'}.")
        return found

    def project_ids(self, ids: Iterable[int]) -> Schema:
        """Only the named nodes and what is above them, in the schema's order; unknown ids are ignored.

        A node none of whose descendants is named brings all of them: the id of a struct alone means the whole struct,
        together with one member's id it means the struct with that member. A map always keeps its key and its value.
        """
        wanted = {field_id for field_id in ids if self.has(field_id)}
        kept = {above for field_id in wanted for above in self.ancestors(field_id)}
        for field_id in wanted - kept:
            kept.update(self.descendants(field_id))
        for entries in [self.children(at)[0] for at in kept if self.by_id(at).logical_type == MAP]:
            for side in self.children(entries.id):
                kept.update(() if side.id in kept else self.descendants(side.id))
        return Schema(fields=tuple(node for node in self.fields if node.id in kept), metadata=self.metadata)

    # ------------------------------------------------------------------------------------------------- blobs
    @property
    def blobs(self) -> tuple[Field, ...]:
        """The blobs, at any depth."""
        facts = self._facts or self._index()
        if facts.blobs is None:
            facts.blobs = tuple(node for node in self.fields if is_blob_v1(node) or is_blob_v2(node))
        return facts.blobs

    @property
    def blob_ids(self) -> frozenset[int]:
        """The ids of nodes that are blobs in any form: of the table, or of a read."""
        facts = self._facts or self._index()
        if facts.any_blobs is None:
            facts.any_blobs = frozenset(node.id for node in self.fields if is_blob(node))
        return facts.any_blobs

    def with_form(self, name: str, form: Callable[[Field], Iterable[Field]]) -> Schema:
        """The schema with the nodes of ``form`` in the place of each blob; itself if there is none."""
        if not self.blobs:
            return self
        forms = (self._facts or self._index()).forms
        if name not in forms:
            inside = {below for blob in self.blobs for below in self.descendants(blob.id)[1:]}
            blobs = {blob.id for blob in self.blobs}
            nodes = [form(node) if node.id in blobs else (node,) for node in self.fields if node.id not in inside]
            forms[name] = Schema(fields=tuple(each for part in nodes for each in part), metadata=self.metadata)
        return forms[name]

    def kept(self, compute: Callable[[Schema], T]) -> T:
        """What ``compute``, a function of a module or a class, makes of this schema alone; computed once.

        Versions of a table share one schema, so small changes need not compute it again.

        >>> schema = Schema.from_arrow(pa.schema({"id": pa.int64()}))
        >>> def width(schema):
        ...     print("computed")
        ...     return len(schema.names)
        >>> schema.kept(width) + schema.kept(width)
        computed
        2
        """
        worked_out = (self._facts or self._index()).worked_out
        value: T | None = worked_out.get(compute)
        if value is None:
            value = worked_out[compute] = compute(self)
        return value

    def _index(self) -> _Facts:
        """The facts, computed at first. Methods write ``self._facts or self._index()``: they are called often."""
        facts = self._facts
        if facts is None:
            children = children_by_parent(self.fields)
            columns = {node.name: node for node in reversed(children[TOP_LEVEL])}
            facts = _Facts({node.id: node for node in self.fields}, children, columns)
            object.__setattr__(self, "_facts", facts)
        return facts


_kept: dict[tuple[tuple[bytes, ...], tuple[tuple[str, bytes], ...]], Schema] = {}


def _rebuild(fields: tuple[Field, ...], metadata: dict[str, bytes]) -> Schema:
    return Schema(fields=fields, metadata=metadata)


# -------------------------------------------------------------------------------------------------------- messages
def schema_to_proto(schema: Schema) -> list[Any]:
    """The Field messages of a schema, in order; its metadata go beside them. They are shared: copy, don't change."""
    facts = schema._facts or schema._index()
    if facts.messages is None:
        facts.messages = [field_to_proto(node) for node in schema.fields]
    return facts.messages


def schema_from_proto(fields: Iterable[Any], metadata: Mapping[str, bytes], path: str) -> Schema:
    """The schema of Field messages. A broken tree is :class:`CorruptTable`; nodes out of order are put in order.

    Unknown logical types are accepted: they matter only when that column is read. The last schemas are kept by their
    bytes: versions of a table share one, with all that was worked out from it.
    """
    messages = tuple(fields)
    key = tuple(message.SerializeToString() for message in messages), tuple(sorted(metadata.items()))
    schema = _kept.get(key)
    if schema is None:
        schema = _schema_of(messages, metadata, path)
        if sum(map(len, key[0])) + sum(len(value) for _, value in key[1]) <= _KEPT_BYTES_MAX:
            if len(_kept) >= _KEPT_MAX:
                _kept.clear()
            _kept[key] = schema
    return schema


def _schema_of(messages: Iterable[Any], metadata: Mapping[str, bytes], path: str) -> Schema:
    nodes = tuple(field_from_proto(message) for message in messages)
    schema = Schema(fields=nodes, metadata=dict(metadata))
    problems = problems_of_schema(schema)
    if problems:
        raise CorruptTable(path, problems)
    order = [field_id for column in schema.top_level for field_id in schema.descendants(column.id)]
    if order == [node.id for node in nodes]:
        return schema
    return Schema(fields=tuple(schema.by_id(field_id) for field_id in order), metadata=schema.metadata)


def problems_of_schema(schema: Schema) -> tuple[str, ...]:
    """Every broken invariant of the tree: ids, parents, depth, and numbers of children."""
    facts = schema._facts or schema._index()
    if facts.problems is None:
        facts.problems = _problems_of_tree(schema)
    return facts.problems


def _problems_of_tree(schema: Schema) -> tuple[str, ...]:
    problems: list[str] = []
    depths: dict[int, int] = {TOP_LEVEL: 0}
    for node in schema.fields:
        if node.id < 0:
            problems.append(f"field `{node.name}` has the id {node.id}")
        elif node.id in depths:
            problems.append(f"field id {node.id} is used twice")
        if node.parent_id not in depths:
            problems.append(f"field `{node.name}` ({node.id}) comes before its parent {node.parent_id}")
        elif depths[node.parent_id] >= _DEPTH_MAX:
            problems.append(f"field `{node.name}` ({node.id}) is nested deeper than {_DEPTH_MAX} levels")
        depths.setdefault(node.id, depths.get(node.parent_id, 0) + 1)
    if problems:
        return tuple(problems)
    if len(set(schema.names)) < len(schema.names):
        problems.append("two columns have the same name")
    return (*problems, *(text for node in schema.fields for text in _problems_below(schema, node)))


def _problems_below(schema: Schema, node: Field) -> Iterable[str]:
    below = schema.children(node.id)
    if (is_list(node.logical_type) or fixed_list_of_structs(node.logical_type)) and len(below) != 1:
        yield f"field `{node.name}` ({node.id}) of type {node.logical_type} has {len(below)} children instead of one"
    if node.logical_type == MAP:
        entries = schema.children(below[0].id) if len(below) == 1 and below[0].logical_type == STRUCT else ()
        if len(entries) != 2:
            yield f"field `{node.name}` ({node.id}) of type map has no entries with a key and a value"


# ---------------------------------------------------------------------------------------------- files and new data
def file_columns(schema: Schema, version: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """``fields`` and ``column_indices`` of a new data file with all of ``schema``; ``version`` "2.0" to "2.3".

    >>> schema = Schema.from_arrow(pa.schema({"at": pa.struct({"x": pa.float32()}), "id": pa.int64()}))
    >>> file_columns(schema, "2.0"), file_columns(schema, "2.2")
    (((0, 1, 2), (0, 1, 2)), ((1, 2), (0, 1)))
    """
    known = (schema._facts or schema._index()).columns_by_version
    if version not in known:
        fields = file_layout.file_fields(schema.fields, version)
        known[version] = fields, tuple(range(len(fields)))
    return known[version]


def check_file_version(schema: Schema, version: str) -> tuple[str, ...]:
    """Why data files of this version can't hold ``schema``, one sentence per column; empty if they can."""
    known = (schema._facts or schema._index()).problems_by_version
    if version not in known:
        known[version] = file_layout.problems_for_version(schema.fields, version)
    return known[version]


def schema_differences(expected: Schema | pa.Schema, actual: pa.Schema) -> tuple[str, ...]:
    """Why rows of ``actual`` can't be appended to a table of ``expected``; empty if they can. See ``schema_match.py``.

    >>> schema_differences(pa.schema({"id": pa.int64(), "note": pa.string()}), pa.schema({"id": pa.int32()}))
    ('`id` should have type int64 but type was int32',)
    """
    table = expected if isinstance(expected, Schema) else Schema.from_arrow(expected)
    return schema_match.differences(table.fields, Schema.from_arrow(actual).fields)
