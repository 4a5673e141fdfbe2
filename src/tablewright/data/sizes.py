"""Estimated row widths, from the schema and the sizes of files, without opening any.

Widths of fixed-width columns are known. The rest of a file's size is divided among its variable columns, times a
factor for decoding. The estimate decides how many rows are read at a time; a wrong one costs speed or some memory.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from tablewright.format.field import is_blob_v1
from tablewright.format.fragment import DataFile, Fragment, FragmentList
from tablewright.format.fragment.entries import FragmentFiles, files_of
from tablewright.format.schema import Schema
from tablewright.format.wire import Ints

__all__ = ["PIECE_ROWS_MAX", "RowSizes", "fixed_width"]

_BATCH_BYTES = 4 * 1024 * 1024
_BATCHES_PER_PIECE = 2
_ROWS_MIN, _ROWS_MAX, _ROWS_MAX_VARIABLE = 64, 1 << 18, 1 << 16
_WIDE_BATCH_BYTES, _WIDE_ROWS_MIN = 64 * 1024 * 1024, 4  # for rows so wide that the minimum of rows would be gigabytes
PIECE_ROWS_MAX = 1 << 20
_SMALL_BYTES = 252 * 1024
_VARIABLE_BYTES_MIN, _VARIABLE_BYTES_UNKNOWN = 16, 64
_BLOB_BYTES_UNKNOWN = 16 * 1024
_GROWTH = 3  # what text and lists take in memory, compared with the file


class RowSizes:
    """Widths of the rows of ``wanted``, a projection of ``table``; ``rows_max`` bounds the rows of a piece."""

    def __init__(self, table: Schema, wanted: Schema, rows_max: int = PIECE_ROWS_MAX) -> None:
        self._table, self._rows_max = table, rows_max
        kinds = {column.id: field.type for column, field in zip(table.top_level, table.to_arrow(), strict=True)}
        widths = {column: fixed_width(kind) for column, kind in kinds.items()}
        columns = [column.id for column in wanted.top_level]
        self._fixed_bytes = sum(widths[column] or 0 for column in columns)
        self._variable = {column: set(table.descendants(column)) for column in columns if widths[column] is None}
        self._widths = widths
        are_primitive = all(at.is_primitive(kinds[column]) for column in columns)
        self._widest = max((widths[column] or 0 for column in columns), default=0) if are_primitive else 0
        self._blobs = table.blob_ids
        self._bytes = {
            column: least for column in self._variable if self._blobs and (least := _bytes_of_blobs(wanted, column))
        }
        self._files: dict[tuple[int, ...], tuple[int, int]] = {}

    @property
    def fixed_bytes(self) -> int | None:
        """Bytes per row of columns that all have a fixed width; ``None`` if one has not."""
        return None if self._variable else self._fixed_bytes

    @property
    def least_bytes(self) -> int:
        """Bytes per row that are estimated at least, whatever the sizes of files are: a repeated text takes none."""
        return self._fixed_bytes + _VARIABLE_BYTES_MIN * len(self._variable)

    def bytes_per_row(self, fragment: Fragment) -> int:
        """Estimated bytes per row in memory."""
        return self._fixed_bytes + sum(
            self._blob_bytes(fragment, ids, self._bytes[column])
            if column in self._bytes
            else self._variable_bytes(fragment, ids)
            for column, ids in self._variable.items()
        )

    def bytes_per_row_of_each(self, fragments: FragmentList) -> Ints:
        """The same for each fragment of a list, which is decoded only where blobs are read."""
        if self._bytes:
            return np.array([self.bytes_per_row(fragment) for fragment in fragments], np.int64)
        widths = np.full(len(fragments), self._fixed_bytes, np.int64)
        if self._variable:
            files = files_of(fragments)
            shares = self._shares(files, fragments.physical_rows.astype(np.int64))
            for ids in self._variable.values():
                holds = np.array([not ids.isdisjoint(layout.fields) for layout in files.layouts], np.bool_)
                held = np.where(holds[files.data_layouts], shares, 0) if len(holds) else shares
                sums = np.bincount(files.data_rows, weights=held, minlength=len(widths)).astype(np.int64)
                widths += np.maximum(_VARIABLE_BYTES_MIN, _GROWTH * sums)
        return widths

    def _shares(self, files: FragmentFiles, rows: Ints) -> Ints:
        """What :meth:`_share` says of each data file."""
        columns = [self._columns_of(layout.fields) for layout in files.layouts]
        fixed, variable = (
            np.array([each[index] for each in columns], np.int64)[files.data_layouts] for index in (0, 1)
        )
        has_blobs = np.array([not self._blobs.isdisjoint(layout.fields) for layout in files.layouts], np.bool_)
        per_row = files.data_bytes // np.maximum(1, rows[files.data_rows])
        shares = np.maximum(0, per_row - fixed) // np.maximum(1, variable)
        unknown = (files.data_bytes == 0) | has_blobs[files.data_layouts]
        return np.where(unknown, _VARIABLE_BYTES_UNKNOWN, shares)

    def rows_per_batch(self, fragment: Fragment) -> int:
        """How many rows make a batch that stays in the processor's caches."""
        return min(self._fitting_rows(fragment), _ROWS_MAX_VARIABLE if self._variable else _ROWS_MAX)

    @property
    def rows_per_small_batch(self) -> int:
        """How many rows make a batch that is judged while the codec decodes the next: a quarter MiB per column.

        0 if a column has no primitive type.
        """
        return _SMALL_BYTES // self._widest if self._widest else 0

    def rows_per_piece(self, fragment: Fragment) -> int:
        """How many rows one request to the codec covers: larger ones lose the warm memory, smaller ones cost calls."""
        if self._variable:
            return min(_BATCHES_PER_PIECE * self.rows_per_batch(fragment), self._rows_max)
        return min(_BATCHES_PER_PIECE * self._fitting_rows(fragment), self._rows_max)

    def _fitting_rows(self, fragment: Fragment) -> int:
        width = max(1, self.bytes_per_row(fragment))
        fewest = min(_ROWS_MIN, max(_WIDE_ROWS_MIN, _WIDE_BATCH_BYTES // width))
        return max(_BATCH_BYTES // width, fewest)

    def _variable_bytes(self, fragment: Fragment, ids: set[int]) -> int:
        files = [file for file in fragment.files if not ids.isdisjoint(file.fields)]
        return max(_VARIABLE_BYTES_MIN, _GROWTH * sum(self._share(file, fragment.physical_rows) for file in files))

    def _blob_bytes(self, fragment: Fragment, ids: set[int], least: int) -> int:
        """Bytes of blobs are in their file, or beside it, where they are not counted."""
        files = [file for file in fragment.files if not ids.isdisjoint(file.fields)]
        inside = sum(file.file_size_bytes for file in files) // max(1, fragment.physical_rows)
        return max(least, inside)

    def _share(self, file: DataFile, rows: int) -> int:
        """What a variable column of the file has of its bytes, per row; beside blobs it is not known."""
        if not file.file_size_bytes or not self._blobs.isdisjoint(file.fields):
            return _VARIABLE_BYTES_UNKNOWN
        known = self._files.get(file.fields)
        if known is None:
            known = self._files[file.fields] = self._columns_of(file.fields)
        fixed_bytes, variable_count = known
        return max(0, file.file_size_bytes // max(1, rows) - fixed_bytes) // max(1, variable_count)

    def _columns_of(self, fields: tuple[int, ...]) -> tuple[int, int]:
        """Bytes per row of a file's fixed-width columns, and the number of its other ones."""
        held = {field for field in fields if field >= 0}
        columns = [
            self._widths[column.id]
            for column in self._table.top_level
            if not held.isdisjoint(self._table.descendants(column.id))
        ]
        return sum(width or 0 for width in columns), sum(width is None for width in columns)


def _bytes_of_blobs(wanted: Schema, column: int) -> int:
    """About how many bytes a row has at least, if the bytes of blobs are read with a column; else 0."""
    blobs = [wanted.by_id(blob) for blob in wanted.blob_ids.intersection(wanted.descendants(column))]
    read = [blob for blob in blobs if not _is_description(wanted, blob.id)]
    if not read:
        return 0
    return _VARIABLE_BYTES_UNKNOWN if all(map(is_blob_v1, read)) else _BLOB_BYTES_UNKNOWN


def _is_description(wanted: Schema, blob: int) -> bool:
    names = {child.name for child in wanted.children(blob)}
    return bool(names) and "data" not in names


def fixed_width(kind: pa.DataType) -> int | None:
    """Bytes per value of a type whose values all take the same; ``None`` for others."""
    if at.is_fixed_size_list(kind):
        item = fixed_width(kind.value_type)
        return None if item is None else int(kind.list_size) * item
    if isinstance(kind, pa.BaseExtensionType):
        return fixed_width(kind.storage_type)
    try:
        return (int(kind.bit_width) + 7) // 8
    except ValueError:
        return None
