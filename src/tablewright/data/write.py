"""Batches to data files, and the metadata of one new fragment per file.

1. Every batch is brought into the table's shape (:mod:`.conform`).
2. It goes into the open file. A batch is cut where the file reaches ``max_rows_per_file``. ``max_bytes_per_file`` is a
   soft limit, as in Lance: bytes are counted before encoding, the codec collects some 8 MiB, shared among the columns,
   before it writes, so a file is never closed before that, and batches of up to 16 MiB are not cut for it.
   Where dictionaries have narrow indices, small batches are joined, and a file holds no more values than these count
   (:mod:`.dictionaries`).
3. A full file is closed: its name, columns, rows and size in bytes are a fragment without an id yet.

File names come from ``world.ids`` and are unique. If anything fails, all files of this call are removed.
Memory: one batch and what the codec holds.

Format: ``docs/format/data-files.md#data-file-entries``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tablewright.data.blob_writer import BlobWriter
from tablewright.data.conform import conform, solid
from tablewright.data.dictionaries import FileDictionaries, has_narrow_dictionaries, too_many_values, unified
from tablewright.data.encoder import DataFileReader, DataFileWriter
from tablewright.data.layout import FileLayout
from tablewright.errors import InvalidRequest, TablewrightError
from tablewright.format.blobs import prepared_blobs
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.naming import data_path, new_data_file_name
from tablewright.format.schema import Schema, file_columns, schema_differences
from tablewright.storage.uncommitted import discard_files
from tablewright.world import World

__all__ = [
    "WriteOptions",
    "WriteProgress",
    "describe_data_file",
    "discard_fragments",
    "write_data_file",
    "write_fragments",
]

_BYTES_BEFORE_CLOSING_MIN = 8 * 1024 * 1024
_BYTES_UNCUT_MAX = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteOptions:
    """Limits per data file (rows exact, bytes soft) and the version of the files.

    ``in_memory``: all batches are in memory, and stay as they are until the files are written. They are not copied.
    """

    max_rows_per_file: int = 1024 * 1024
    max_bytes_per_file: int = 90 * 1024**3
    data_storage_version: str = "2.2"
    in_memory: bool = False

    def __post_init__(self) -> None:
        if self.max_rows_per_file <= 0:
            raise InvalidRequest(f"max_rows_per_file must be positive, got {self.max_rows_per_file}.")
        if self.max_bytes_per_file <= 0:
            raise InvalidRequest(f"max_bytes_per_file must be positive, got {self.max_bytes_per_file}.")


class WriteProgress(Protocol):
    """Progress callback: called before a file's first row and after its last."""

    def begin(self, fragment: Fragment) -> None: ...

    def complete(self, fragment: Fragment) -> None: ...


def write_fragments(
    world: World,
    schema: Schema,
    batches: Iterable[pa.RecordBatch],
    options: WriteOptions | None = None,
    *,
    progress: WriteProgress | None = None,
    sidecars: list[str] | None = None,
) -> tuple[Fragment, ...]:
    """Write ``batches`` as data files that hold all of ``schema``; fragments with id 0, none for no rows.

    A null in a column that may hold none, or a value that the type can't hold, is refused, and no file is left. Blobs
    come in the form for rows; the paths of objects with their bytes are added to ``sidecars``.
    """
    roll = _Roll(world, schema, options or WriteOptions(), progress)
    try:
        for batch in _fitted(batches, roll.arrow):
            roll.write(batch)
        roll.close()
    except BaseException:
        roll.abort()
        raise
    if sidecars is not None:
        sidecars.extend(roll.sidecars)
    return tuple(roll.fragments)


def write_data_file(
    world: World,
    schema: Schema,
    batches: Iterable[pa.RecordBatch],
    version: str,
    *,
    sidecars: list[str] | None = None,
) -> tuple[DataFile, int]:
    """Write exactly one data file, also for no rows: for columns that are added to a fragment. Returns its rows too."""
    file = _OpenFile(world, schema, version)
    try:
        for batch in _fitted(batches, file.arrow):
            if (kind := file.dictionaries.overfull(batch)) is not None:
                raise too_many_values(kind)
            file.write(batch)
        written = file.close()
        if sidecars is not None:
            sidecars.extend(file.sidecars)
        return written
    except BaseException:
        file.abort()
        raise


def _fitted(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterable[pa.RecordBatch]:
    """Batches in the table's shape; joined where their dictionaries have narrow indices."""
    shaped = (conform(batch, schema) for batch in batches)
    return unified(shaped) if has_narrow_dictionaries(schema) else shaped


def discard_fragments(world: World, fragments: Iterable[Fragment]) -> None:
    """Remove the data files of fragments that will not be committed. What can't be removed is left to cleanup."""
    files = [file for fragment in fragments for file in fragment.files if file.base_id is None]
    discard_files(world.store, [data_path(file.path) for file in files])


def describe_data_file(world: World, schema: Schema, name: str, fragment_id: int = 0) -> Fragment:
    """The fragment that a data file makes which lies in ``data/`` already. Its columns are matched by name."""
    path = data_path(name)
    reader = DataFileReader(world.store, path)
    layout = FileLayout.of(reader.schema, reader.version)
    wanted = schema.project_ids(schema.column_ids(layout.schema.names))
    differences = schema_differences(wanted, reader.schema)
    known = frozenset(schema.names)
    unknown = [name for name in layout.schema.names if name not in known]
    if differences or unknown:
        problems = (*differences, *(f"No field named {name}" for name in unknown))
        raise InvalidRequest(f"The data file {name} does not fit the table: {'; '.join(problems)}")
    tops = {field.name: field.id for field in schema.top_level}
    ordered = tuple(
        schema.by_id(each) for column in layout.schema.names for each in schema.descendants(tops[column])
    )  # the file's order of columns, the table's ids
    fields, indices = file_columns(Schema(fields=ordered), reader.version)
    size = world.store.head(path).size
    file = _data_file(name, fields, indices, reader.version, size)
    return Fragment(id=fragment_id, files=(file,), physical_rows=reader.num_rows)


def _data_file(name: str, fields: tuple[int, ...], indices: tuple[int, ...], version: str, size: int) -> DataFile:
    major, minor = version.split(".")
    return DataFile(
        path=name,
        fields=fields,
        column_indices=indices,
        file_major_version=int(major),
        file_minor_version=int(minor),
        file_size_bytes=size,
    )


def _stored(schema: Schema) -> pa.Schema:
    """The Arrow schema of the files that hold all of a schema."""
    return schema.to_arrow().remove_metadata()


class _OpenFile:
    """A data file that is being written."""

    def __init__(self, world: World, schema: Schema, version: str, *, in_memory: bool = False) -> None:
        self._world, self._version = world, version
        self.arrow = schema.kept(_stored)
        self._name = new_data_file_name(world.ids.uuid())
        self._columns = file_columns(schema, version)
        path = data_path(self._name)
        self._blobs = BlobWriter(world.store, path, schema) if schema.kept(prepared_blobs) else None
        self._stored = self.arrow if self._blobs is None else self._blobs.codec_schema(self.arrow)
        self._writer = DataFileWriter(world.store, path, self._stored, version, in_memory=in_memory)
        self.dictionaries = FileDictionaries(self.arrow)
        self.rows = self.bytes = 0

    @property
    def sidecars(self) -> list[str]:
        return [] if self._blobs is None else self._blobs.paths

    @property
    def described(self) -> DataFile:
        return _data_file(self._name, *self._columns, self._version, 0)

    def write(self, batch: pa.RecordBatch) -> None:
        assert batch.schema.equals(self.arrow), "a column goes into the file under the field id of its place"
        self._writer.write(batch if self._blobs is None else self._blobs.placed(batch, self._stored))
        self.dictionaries.add(batch)
        self.rows += batch.num_rows
        self.bytes += batch.nbytes

    def close(self) -> tuple[DataFile, int]:
        if self._blobs is not None:
            self._blobs.close()
        rows, size = self._writer.close()
        assert rows == self.rows, f"the codec wrote {rows} rows of {self.rows}: the next ones would get wrong addresses"
        return _data_file(self._name, *self._columns, self._version, size), rows

    def abort(self) -> None:
        if self._blobs is not None:
            self._blobs.abort()
        try:
            self._writer.abort()
        except TablewrightError:
            return


class _Roll:
    """Consecutive data files: opens the next one when one is full."""

    def __init__(self, world: World, schema: Schema, options: WriteOptions, progress: WriteProgress | None) -> None:
        self._world, self._schema, self._options, self._progress = world, schema, options, progress
        self.arrow = schema.kept(_stored)
        self._file: _OpenFile | None = None
        self.fragments: list[Fragment] = []
        self.sidecars: list[str] = []

    def write(self, rest: pa.RecordBatch) -> None:
        while rest.num_rows:
            if self._file is not None and self._file.dictionaries.overfull(rest) is not None:
                self.close()
            file = self._file or self._open()
            piece = rest.slice(0, self._fitting(rest, file))
            file.write(solid(piece))
            rest = rest.slice(piece.num_rows)
            if self._is_full(file):
                self.close()

    def close(self) -> None:
        if self._file is not None:
            file, rows = self._file.close()
            self.sidecars += self._file.sidecars
            self._file = None
            fragment = Fragment(id=0, files=(file,), physical_rows=rows)
            self.fragments.append(fragment)
            if self._progress is not None:
                self._progress.complete(fragment)

    def abort(self) -> None:
        if self._file is not None:
            self._file.abort()
        discard_fragments(self._world, self.fragments)
        discard_files(self._world.store, self.sidecars)

    def _open(self) -> _OpenFile:
        options = self._options
        self._file = _OpenFile(self._world, self._schema, options.data_storage_version, in_memory=options.in_memory)
        if self._progress is not None:
            self._progress.begin(Fragment(id=0, files=(self._file.described,), physical_rows=0))
        return self._file

    def _fitting(self, batch: pa.RecordBatch, file: _OpenFile) -> int:
        rows: int = min(batch.num_rows, self._options.max_rows_per_file - file.rows)
        bytes_left = max(self._options.max_bytes_per_file - file.bytes, _BYTES_UNCUT_MAX)
        if batch.nbytes > bytes_left:
            rows = min(rows, max(1, bytes_left * batch.num_rows // batch.nbytes))
        return rows

    def _is_full(self, file: _OpenFile) -> bool:
        enough = max(self._options.max_bytes_per_file, _BYTES_BEFORE_CLOSING_MIN // max(1, len(self.arrow)))
        return file.rows >= self._options.max_rows_per_file or file.bytes >= enough
