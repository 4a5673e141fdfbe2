"""Where the fields of a table are inside a data file.

``DataFile.fields`` names the table's field ids, ``column_indices`` the physical column of each. The file itself has
only names, those of the time when it was written. So names are found by position:

1. The file's own schema, numbered depth first, gives the node of each physical column.
2. A field id leads to a physical column and so to a node of the file; the parents of both correspond, level by level.
   (Files from 2.1 on list leaves only, so structs and lists are known by what is below them.)
3. A packed struct is one physical column: what is below it is matched by position (a member may have been renamed), or
   by name where a member was dropped. So is a blob column; in another form than the file's, its members all lead to
   the column itself, and its values are made from that (:mod:`.blob_values`).

A table field without a node in any file of a fragment reads as null there.

Format: ``docs/format/data-files.md#columns-of-a-file``.

Tests: ``tests/unit/data/test_read.py``, ``tests/differential/data/test_read.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import pyarrow as pa

from tablewright.errors import CorruptTable
from tablewright.format.field import is_blob, is_one_column, is_packed
from tablewright.format.fragment import DataFile
from tablewright.format.schema import Field, Schema, file_columns

__all__ = ["FileLayout", "FileMap", "map_file", "paths_of"]

_TOP = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLayout:
    """A file's own schema and, per physical column, the id of its node there; and whether it has blob columns."""

    schema: Schema
    columns: tuple[int, ...]
    has_blobs: bool = False

    @classmethod
    def of(cls, schema: pa.Schema, version: str) -> FileLayout:
        """The layout of a file of this version with these columns."""
        return _layout(schema.remove_metadata().serialize().to_pybytes(), version)

    def columns_at(self, paths: Iterable[str]) -> list[int]:
        """The physical columns of the nodes at dotted names, with all below and above them."""
        wanted: set[int] = set()
        for path in paths:
            node, level = _TOP, self.schema.top_level
            for name in path.split("."):
                node = next(each.id for each in level if each.name == name)
                level = self.schema.children(node)
            wanted.update((*self.schema.ancestors(node), *self.schema.descendants(node)))
        return [index for index, node in enumerate(self.columns) if node in wanted]


@lru_cache(maxsize=256)
def _layout(schema: bytes, version: str) -> FileLayout:
    own = Schema.from_arrow(pa.ipc.read_schema(pa.py_buffer(schema)))
    return FileLayout(schema=own, columns=file_columns(own, version)[0], has_blobs=any(map(is_blob, own.fields)))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMap:
    """Which node of a data file is which field of the table. ``nodes`` maps the table's ids to the file's.

    ``unfit`` are fields that are blobs in the table and not in the file: their metadata were changed since.
    """

    layout: FileLayout
    nodes: Mapping[int, int] = field(default_factory=dict)
    unfit: frozenset[int] = frozenset()

    def name_of(self, table_id: int) -> str:
        """The name inside the file of a field that it holds."""
        return self.layout.schema.by_id(self.nodes[table_id]).name

    def is_blob(self, table_id: int) -> bool:
        """Whether a field that the file holds is a blob there."""
        return is_blob(self.layout.schema.by_id(self.nodes[table_id]))

    def paths(self, leaves: Iterable[int]) -> list[str]:
        """The names to read for some fields of the table: whole columns where nothing below them is left out."""
        return paths_of(self.layout.schema, {self.nodes[leaf] for leaf in leaves if leaf in self.nodes})


def paths_of(schema: Schema, ids: Iterable[int]) -> list[str]:
    """The shortest dotted names that cover the nodes ``ids`` and all below them, in the schema's order."""
    wanted = set(schema.descendants(*ids))
    return [path for top in schema.top_level for path in _paths(schema, top, wanted)]


def map_file(file: DataFile, layout: FileLayout, table: Schema) -> FileMap:
    """Match the fields of ``table`` that the data file lists with the nodes inside it."""
    nodes: dict[int, int] = {}
    unfit: set[int] = set()
    for table_id, column in zip(file.fields, file.column_indices, strict=True):
        if table_id < 0 or column < 0 or not table.has(table_id):
            continue
        if column >= len(layout.columns):
            raise CorruptTable(file.path, (f"it has {len(layout.columns)} columns, the manifest names {column}",))
        node = layout.columns[column]
        _match_upwards(nodes, table, table_id, layout.schema, node)
        _match_downwards(nodes, table, table_id, layout.schema, node)
        if _is_described(table, table_id) and not is_blob(layout.schema.by_id(node)):
            unfit.update(table.descendants(table_id))
    return FileMap(layout=layout, nodes=nodes, unfit=frozenset(unfit))


def _is_described(schema: Schema, node: int) -> bool:
    """Whether a node is a blob in a form that has members."""
    return is_one_column(schema.by_id(node)) and is_blob(schema.by_id(node))


def _match_upwards(nodes: dict[int, int], table: Schema, table_id: int, own: Schema, node: int) -> None:
    while table_id != _TOP and node != _TOP and table_id not in nodes:
        nodes[table_id] = node
        table_id, node = table.by_id(table_id).parent_id, own.by_id(node).parent_id


def _match_downwards(nodes: dict[int, int], table: Schema, table_id: int, own: Schema, node: int) -> None:
    inside, members = own.children(node), table.children(table_id)
    if is_blob(own.by_id(node)):
        same = [child.name for child in inside] == [member.name for member in members]
        nodes.update((member.id, inside[index].id if same else node) for index, member in enumerate(members))
        return
    if not is_packed(own.by_id(node)):
        return
    if len(inside) == len(members):
        nodes.update((member.id, child.id) for member, child in zip(members, inside, strict=True))
        return
    by_name = {child.name: child.id for child in inside}
    for member in members:
        if member.name in by_name:
            nodes[member.id] = by_name[member.name]


def _paths(own: Schema, node: Field, wanted: set[int]) -> Sequence[str]:
    """Dotted names below (and with) ``node``; a name that contains a dot can't be addressed, so its parent is read."""
    below = own.children(node.id)
    if not any(each in wanted for each in own.descendants(node.id)):
        return []
    leaves = [each for each in own.descendants(node.id) if not own.children(each)]
    if all(leaf in wanted for leaf in leaves) or is_one_column(node) or any("." in child.name for child in below):
        return [node.name]
    return [f"{node.name}.{path}" for child in below for path in _paths(own, child, wanted)]
