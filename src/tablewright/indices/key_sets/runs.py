"""Sorted runs of keys in files or in memory, and their merge.

A merge holds a chunk of every run. What is not greater than the smallest of their last keys is complete: it is united
and given out, and the chunks that are used up are replaced. So memory is chunks times runs, and no loop goes over keys.
Nulls, which come first, are taken out at the start.

Tests: ``tests/unit/indices/key_sets/test_build.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tablewright.errors import CorruptTable
from tablewright.indices.building import Translate
from tablewright.indices.files import open_index_file, write_index_file
from tablewright.indices.key_sets.layout import Layout
from tablewright.indices.key_sets.order import Comparable, comparable, count_below
from tablewright.indices.key_sets.part import Part, sorted_part, translated
from tablewright.storage.base import Store

__all__ = ["CHUNK_BYTES", "Chunks", "file_chunks", "merged", "moved_chunks", "part_batch", "write_run"]

Chunks = Iterator[Part]

CHUNK_BYTES = 4 * 1024 * 1024
_CHUNK_ROWS_MAX = 1 << 14
_BATCH_BYTES_MAX = 1 << 30


def part_batch(part: Part, layout: Layout) -> pa.RecordBatch:
    """The rows of a file."""
    return pa.record_batch([part.keys, part.sets.cast(pa.binary())], schema=layout.schema(part.keys.type))


def write_run(store: Store, path: str, part: Part, layout: Layout) -> None:
    """Write a part as a file of its own."""
    directory, _, name = path.rpartition("/")
    batches = (part_batch(piece, layout) for piece in _pieces(part))
    write_index_file(store, directory, name, layout.schema(part.keys.type), batches)


def _pieces(part: Part) -> Iterator[Part]:
    """A part in pieces whose bytes a binary column can hold."""
    pieces = max(1, -(-part.nbytes // _BATCH_BYTES_MAX))
    rows = max(1, -(-len(part) // pieces))
    return (part.slice(start, rows) for start in range(0, len(part), rows))


def file_chunks(
    store: Store, path: str, layout: Layout, kind: pa.DataType | None = None, chunk_bytes: int = CHUNK_BYTES
) -> Chunks:
    """The keys and sets of a file in its order, some at a time; ``kind`` is the type that its keys must have."""
    directory, _, name = path.rpartition("/")
    reader = open_index_file(store, directory, name, [layout.keys, layout.sets])
    rows = reader.num_rows
    if not rows:
        return
    per_row = max(1, sum(reader.column_bytes) // rows)
    count = max(1, min(_CHUNK_ROWS_MAX, chunk_bytes // per_row))
    for batch in reader.read(0, rows, count):
        keys, sets = batch.column(layout.keys), batch.column(layout.sets)
        if kind is not None and keys.type != kind:
            raise CorruptTable(reader.where, (f"its keys are {keys.type} where the column is {kind}",))
        yield Part(keys, sets.cast(pa.large_binary()))


def moved_chunks(chunks: Chunks, translate: Translate, layout: Layout, where: str) -> Chunks:
    """Sorted chunks with the rows that are kept, under new ids. Bytes that are no sets raise :class:`CorruptTable`."""
    for chunk in chunks:
        try:
            part = translated(sorted_part(chunk, layout.form), translate, layout.form)
        except ValueError as error:
            raise CorruptTable(where, (f"{error}",)) from error
        if len(part):
            yield part


@dataclass(slots=True, eq=False)
class _Run:
    """What is left of the current chunk, and the chunks after it."""

    rest: Chunks
    part: Part | None = None
    keys: Comparable = None
    nulls: list[Part] = field(default_factory=list)

    def advance(self) -> None:
        """Take the next chunk; its null goes to ``nulls``."""
        self.part = None
        for part in self.rest:
            nulls = 1 if part.keys.null_count else 0
            if nulls:
                self.nulls.append(part.slice(0, 1))
            if len(part) > nulls:
                self.part = part.slice(nulls, len(part) - nulls)
                self.keys = comparable(self.part.keys)
                return

    def take(self, count: int) -> Part | None:
        """The next ``count`` keys of the chunk, which it then has no longer."""
        if self.part is None or not count:
            return None
        taken, left = self.part.slice(0, count), len(self.part) - count
        if left:
            self.part, self.keys = self.part.slice(count, left), self.keys[count:]
        else:
            self.advance()
        return taken


def merged(runs: Sequence[Chunks], unite: Callable[[Sequence[Part]], Part]) -> Chunks:
    """The keys of all runs in order, each once; ``unite`` makes one part of several."""
    open_runs = [_Run(run) for run in runs]
    for run in open_runs:
        run.advance()
    nulls = [part for run in open_runs for part in run.nulls]
    if nulls:
        yield unite(nulls)
    while live := [run for run in open_runs if run.part is not None]:
        cut = min(_last(run.keys) for run in live)
        taken = [run.take(count_below(run.keys, cut, inclusive=True)) for run in live]
        yield unite([part for part in taken if part is not None])


def _last(keys: Comparable) -> Any:
    last = keys[len(keys) - 1]
    return last.as_py() if isinstance(last, pa.Scalar) else last
