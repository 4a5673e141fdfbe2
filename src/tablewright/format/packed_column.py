"""Numbers in a data file that can be read one by one: where the *chunks* of a column are, and a value out of one.

The codec decodes whole chunks, with some 20 microseconds of overhead for each place that is asked for. A search in a
sorted column wants single values at thousands of places, so the two encodings that numbers nearly always have are read
here: *flat* and *inline bit-packing* in mini-blocks of file version 2.2. All other columns are left to the codec.

1. A page has two buffers: a ``u32`` per chunk (size in words of 8 bytes, logarithm of its rows), and the chunks.
2. A chunk is a header of 8 bytes, which has the size of the values, and these. Flat values lie one after the other.
   Packed ones begin with their number of bits, *w*; 1,024 values of *w* bits follow, interleaved in *lanes*
   (:meth:`LoadedChunks.values`).
3. The value at a row is then found by arithmetic, for any number of rows at once.

The bytes of chunks are taken out of the whole file (:func:`load_chunks`) or read chunk by chunk (:meth:`Chunks.pick`).
Headers are compared with the sizes in the table, so a place that was damaged gives no value.

Format: ``docs/format/data-files.md#chunks-of-numbers``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tablewright.format.packed_pages import NumberPage, decode_pages

__all__ = [
    "CHUNK_ROWS_MAX",
    "HEADER_BYTES",
    "PACKED_ROWS",
    "Chunks",
    "LoadedChunks",
    "PickedRows",
    "Read",
    "decode_chunks",
    "have_sizes",
    "lanes_of",
    "load_chunks",
]

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[Any]
Read = Callable[[int, int], bytes]
"""Returns the bytes of a range of a file."""

CHUNK_ROWS_MAX = 4096
_WORD = 8
HEADER_BYTES = 8
_HEADER = struct.Struct("<HI")  # the number of levels, which is 0, and the bytes of the values; two bytes fill it up
PACKED_ROWS = 1024
_LOG_BYTES_PER_BIT = 7  # 1,024 values of one bit
_BITS = (8, 16, 32, 64)
_LOG = {8: 3, 16: 4, 32: 5, 64: 6}
_OTHER_SIZE = "a chunk of its values has another size than it says"
_LANE_ORDER = np.array([0, 4, 2, 6, 1, 5, 3, 7])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Chunks:
    """The chunks of the last pages of a column: values of ``bits`` bits, from row ``begins[0]`` on.

    Chunk i has the rows from ``begins[i]`` to ``begins[i + 1]`` (excluded), and its bytes are those of the file from
    ``offsets[i]`` to ``ends[i]``, both multiples of 8. Its values have ``widths[i]`` bits, by the size of the chunk.
    """

    bits: int
    begins: Longs
    offsets: Longs
    ends: Longs
    widths: npt.NDArray[np.uint8]
    is_packed: npt.NDArray[np.bool_]

    @property
    def nbytes(self) -> int:
        """What it takes in memory."""
        return sum(part.nbytes for part in (self.begins, self.offsets, self.ends, self.widths, self.is_packed))

    def owners(self, rows: Longs) -> Longs:
        """The chunk that holds each of these rows."""
        return self.begins.searchsorted(rows, "right") - 1

    def pick(self, rows: Longs, read: Read) -> PickedRows | None:
        """The chunks of some ascending rows, read; ``None`` if a row has none, or if their bytes can't be what they
        should.
        """
        owners = self.owners(rows)
        if owners[0] < 0:
            return None
        edges = [0, *((owners[1:] != owners[:-1]).nonzero()[0] + 1).tolist(), len(owners)]
        distinct = owners[edges[:-1]]
        ranges = list(zip(self.offsets[distinct].tolist(), self.ends[distinct].tolist(), strict=True))
        found = [read(*each) for each in ranges]
        sizes = [end - begin for begin, end in ranges]
        if [len(data) for data in found] != sizes:
            return None
        data = b"".join(found)
        if not have_sizes(data, sizes):
            return None
        starts = list(accumulate(sizes[:-1], initial=0))
        return PickedRows(
            bits=self.bits,
            data=data,
            begins=np.repeat(starts, [end - begin for begin, end in pairwise(edges)]),
            places=rows - self.begins[owners],
            widths=self.widths[owners],
            is_packed=self.is_packed[owners],
        )


def decode_chunks(column: bytes, num_rows: int, read: Read) -> Chunks | None:
    """The chunks of a column with this metadata, in a file with this many rows; ``read`` returns bytes of the file.

    Earlier pages that can't be read by row are left out; ``None`` if the last one can't, or if anything is odd.
    """
    try:
        pages = [page for _, page in decode_pages(column, num_rows)]
    except ValueError:
        return None
    readable: list[NumberPage] = []
    for page in reversed(pages):
        if not page.has_chunks or (readable and readable[-1].bits != page.bits):
            break
        readable.append(page)
    readable.reverse()
    if not readable:
        return None
    first_row = num_rows - sum(page.rows for page in readable)
    return _chunks(readable, first_row, [read(*page.table) for page in readable])


def _chunks(pages: Sequence[NumberPage], first_row: int, tables: Sequence[bytes]) -> Chunks | None:
    """The chunks of these pages, given their tables; ``None`` if the two don't fit each other."""
    counts = np.array([len(table) // 4 for table in tables], np.int64)
    if np.any(counts < 1) or any(len(table) % 4 for table in tables):
        return None
    entries = np.frombuffer(b"".join(tables), "<u4")  # 4 bytes suffice: a table may have 100,000 of them
    last = np.cumsum(counts) - 1
    first, size = last + 1 - counts, pages[0].bits // 8
    sizes, rows = ((entries >> 4) + np.uint32(1)) * np.uint32(_WORD), np.uint32(1) << (entries & 15)
    rows[last] = 0  # the last chunk of a page has the rest
    rest = np.array([page.rows for page in pages], np.int64) - np.add.reduceat(rows, first, dtype=np.int64)
    ends = np.cumsum(sizes, dtype=np.int64)
    begins = np.array([page.data[0] for page in pages], np.int64)
    ends += np.repeat(begins - (ends[first] - sizes[first]), counts)
    if np.any((rest < 1) | (rest > CHUNK_ROWS_MAX)) or ends[last].tolist() != [page.data[1] for page in pages]:
        return None
    rows[last] = rest
    is_packed = np.repeat([page.is_packed for page in pages], counts)
    body, least = sizes - np.uint32(HEADER_BYTES), np.where(is_packed, np.uint32(size), rows * np.uint32(size))
    if np.any((body < least) | (rows > np.where(is_packed, np.uint32(PACKED_ROWS), np.uint32(CHUNK_ROWS_MAX)))):
        return None
    widths = np.where(is_packed, (body - np.uint32(size)) >> _LOG_BYTES_PER_BIT, np.uint32(8 * size))
    if np.any(widths > 8 * size):
        return None
    return Chunks(
        bits=pages[0].bits,
        begins=first_row + np.concatenate(([0], np.cumsum(rows, dtype=np.int64))),
        offsets=ends - sizes,
        ends=ends,
        widths=widths.astype(np.uint8),
        is_packed=is_packed,
    )


@dataclass(frozen=True, slots=True, eq=False)
class PickedRows:
    """Rows of a column whose chunks were read: for each the place in its chunk, which begins in ``data``, its width,
    and whether it is packed.
    """

    bits: int
    data: bytes
    begins: Longs
    places: Longs
    widths: npt.NDArray[np.uint8]
    is_packed: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.places)

    @staticmethod
    def join(parts: Sequence[PickedRows]) -> PickedRows:
        """The rows of all parts, of one number of bits, one after the other."""
        if len(parts) == 1:
            return parts[0]
        shifts = accumulate([len(part.data) for part in parts[:-1]], initial=0)
        return PickedRows(
            bits=parts[0].bits,
            data=b"".join([part.data for part in parts]),
            begins=np.concatenate([part.begins + shift for part, shift in zip(parts, shifts, strict=True)]),
            places=np.concatenate([part.places for part in parts]),
            widths=np.concatenate([part.widths for part in parts]),
            is_packed=np.concatenate([part.is_packed for part in parts]),
        )

    def values(self) -> Words:
        """Their values; ``ValueError`` if a chunk can't be what it should."""
        data = np.frombuffer(self.data, np.uint8)
        return _loaded(self.bits, self.is_packed, self.widths, data, self.begins).values(self.places)


@dataclass(frozen=True, slots=True, eq=False)
class LoadedChunks:
    """Chunks whose bytes are in memory, as ``words`` of the column's unsigned type: see :func:`load_chunks`."""

    words: Words
    first: Longs  # the word with the first value, or with the number of bits
    width: Longs  # bits of a value; 0 in a flat chunk too
    is_packed: npt.NDArray[np.bool_]

    def at(self, chunks: Longs) -> LoadedChunks:
        """One entry for each of ``chunks``, which may repeat."""
        return LoadedChunks(self.words, self.first[chunks], self.width[chunks], self.is_packed[chunks])

    def values(self, places: Longs) -> Words:
        """The value at a place in each of the chunks."""
        if self.is_packed.all():
            return self._packed(places)
        if not self.is_packed.any():
            flat: Words = self.words[self.first + places]
            return flat
        found = np.empty(len(places), self.words.dtype)
        for here, pick in ((self.is_packed, LoadedChunks._packed), (~self.is_packed, LoadedChunks.values)):
            found[here] = pick(self.at(np.flatnonzero(here)), places[here])
        return found

    def _packed(self, places: Longs) -> Words:
        """Value i is in lane ``i % lanes``, and there it has a number (:func:`lanes_of`). Bits of a lane lie in every
        lanes-th word: those of the value begin in one, and may end in the next.
        """
        kind, width = self.words.dtype.type, self.width
        bits = self.words.dtype.itemsize * 8
        lanes, numbers = lanes_of(bits)
        begin = numbers[places] * width
        shift = (begin & (bits - 1)).astype(kind)
        at = self.first + 1 + (places & (lanes - 1)) + (begin >> _LOG[bits]) * lanes
        end = self.first + 1 + width * lanes - 1  # the last word; a chunk without bits has none
        lower = self.words[np.minimum(at, end)] >> shift
        upper = self.words[np.minimum(at + lanes, end)] << ((kind(bits) - shift) & kind(bits - 1))
        upper[shift == 0] = 0
        found: Words = (lower | upper) & _masks(bits)[width]
        return found


@lru_cache(maxsize=len(_BITS))
def lanes_of(bits: int) -> tuple[int, Longs]:
    """How many lanes 1,024 values have in words of this many bits, and the number of each value in its lane.

    Value i is in lane ``i % lanes``; its number is ``8 * order[(i % 128) // 16 - lane // 16] + i // 128``.
    """
    lanes, place = PACKED_ROWS // bits, np.arange(PACKED_ROWS)
    return lanes, 8 * _LANE_ORDER[(place % 128 - place % lanes) // 16] + place // 128


def load_chunks(chunks: Chunks, which: Longs, data: npt.NDArray[np.uint8], begins: Longs) -> LoadedChunks:
    """The chunks ``which``, whose bytes lie in ``data``, each from its number in ``begins`` on, a multiple of 8.

    ``ValueError`` if a chunk says another size, or another number of bits, than the table of its page does.
    """
    headers = data[: len(data) // _WORD * _WORD].view("<u8")[begins // _WORD]
    said = (headers >> np.uint64(16)) & np.uint64(0xFFFFFFFF)
    whole = HEADER_BYTES + (said.astype(np.int64) + (_WORD - 1)) // _WORD * _WORD
    if np.any((headers & np.uint64(0xFFFF)) != 0) or np.any(whole != chunks.ends[which] - chunks.offsets[which]):
        raise ValueError(_OTHER_SIZE)
    return _loaded(chunks.bits, chunks.is_packed[which], chunks.widths[which], data, begins)


def have_sizes(data: bytes, sizes: Sequence[int]) -> bool:
    """Whether the chunks that ``data`` consists of say in their headers that they have these sizes.

    For few of them; :func:`load_chunks` compares many at once.
    """
    for begin, size in zip(accumulate(sizes, initial=0), sizes, strict=False):  # the last sum is the end
        levels, nbytes = _HEADER.unpack_from(data, begin)
        if levels or HEADER_BYTES + (nbytes + _WORD - 1) // _WORD * _WORD != size:
            return False
    return True


def _loaded(
    bits: int,
    is_packed: npt.NDArray[np.bool_],
    widths: npt.NDArray[np.uint8],
    data: npt.NDArray[np.uint8],
    begins: Longs,
) -> LoadedChunks:
    words = data[: len(data) // _WORD * _WORD].view(f"<u{bits // 8}")
    first = (begins + HEADER_BYTES) * 8 // bits
    width = np.where(is_packed, widths, 0).astype(np.int64)
    if np.any(words[first[is_packed]] != width[is_packed].astype(words.dtype)):
        raise ValueError(_OTHER_SIZE)
    return LoadedChunks(words, first, width, is_packed)


@lru_cache(maxsize=len(_BITS))
def _masks(bits: int) -> Words:
    """For each number of bits up to this one, a word with these bits set."""
    return np.array([(1 << width) - 1 for width in range(bits + 1)], f"<u{bits // 8}")
