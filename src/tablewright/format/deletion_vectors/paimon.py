"""Paimon's deletion-vectors index file: the vectors of many data files, bin after bin.

A version byte, then bins without anything between them. The file names no data files and has no count: the offset of a
vector and its data file are in the index manifest, as a :class:`VectorRange`. A file without any bin is one byte long;
Paimon writes it where all vectors of a bucket have gone.

**Two meanings of** ``length``: for a 32-bit bin it is the payload alone, for a 64-bit bin the whole bin, size field and
checksum included. ``offset`` is that of the size field for both. Hence a reader that has only the range fetches the
bytes from ``offset`` up to ``VectorRange.end_max``, at most 8 too many, and :func:`decode_vector` uses what it needs.

Format: ``docs/format/deletion-vectors.md#the-wrappings``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.deletion_vectors.bins import FRAME_BYTES, Bin, Width, decode_bin_at, encode_bin
from tablewright.format.row_set import RowSet

__all__ = [
    "BinPlace",
    "VectorRange",
    "decode_vector",
    "decode_vectors",
    "encode_vector_file",
    "encode_vector_files",
    "walk_vector_file",
]

VERSION = b"\x01"
TARGET_SIZE = 2 * 1024 * 1024  # deletion-vector.index-file.target-size

_INT_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class VectorRange:
    """Where the vector of a data file lies: ``f0``, ``f1``, ``f2`` and ``_CARDINALITY`` of the index manifest.

    ``cardinality`` is ``None`` in old manifests.
    """

    data_file: str
    offset: int
    length: int
    cardinality: int | None = None

    @property
    def end_max(self) -> int:
        """The bin ends here or up to 8 bytes before (exclusive); a file may be shorter than that."""
        return self.offset + self.length + FRAME_BYTES


@dataclass(frozen=True, slots=True)
class BinPlace:
    """A bin as it was met on a walk: everything of its :class:`VectorRange` but the name of the data file."""

    offset: int
    length: int
    cardinality: int
    width: Width

    def of(self, data_file: str) -> VectorRange:
        """The range that the index manifest holds for it."""
        return VectorRange(data_file, self.offset, self.length, self.cardinality)


def _length(width: Width, payload_size: int) -> int:
    return payload_size if width == 32 else payload_size + FRAME_BYTES


# ------------------------------------------------------------------------------------------------------------- encoding
def encode_vector_file(vectors: Mapping[str, RowSet], width: Width = 32) -> tuple[bytes, tuple[VectorRange, ...]]:
    """One file with the vectors of these data files, in their order, and where each lies.

    >>> data, ranges = encode_vector_file({"a.parquet": RowSet.of([0, 2, 5, 9])})
    >>> len(data), ranges
    (37, (VectorRange(data_file='a.parquet', offset=1, length=28, cardinality=4),))
    >>> encode_vector_file({})
    (b'\\x01', ())
    """
    return _file(iter(vectors.items()), width, None)


def encode_vector_files(
    vectors: Mapping[str, RowSet], *, target_size: int = TARGET_SIZE, width: Width = 32
) -> tuple[tuple[bytes, tuple[VectorRange, ...]], ...]:
    """As many files as Paimon would write: one ends with the bin that makes it longer than ``target_size`` bytes.

    >>> five = {f"{name}.parquet": RowSet.of([1]) for name in "abcde"}
    >>> [(len(data), len(ranges)) for data, ranges in encode_vector_files(five, target_size=50)]
    [(61, 2), (61, 2), (31, 1)]
    """
    waiting, files, written = iter(vectors.items()), [], 0
    while written < len(vectors):
        files.append(_file(waiting, width, target_size))
        written += len(files[-1][1])
    return tuple(files)


def _file(
    waiting: Iterator[tuple[str, RowSet]], width: Width, target_size: int | None
) -> tuple[bytes, tuple[VectorRange, ...]]:
    """A file of the next vectors: of all, or until it has grown past its target."""
    parts, ranges, size = [VERSION], [], len(VERSION)
    for data_file, vector in waiting:
        stored = encode_bin(vector, width)
        if size + len(stored) > _INT_MAX:
            raise InvalidRequest("A deletion-vectors file takes at most 2 GiB: write several, with a target size.")
        ranges.append(VectorRange(data_file, size, _length(width, len(stored) - FRAME_BYTES), len(vector)))
        parts.append(stored)
        size += len(stored)
        if target_size is not None and size > target_size:
            break
    return b"".join(parts), tuple(ranges)


# ------------------------------------------------------------------------------------------------------------- decoding
def decode_vector(data: bytes | memoryview, range: VectorRange, path: str) -> RowSet:
    """The vector of one range. ``data`` begins with its bin: the bytes from ``range.offset`` on, what follows is left.

    >>> data, (place,) = encode_vector_file({"a.parquet": RowSet.of([3])}, width=64)
    >>> decode_vector(data[place.offset : place.end_max], place, "index-1").to_numpy().tolist()
    [3]
    """
    return _decode(data, 0, range, path)


def decode_vectors(data: bytes | memoryview, ranges: Sequence[VectorRange], path: str) -> dict[str, RowSet]:
    """The vectors of some ranges out of a whole file, by data file.

    >>> data, ranges = encode_vector_file({"a.parquet": RowSet.of([3]), "b.parquet": RowSet()})
    >>> {name: len(vector) for name, vector in decode_vectors(data, ranges, "index-1").items()}
    {'a.parquet': 1, 'b.parquet': 0}
    """
    _check_version(data, path)
    vectors = {range.data_file: _decode(data, range.offset, range, path) for range in ranges}
    if len(vectors) != len(ranges):
        raise CorruptTable(path, (f"{len(ranges)} ranges belong to only {len(vectors)} data files",))
    return vectors


def walk_vector_file(data: bytes | memoryview, path: str) -> tuple[tuple[BinPlace, RowSet], ...]:
    """All bins of a whole file, one after the other; their data files are in the index manifest only.

    >>> data, _ = encode_vector_file({"a.parquet": RowSet.of([3])}, width=64)
    >>> [(place.offset, place.length, len(vector)) for place, vector in walk_vector_file(data, "index-1")]
    [(1, 42, 1)]
    """
    _check_version(data, path)
    found, offset = list[tuple[BinPlace, RowSet]](), len(VERSION)
    while offset < len(data):
        bin = decode_bin_at(data, offset, path=path, bin=f"{len(found)} at byte {offset}")
        found.append((BinPlace(offset, _length(bin.width, bin.payload_size), len(bin.vector), bin.width), bin.vector))
        offset += bin.size
    return tuple(found)


def _check_version(data: bytes | memoryview, path: str) -> None:
    version = bytes(data[:1])
    if version != VERSION:
        begin = f"begins with version {version[0]}" if version else "is empty"
        raise CorruptTable(path, (f"the deletion-vectors file {begin}; version {VERSION[0]} is the one that is known",))


def _decode(data: bytes | memoryview, at: int, range: VectorRange, path: str) -> RowSet:
    name = f"of {range.data_file} at byte {range.offset}"
    if range.offset < len(VERSION) or range.length < 0:
        raise CorruptTable(path, (f"bin {name}: no bin has offset {range.offset} and length {range.length}",))
    bin = decode_bin_at(data, at, path=path, bin=name)
    problems = _problems(bin, range)
    if problems:
        raise CorruptTable(path, tuple(f"bin {name}: {problem}" for problem in problems))
    return bin.vector


def _problems(bin: Bin, range: VectorRange) -> tuple[str, ...]:
    """What the index manifest says otherwise than the bin itself."""
    problems = []
    length = _length(bin.width, bin.payload_size)
    if length != range.length:
        problems.append(f"the index manifest gives length {range.length} where its {bin.width}-bit bitmap has {length}")
    if range.cardinality is not None and range.cardinality != len(bin.vector):
        problems.append(f"the index manifest counts {range.cardinality} positions, it holds {len(bin.vector)}")
    return tuple(problems)
