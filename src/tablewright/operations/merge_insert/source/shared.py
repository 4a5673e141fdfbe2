"""The source where every worker finds it: data files beside the table's own, that no version names; or a temporary file
of the driver, where workers are on its machine (:mod:`.kept`), which takes a third of the time and no decoding.

A worker opens them in its world, reads keys and rows by position as this process does from memory, and
keeps what it has built for the next task. The files go when the merge has ended; if the driver dies they are orphans
like those of any other writer, and cleanup finds them.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from tablewright.data.read import Rows, no_columns
from tablewright.data.task_context import TaskContext
from tablewright.data.write import WriteOptions, write_fragments
from tablewright.format.fragment import Fragment
from tablewright.format.naming import data_paths
from tablewright.format.schema import Schema
from tablewright.operations.merge_insert.keys.key_columns import KeyColumns
from tablewright.operations.merge_insert.keys.key_table import KeyTable, Positions
from tablewright.operations.merge_insert.source.kept import KeptSource, open_file
from tablewright.reading.fragment import FragmentScan, ReadPlan
from tablewright.reading.projection import select_columns
from tablewright.reading.run import fragment_scans
from tablewright.world import World

__all__ = [
    "FileSource",
    "KeyRange",
    "ShareTask",
    "SharedKeys",
    "SharedSource",
    "StoredSource",
    "key_table",
    "opened",
    "share",
    "source_keys",
]

KeyRange = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSource:
    """A source as a task holds it: files, each a part of it, below the root of the table."""

    columns: Schema
    fragments: tuple[Fragment, ...]
    nbytes: int

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return sum(fragment.physical_rows for fragment in self.fragments)

    @property
    def paths(self) -> tuple[str, ...]:
        """The files."""
        return data_paths(self.fragments)

    def open(self, world: World) -> KeptSource:
        """The rows by position, read from storage when they are asked for."""
        context = TaskContext(world)
        parts = [_Stored(context, self.columns, fragment) for fragment in self.fragments]
        return KeptSource(self.columns.to_arrow(), parts, self.nbytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource:
    """A source as a task on the driver's machine holds it: an Arrow file, in a directory for temporary files."""

    path: str
    schema: pa.Schema
    num_rows: int
    nbytes: int

    @property
    def paths(self) -> tuple[str, ...]:
        """What it is known by."""
        return (self.path,)

    def open(self, world: World) -> KeptSource:
        """The rows by position, mapped into memory."""
        return open_file(self.path, self.schema, self.nbytes)


SharedSource: TypeAlias = StoredSource | FileSource


class _Stored:
    """A part that is a data file."""

    def __init__(self, context: TaskContext, columns: Schema, fragment: Fragment) -> None:
        self._context, self._columns, self._fragment = context, columns, fragment
        self._scans: dict[tuple[str, ...], FragmentScan] = {}
        self.num_rows = fragment.physical_rows

    def take(self, offsets: Positions, columns: Sequence[str]) -> pa.RecordBatch:
        (batch,) = self._scan(tuple(columns)).complete(Rows(no_columns(len(offsets)), chosen=offsets))
        return batch

    def read(self, start: int, stop: int, columns: Sequence[str]) -> pa.RecordBatch:
        return self.take(np.arange(start, stop), columns)

    def _scan(self, columns: tuple[str, ...]) -> FragmentScan:
        scan = self._scans.get(columns)
        if scan is None:
            reads = ReadPlan.of_known_rows(self._columns, select_columns(self._columns, list(columns)))
            (scan,) = fragment_scans(self._context, reads, [self._fragment], [0])
            self._scans[columns] = scan
        return scan


def share(world: World, source: KeptSource, file_version: str) -> StoredSource:
    """Write a source where workers find it."""
    task = ShareTask(source.schema, file_version)
    return task.shared([task(source.batches(), world)], source.nbytes)


@dataclass(frozen=True, slots=True)
class ShareTask:
    """What a Spark partition needs to write its rows as part of a shared source: call it with batches and world."""

    schema: pa.Schema
    file_version: str

    @property
    def columns(self) -> Schema:
        """The columns, with ids of their own."""
        return Schema.from_arrow(self.schema)

    def __call__(self, batches: Iterable[pa.RecordBatch], world: World) -> tuple[Fragment, ...]:
        return write_fragments(world, self.columns, batches, WriteOptions(data_storage_version=self.file_version))

    def shared(self, parts: Iterable[Sequence[Fragment]], nbytes: int | None = None) -> StoredSource:
        """The source that several parts make, one after the other."""
        fragments = tuple(fragment for part in parts for fragment in part)
        size = sum(fragment.data_bytes for fragment in fragments)
        return StoredSource(columns=self.columns, fragments=fragments, nbytes=size if nbytes is None else nbytes)


# ------------------------------------------------------------------------------------------------------------ opening
_lock = threading.Lock()
_sources: dict[tuple[str, ...], KeptSource] = {}
_tables: dict[tuple[tuple[str, ...], KeyColumns, KeyRange], KeyTable] = {}


def opened(source: KeptSource | SharedSource, world: World) -> KeptSource:
    """The source itself; a worker keeps the last one it opened."""
    if isinstance(source, KeptSource):
        return source
    if not source.paths:  # nothing to know it by
        return source.open(world)
    with _lock:
        known = _sources.get(source.paths)
        if known is None:
            _sources.clear()
            known = _sources[source.paths] = source.open(world)
        return known


def source_keys(source: KeptSource, key: KeyColumns, rows: KeyRange) -> list[pa.ChunkedArray]:
    """The key's columns for some rows of a source."""
    start, stop = rows
    columns: list[list[pa.Array]] = [[] for _ in key.paths]
    for batch in _read(source, start, stop, key.columns):
        for column, array in zip(columns, key.of(batch), strict=True):
            column.append(array)
    if not columns[0]:
        empty = key.of(source.take(np.zeros(0, np.int64), key.columns))
        columns = [[array] for array in empty]
    return [pa.chunked_array(column) for column in columns]


def _read(source: KeptSource, start: int, stop: int, columns: Iterable[str]) -> Iterator[pa.RecordBatch]:
    names, step = list(columns), 1 << 18
    for begin in range(start, stop, step):
        yield source.take(np.arange(begin, min(stop, begin + step)), names)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedKeys:
    """The keys of some rows of a shared source, as a task holds them."""

    source: SharedSource
    key: KeyColumns
    rows: KeyRange


def key_table(keys: KeyTable | SharedKeys, world: World) -> KeyTable:
    """The keys themselves; a worker keeps those that it built last."""
    if isinstance(keys, KeyTable):
        return keys
    name = (keys.source.paths, keys.key, keys.rows)
    source = opened(keys.source, world)
    if not keys.source.paths:
        return KeyTable(source_keys(source, keys.key, keys.rows), keys.rows[0])
    with _lock:
        known = _tables.get(name)
        if known is None:
            _tables.clear()
            known = _tables[name] = KeyTable(source_keys(source, keys.key, keys.rows), keys.rows[0])
        return known
