"""The source, kept: a merge reads its rows in the order of the table, and all again if another writer came first.

Rows stay in memory up to a limit; a larger source goes to an Arrow file in a temporary directory, mapped into memory,
so that the operating system holds what is looked at, and may take it back. Either way rows are found by their position.

Where Spark's workers are on this machine they map the same file, and a source in memory is written to one for them.

A source is a list of *parts*. Rows are taken part by part, in ascending order, and put in the order asked for.
"""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa

from tablewright.data.sizes import fixed_width
from tablewright.operations.merge_insert.keys.key_table import Positions
from tablewright.operations.merge_insert.limits import DEFAULT_MERGE_LIMITS, SourceLimits
from tablewright.operations.rewrite.column_values import concatenated
from tablewright.storage.temporary import new_temporary_directory, temporary_space

__all__ = ["KeptSource", "SourcePart", "keep", "open_file", "to_file"]

_BATCH_BYTES = 4 * 1024 * 1024
_BATCH_ROWS_MAX = 1 << 17


class SourcePart(Protocol):
    """Some rows of a source, one after the other."""

    @property
    def num_rows(self) -> int:
        """How many there are."""

    def take(self, offsets: Positions, columns: Sequence[str]) -> pa.RecordBatch:
        """Columns of the rows at ``offsets``, which ascend and come once each."""

    def read(self, start: int, stop: int, columns: Sequence[str]) -> pa.RecordBatch:
        """Columns of the rows from ``start`` up to ``stop``."""


class _Batch:
    """A part that is a batch in (or mapped into) memory."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self.num_rows: int = batch.num_rows

    def nbytes_of(self, columns: Sequence[str]) -> int:
        return int(self._batch.select(list(columns)).nbytes)

    def take(self, offsets: Positions, columns: Sequence[str]) -> pa.RecordBatch:
        return self._batch.select(list(columns)).take(pa.array(offsets))

    def read(self, start: int, stop: int, columns: Sequence[str]) -> pa.RecordBatch:
        return self._batch.select(list(columns)).slice(start, stop - start)


class KeptSource:
    """Rows by position. Threads may share it.

    >>> source = keep(pa.schema({"x": pa.int64()}), [pa.record_batch({"x": [1, 2]}), pa.record_batch({"x": [3]})])
    >>> source.take(np.array([2, 0])).to_pydict()
    {'x': [3, 1]}
    """

    def __init__(
        self, schema: pa.Schema, parts: Sequence[SourcePart], nbytes: int, directory: str | None = None
    ) -> None:
        self.schema, self.nbytes = schema, nbytes
        self.path = None if directory is None else str(_file_in(directory))
        self._parts = tuple(parts)
        self._starts = np.cumsum([0, *(part.num_rows for part in parts)])
        self._origin: KeptSource | None = None
        self._remove = None if directory is None else weakref.finalize(self, shutil.rmtree, directory, True)

    @property
    def num_rows(self) -> int:
        """How many rows there are."""
        return int(self._starts[-1])

    @property
    def is_on_disk(self) -> bool:
        """Whether it did not fit into memory."""
        return self._remove is not None or (self._origin is not None and self._origin.is_on_disk)

    @property
    def place(self) -> str:
        """Where the rows are, in words."""
        if self._origin is not None:
            return self._origin.place
        if not all(isinstance(part, _Batch) for part in self._parts):
            return "in data files beside the table's"
        return "in a temporary file" if self.is_on_disk else "in memory"

    @property
    def rows_per_batch(self) -> int:
        """How many rows make a batch of a handy size."""
        return _fitting_rows(self.nbytes // max(1, self.num_rows))

    def rows_per_batch_of(self, columns: Sequence[str]) -> int:
        """How many rows make a handy batch of some columns."""
        widths = [fixed_width(self.schema.field(name).type) for name in columns]
        known = [width for width in widths if width is not None]
        return _fitting_rows(sum(known)) if len(known) == len(widths) else self.rows_per_batch

    def nbytes_of(self, columns: Sequence[str]) -> int:
        """How many bytes some columns have, at most: all that other columns are not known to have."""
        if all(isinstance(part, _Batch) for part in self._parts):
            return sum(part.nbytes_of(columns) for part in self._parts if isinstance(part, _Batch))
        widths = {field.name: fixed_width(field.type) for field in self.schema}
        own = [widths[name] for name in columns]
        if None not in own:
            return self.num_rows * sum(width for width in own if width is not None)
        others = sum(width or 0 for name, width in widths.items() if name not in columns)
        return max(0, self.nbytes - self.num_rows * others)

    def take(self, positions: Positions, columns: Sequence[str] | None = None) -> pa.RecordBatch:
        """The rows at some positions, in their order; a position may come more than once."""
        names = self.schema.names if columns is None else list(columns)
        if len(self._parts) == 1 and isinstance(self._parts[0], _Batch):
            return self._parts[0].take(positions, names)
        wanted, places = positions, None
        if np.any(positions[1:] <= positions[:-1]):
            wanted, places = np.unique(positions, return_inverse=True)
        found = list(self._ascending(wanted, names))
        if not found:
            return _no_rows(self.schema, names)
        batch = concatenated(found)
        return batch if places is None else batch.take(pa.array(places))

    def _ascending(self, positions: Positions, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        edges = np.searchsorted(positions, self._starts)
        for index in np.flatnonzero(np.diff(edges)).tolist():
            part, begin, end = self._parts[index], int(edges[index]), int(edges[index + 1])
            offsets = positions[begin:end] - self._starts[index]
            if int(offsets[-1]) - int(offsets[0]) + 1 == len(offsets):
                yield part.read(int(offsets[0]), int(offsets[-1]) + 1, names)
            else:
                yield part.take(offsets, names)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows in order."""
        names = self.schema.names if columns is None else list(columns)
        for part in self._parts:
            for start in range(0, part.num_rows, self.rows_per_batch):
                yield part.read(start, min(part.num_rows, start + self.rows_per_batch), names)

    def parts(self) -> Iterator[pa.RecordBatch]:
        """All rows in order, in as few batches as there are parts."""
        return (part.read(0, part.num_rows, self.schema.names) for part in self._parts)

    def only(self, positions: Positions) -> KeptSource:
        """The same source with some of its rows, by ascending positions."""
        edges = np.searchsorted(positions, self._starts)
        chosen = [
            _Chosen(part, positions[begin:end] - start)
            for part, start, (begin, end) in zip(self._parts, self._starts[:-1], pairwise(edges), strict=True)
            if end > begin
        ]
        left = KeptSource(self.schema, chosen, self.nbytes * len(positions) // max(1, self.num_rows))
        left._origin = self
        return left

    def close(self) -> None:
        """Forget the rows: the temporary file goes."""
        self._parts, self._starts = (), np.zeros(1, np.int64)
        if self._remove is not None:
            self._remove()
        if self._origin is not None:
            self._origin.close()


def _fitting_rows(width: int) -> int:
    return min(_BATCH_ROWS_MAX, max(1, _BATCH_BYTES // max(1, width)))


class _Chosen:
    """Some rows of a part."""

    def __init__(self, part: SourcePart, offsets: Positions) -> None:
        self._part, self._offsets = part, offsets
        self.num_rows = len(offsets)

    def take(self, offsets: Positions, columns: Sequence[str]) -> pa.RecordBatch:
        return self._part.take(self._offsets[offsets], columns)

    def read(self, start: int, stop: int, columns: Sequence[str]) -> pa.RecordBatch:
        return self._part.take(self._offsets[start:stop], columns)


def _no_rows(schema: pa.Schema, names: Sequence[str]) -> pa.RecordBatch:
    chosen = pa.schema([schema.field(name) for name in names])
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in chosen], schema=chosen)


# ---------------------------------------------------------------------------------------------------------- keeping
def keep(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], limits: SourceLimits = DEFAULT_MERGE_LIMITS.source
) -> KeptSource:
    """Keep all batches: in memory, or once they are more than may stay there, in a file."""
    held: list[pa.RecordBatch] = []
    nbytes = 0
    incoming = _in_parts(batches, limits.part_bytes)
    for batch in incoming:
        held.append(batch)
        nbytes += batch.nbytes
        if nbytes > limits.memory_bytes:
            return _on_disk(schema, held, incoming)
    return KeptSource(schema, [_Batch(batch) for batch in held], nbytes)


def _in_parts(batches: Iterable[pa.RecordBatch], part_bytes: int) -> Iterator[pa.RecordBatch]:
    """Small batches together: a row is found the faster the fewer parts there are. Large ones stay as they are."""
    waiting: list[pa.RecordBatch] = []
    nbytes = 0
    for batch in batches:
        if waiting and batch.nbytes >= part_bytes:
            yield concatenated(waiting)
            waiting, nbytes = [], 0
        if batch.num_rows:
            waiting.append(batch)
            nbytes += batch.nbytes
        if nbytes >= part_bytes:
            yield concatenated(waiting)
            waiting, nbytes = [], 0
    if waiting:
        yield concatenated(waiting)


def _on_disk(schema: pa.Schema, held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch]) -> KeptSource:
    directory = new_temporary_directory()
    path, nbytes = _file_in(directory), 0
    try:
        with temporary_space():
            file = pa.OSFile(str(path), "wb")
            writer = pa.ipc.new_stream(file, schema)
        for batch in chain(_taken(held), rest):  # errors of the rows' own source are not about our disk
            nbytes += batch.nbytes
            with temporary_space():
                writer.write_batch(batch)
        with temporary_space():
            writer.close()
            file.close()
        parts = _mapped(str(path))
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return KeptSource(schema, parts, nbytes, directory)


def _file_in(directory: str) -> Path:
    return Path(directory) / "source.arrows"


def _mapped(path: str) -> list[_Batch]:
    return [_Batch(batch) for batch in pa.ipc.open_stream(pa.memory_map(path))]


def to_file(source: KeptSource) -> KeptSource:
    """The same rows in a file that other processes of this machine map; itself if it is in one."""
    return source if source.path is not None else _on_disk(source.schema, [], source.parts())


def open_file(path: str, schema: pa.Schema, nbytes: int) -> KeptSource:
    """A source in a file that another process has written, and removes."""
    return KeptSource(schema, _mapped(path), nbytes)


def _taken(held: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches, each let go when the next is asked for."""
    while held:
        yield held.pop(0)
