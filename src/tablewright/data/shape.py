"""A projection of a table, with what all its fragments share computed once.

A table may have many thousands of small fragments whose files look alike. Names to ask a file for, and the map from
table fields to file columns, depend only on the list of field ids and on the file's own schema, so they are kept here.
Threads may share a shape: a value may be computed twice, but never differs. So may the reads of a version, and of those
after it that have its schema: :func:`read_shape` keeps the last ones.

Tests: ``tests/unit/data/test_read.py``, ``tests/differential/data/test_read.py``.
"""

from __future__ import annotations

import pyarrow as pa

from tablewright.data.encoder import DataFileReader
from tablewright.data.foreign import check_types
from tablewright.data.layout import FileLayout, FileMap, map_file, paths_of
from tablewright.data.sizes import PIECE_ROWS_MAX, RowSizes
from tablewright.errors import UnsupportedFeature
from tablewright.format.blobs import prepared_blobs
from tablewright.format.field import is_blob, is_blob_v2, is_one_column
from tablewright.format.file_descriptor import schema_bytes
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.logical_types import STRUCT
from tablewright.format.schema import Schema

__all__ = ["ReadShape", "read_shape"]

Leaves = frozenset[int]
Ids = tuple[int, ...]

_LAYOUTS_MAX, _SHAPES_MAX = 1024, 64
_LEAVES_ONLY_FROM = (2, 1)
_layouts: dict[tuple[bytes, str], FileLayout] = {}
_shapes: dict[tuple[int, Ids, int], ReadShape] = {}


def read_shape(table: Schema, wanted: Schema, rows_max: int = PIECE_ROWS_MAX) -> ReadShape:
    """A shape that other reads of this schema may have used before. ``wanted`` is a projection of ``table`` to ids."""
    key = (id(table), tuple(node.id for node in wanted.fields), rows_max)
    shape = _shapes.get(key)
    if shape is None or shape.table is not table or shape.wanted != wanted:
        shape = ReadShape(table, wanted, rows_max)
        if len(_shapes) >= _SHAPES_MAX:
            _shapes.clear()
        _shapes[key] = shape
    return shape


class ReadShape:
    """``wanted``, a projection of ``table``; ``rows_max`` bounds how many rows are read at a time."""

    def __init__(self, table: Schema, wanted: Schema, rows_max: int = PIECE_ROWS_MAX) -> None:
        self.table, self.wanted = table, wanted
        self.describes = _describes(wanted)
        self.schema: pa.Schema = wanted.to_arrow().remove_metadata()
        self.columns = [(column.id, field.type) for column, field in zip(wanted.top_level, self.schema, strict=True)]
        self.required = frozenset(column.id for column in wanted.top_level if not column.nullable)
        self.sizes = RowSizes(table, wanted, rows_max)
        self._leaves = frozenset(field.id for field in wanted.fields if not wanted.children(field.id))
        self._structs = frozenset(
            node.id
            for node in wanted.fields
            if node.logical_type == STRUCT and wanted.children(node.id) and not is_one_column(node)
        )
        self._supplied: dict[Ids, Leaves] = {}
        self._guesses: dict[tuple[Ids, Leaves], list[str]] = {}
        self._maps: dict[tuple[Ids, Ids, Leaves, int], tuple[FileMap, list[str]]] = {}

    def leaves(self, fragment: Fragment) -> Leaves:
        """The fields to look for. Where none of a struct's wanted members is in any file, another member is read too.

        That one shows for which rows the struct is null.
        """
        held = fragment.live_fields
        added: set[int] = set()
        for column in self.wanted.top_level:
            if self.wanted.children(column.id) and held.isdisjoint(self.wanted.descendants(column.id)):
                added.update([each for each in self.table.descendants(column.id) if each in held][:1])
        return self._leaves | added if added else self._leaves

    def holds(self, file: DataFile, leaves: Leaves) -> bool:
        """Whether a file has one of these fields."""
        if not self._structs.isdisjoint(file.fields):
            self._check_structs(file)
        return not leaves.isdisjoint(self._fields_of(file))

    def _check_structs(self, file: DataFile) -> None:
        """From 2.1 on a struct is no column of a file, unless packed or a blob: then the schema lacks that metadata."""
        if (file.file_major_version, file.file_minor_version) >= _LEAVES_ONLY_FROM:
            for field_id, column in zip(file.fields, file.column_indices, strict=False):
                if field_id in self._structs and column >= 0:
                    raise _unfit(self.table, field_id, file.path)

    def physical_columns(self, file: DataFile) -> frozenset[int] | None:
        """The physical columns of a file that are wanted; ``None`` if it takes the file's own schema to know them."""
        if any(self.wanted.children(column) for column, _ in self.columns):
            return None
        return frozenset(
            column for each, column in zip(file.fields, file.column_indices, strict=True) if each in self._leaves
        )

    def guess(self, file: DataFile, leaves: Leaves) -> list[str]:
        """The names to ask a file for, if it has the table's present ones."""
        key = (file.fields, leaves)
        found = self._guesses.get(key)
        if found is None:
            own = self.table.project_ids(file.live_fields)
            found = self._guesses[key] = paths_of(own, leaves.intersection(self._fields_of(file)))
        return found

    def mapped(self, file: DataFile, reader: DataFileReader, leaves: Leaves) -> tuple[FileMap, list[str]]:
        """Where the table's fields are in an open file, and the names that it has for the wanted ones."""
        layout = _layout_of(reader, file.version)
        key = (file.fields, file.column_indices, leaves, id(layout))
        found = self._maps.get(key)
        if found is None:
            mapped = map_file(file, layout, self.table)
            check_types(mapped, self.table, reader.where)
            if not mapped.unfit.isdisjoint(leaves):
                raise _unfit(self.table, min(mapped.unfit.intersection(leaves)), file.path)
            found = self._maps[key] = (mapped, mapped.paths(leaves))
        return found

    def _fields_of(self, file: DataFile) -> Leaves:
        """The fields that a file holds, with the members of packed structs and blobs, which it does not list."""
        found = self._supplied.get(file.fields)
        if found is None:
            known = [each for each in file.live_fields if self.table.has(each)]
            members = [self.table.descendants(each) for each in known if is_one_column(self.table.by_id(each))]
            found = self._supplied[file.fields] = frozenset(known).union(*members)
        return found


def _unfit(table: Schema, leaf: int, path: str) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"Column `{table.path((*table.ancestors(leaf), leaf)[0])}` is a blob column in the table's schema but not in "
        f"the data file {path}, or the other way round: its field metadata were changed after it was written. Change "
        "them back; values that are not blobs can be read with blob_handling='all_binary'."
    )


def _describes(wanted: Schema) -> bool:
    """Whether blobs are wanted as descriptions. Their logical form can't be read."""
    if not wanted.blob_ids:
        return False
    logical = [f"`{wanted.path(node.id)}`" for node in wanted.blobs if is_blob_v2(node)]
    if logical:
        raise UnsupportedFeature(
            f"Column {', '.join(logical)} is a blob column (lance.blob.v2), whose values can't be used here. Leave it "
            "out; a scan reads it, with blob_handling='all_binary' its bytes."
        )
    prepared = prepared_blobs(wanted)
    return any(node not in prepared for node in wanted.fields if is_one_column(node) and is_blob(node))


def _layout_of(reader: DataFileReader, version: str) -> FileLayout:
    """A file's layout, known by the bytes of its descriptor, or by its schema alone: then its number of rows is new.

    To ask the codec for a schema takes longer than to open the file.
    """
    key = (reader.descriptor, version)
    layout = _layouts.get(key)
    if layout is None:
        own = (schema_bytes(reader.descriptor, reader.where), version)
        layout = _layouts.get(own) or FileLayout.of(reader.schema, version)
        if len(_layouts) >= _LAYOUTS_MAX:
            _layouts.clear()
        _layouts[key] = _layouts[own] = layout
    return layout
