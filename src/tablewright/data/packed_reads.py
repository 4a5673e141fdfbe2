"""Single values of a column of numbers in a local file, read without the codec.

:mod:`tablewright.format.packed_column` knows the layout. Where chunks are is cached by what identifies the file
(:func:`packed_chunks`). For searches at thousands of places the file is mapped into memory, so that a value costs no
system call (:mod:`.mapped`); the few chunks of a lookup are read (:mod:`.number_rows`).

A file elsewhere, or a column with another encoding, has no such reader: the codec reads it.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.cache import CacheKind
from tablewright.data.codec_errors import reading
from tablewright.data.mapped import FileBytes, are_mapped, kept_mapping
from tablewright.data.number_files import NumberFile, open_numbers
from tablewright.errors import CorruptTable
from tablewright.format.packed_column import Chunks, LoadedChunks, decode_chunks, load_chunks
from tablewright.storage.base import Store
from tablewright.storage.identity import is_settled
from tablewright.storage.requests import count_request

__all__ = ["PackedColumn", "open_packed", "packed_chunks"]

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class PackedColumn:
    """A column whose values can be read one by one, from row ``first_row`` on."""

    path: str
    data: FileBytes
    chunks: Chunks

    @property
    def first_row(self) -> int:
        """Rows before this one have to be read in another way."""
        return int(self.chunks.begins[0])

    def take(self, rows: Longs) -> npt.NDArray[Any]:
        """The values at any rows, as unsigned numbers of the column's width."""
        owners = self.chunks.owners(rows)
        return self.load(owners).values(rows - self.chunks.begins[owners])

    def load(self, which: Longs) -> LoadedChunks:
        """These chunks, which may repeat; :class:`CorruptTable` if they can't be what they should."""
        count_request("read chunks", path=self.path)
        self._check_size()
        try:
            return load_chunks(self.chunks, which, self.data, self.chunks.offsets[which])
        except ValueError as error:
            raise CorruptTable(self.path, (f"{error}",)) from error

    def begins(self, rows: Longs) -> Longs:
        """Where in the file the chunks of these rows begin; rows before :attr:`first_row` are left out."""
        owners = self.chunks.owners(rows)
        return self.chunks.offsets[owners[owners >= 0]]

    def is_mapped(self, positions: Longs) -> bool:
        """Whether most of the pages at these positions of the file were used before (:func:`.mapped.are_mapped`)."""
        self._check_size()
        return are_mapped(self.data, positions)

    def touch(self, positions: Longs) -> None:
        """Read the bytes at these positions of the file, so that their pages are mapped when they are needed.

        Other threads run meanwhile: ``take`` of numpy releases the interpreter's lock.
        """
        self._check_size()
        self.data.take(positions)

    def _check_size(self) -> None:
        """:class:`CorruptTable` if the file has another size: reading bytes that are gone would end the process."""
        with reading(self.path):
            if os.stat(self.path).st_size != len(self.data):
                raise CorruptTable(self.path, ("it has another size than before",))


_chunks = CacheKind[tuple[Chunks | None, ...]]("chunks of columns")


def open_packed(store: Store, path: str, columns: Mapping[str, pa.DataType]) -> tuple[PackedColumn | None, ...]:
    """Top-level columns of a file, with their types; ``None`` for those that only the codec can read."""
    with open_numbers(store, path) as file:
        if file is None:
            return (None,) * len(columns)
        pairs = zip(file.places(list(columns)), columns.values(), strict=True)
        has_type = [place if place >= 0 and file.columns[place].type == kind else -1 for place, kind in pairs]
        found = packed_chunks(file, has_type)
        data = None if all(chunks is None for chunks in found) else kept_mapping(store, file)
        if data is None:
            return (None,) * len(columns)
        return tuple(None if chunks is None else PackedColumn(file.path, data, chunks) for chunks in found)


def packed_chunks(file: NumberFile, places: Sequence[int]) -> tuple[Chunks | None, ...]:
    """Where the chunks of the columns with these numbers are; ``None`` for -1, and where only the codec can tell."""
    key: Hashable = (file.path, file.identity, tuple(places))
    found = _chunks.find(key)
    if found is None:
        found = tuple(_chunks_of(file, place) for place in places)
        if is_settled(file.identity):
            _chunks.keep(key, found, sum(64 + (chunks.nbytes if chunks is not None else 0) for chunks in found))
    return found


def _chunks_of(file: NumberFile, place: int) -> Chunks | None:
    kind = None if place < 0 else file.columns[place].type
    if kind is None:
        return None
    found = decode_chunks(file.columns[place].metadata, file.num_rows, file.read_bytes)
    if found is None or found.bits != kind.bit_width or int(found.ends.max()) > file.identity[2]:
        return None
    return found
