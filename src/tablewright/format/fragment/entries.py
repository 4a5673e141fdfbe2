"""The files of all fragments of a manifest, as columns, read from the bytes without decoding a fragment.

One row per data file and one per deletion file. A hundred thousand fragments have few distinct lists of fields, so
each data file holds the number of its list (its *layout*), and a list is decoded once. Fragments are scanned in
blocks, so that memory beside the result is one block.

Files whose field lists are not stored as one packed list (valid protobuf that no known writer makes) are decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablewright.format.fragment.codec import decode_fragment
from tablewright.format.fragment.facts import NO_BASE
from tablewright.format.fragment.sequence import FragmentList
from tablewright.format.fragment.value import DataFile, DeletionFileType
from tablewright.format.naming import deletion_file_path
from tablewright.format.proto import table_pb2 as pb
from tablewright.format.wire import Ints, Longs, Scan, as_buffer, decode_message, encode_length_delimited, scan

__all__ = ["FileLayout", "FragmentFiles", "files_of"]

_FILES, _DELETION, _ID = 2, 3, 1
_PATH, _FIELDS, _COLUMNS, _MAJOR, _MINOR, _BYTES, _FILE_BASE = 1, 2, 3, 4, 5, 6, 7
_TYPE, _READ_VERSION, _FILE_ID, _DELETION_BASE = 1, 2, 3, 7
_KEPT_MAX = 4096
_BLOCK = 1 << 13
_FILE_BYTES_MAX = np.uint64(1 << 45)


@dataclass(frozen=True, slots=True)
class FileLayout:
    """What data files of one kind hold: field ids, the physical column of each, and the file version."""

    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    version: tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FragmentFiles:
    """Columns over data files, and over deletion files; rows are positions in the list of fragments.

    ``data_paths`` are as the manifest has them, relative to ``data/``; ``data_bytes`` is 0 where the size is not
    recorded (or above 32 TiB). ``deletion_paths`` are relative to the root. Bases are -1 where a file is in the table's
    own directory.
    """

    data_rows: Ints
    data_paths: list[str]
    data_bytes: Ints
    data_bases: Ints
    data_layouts: Ints
    layouts: tuple[FileLayout, ...]
    deletion_rows: Ints
    deletion_paths: list[str]
    deletion_bases: Ints

    def data_file(self, place: int) -> DataFile:
        """The entry of one data file."""
        layout, base = self.layouts[self.data_layouts[place]], int(self.data_bases[place])
        return DataFile(
            path=self.data_paths[place],
            fields=layout.fields,
            column_indices=layout.column_indices,
            file_major_version=layout.version[0],
            file_minor_version=layout.version[1],
            file_size_bytes=int(self.data_bytes[place]),
            base_id=None if base == NO_BASE else base,
        )


class _Collector:
    """Columns under construction."""

    def __init__(self) -> None:
        self.rows: list[Ints] = []
        self.sizes: list[Ints] = []
        self.bases: list[Ints] = []
        self.numbers: list[int] = []
        self.paths: list[str] = []
        self.layouts: dict[FileLayout, int] = {}
        self.known: dict[tuple[bytes, bytes, int, int], int] = {}
        self.deletion_rows: list[Ints] = []
        self.deletion_paths: list[str] = []
        self.deletion_bases: list[Ints] = []

    def number_of(self, layout: FileLayout) -> int:
        return self.layouts.setdefault(layout, len(self.layouts))

    def add_values(self, row: int, files: Sequence[DataFile]) -> None:
        """Files of a fragment that was decoded."""
        self.rows.append(np.full(len(files), row, np.int64))
        self.sizes.append(_sizes(np.array([file.file_size_bytes for file in files], np.uint64)))
        self.bases.append(np.array([NO_BASE if file.base_id is None else file.base_id for file in files], np.int64))
        self.paths += [file.path for file in files]
        for file in files:
            version = (file.file_major_version, file.file_minor_version)
            self.numbers.append(self.number_of(FileLayout(file.fields, file.column_indices, version)))


def files_of(fragments: FragmentList) -> FragmentFiles:
    """All files that these fragments name. A list that is not very long keeps them: each filtered scan asks."""
    found: FragmentFiles | None = fragments.files
    if found is None:
        found = _files_of(fragments)
        if len(fragments) <= _KEPT_MAX:
            fragments.files = found
    return found


def _files_of(fragments: FragmentList) -> FragmentFiles:
    found = _Collector()
    for start in range(0, len(fragments), _BLOCK):
        _add_block(found, fragments.raw[start : start + _BLOCK], start, fragments.path)
    return FragmentFiles(
        data_rows=_joined(found.rows),
        data_paths=found.paths,
        data_bytes=_joined(found.sizes),
        data_bases=_joined(found.bases),
        data_layouts=np.array(found.numbers, np.int64),
        layouts=tuple(found.layouts),
        deletion_rows=_joined(found.deletion_rows),
        deletion_paths=found.deletion_paths,
        deletion_bases=_joined(found.deletion_bases),
    )


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _add_block(found: _Collector, raw: Sequence[bytes], start: int, path: str) -> None:
    buffer, starts, ends = as_buffer(raw)
    top = scan(buffer, starts, ends, numbers=(_ID,), spans=(_FILES, _DELETION))
    _add_data_files(found, raw, buffer.tobytes(), top, start, path)
    _add_deletions(found, raw, buffer, top, start, path)


def _add_data_files(found: _Collector, raw: Sequence[bytes], data: bytes, top: Scan, start: int, path: str) -> None:
    spans = top.spans[_FILES]
    buffer = np.frombuffer(data, np.uint8)
    files = scan(
        buffer,
        spans.starts,
        spans.ends,
        numbers=(_MAJOR, _MINOR, _BYTES, _FILE_BASE),
        spans=(_PATH, _FIELDS, _COLUMNS),
    )
    count = len(spans.rows)
    packed = np.ones(count, np.bool_)
    for number in (_PATH, _FIELDS, _COLUMNS):
        packed &= np.bincount(files.spans[number].rows, minlength=count) == 1
    odd_rows = np.unique(spans.rows[~packed])
    kept = np.flatnonzero(~np.isin(spans.rows, odd_rows))
    paths, fields, columns = (_slices(data, files, number, kept) for number in (_PATH, _FIELDS, _COLUMNS))
    majors, minors = files.numbers[_MAJOR][kept].tolist(), files.numbers[_MINOR][kept].tolist()
    found.rows.append(spans.rows[kept] + start)
    found.sizes.append(_sizes(files.numbers[_BYTES][kept]))
    found.bases.append(_bases(files, _FILE_BASE)[kept])
    found.paths += _texts(paths, raw, path)
    for key in zip(fields, columns, majors, minors, strict=True):
        if key not in found.known:
            found.known[key] = found.number_of(_layout(*key, path))
        found.numbers.append(found.known[key])
    for row in odd_rows.tolist():
        found.add_values(start + row, decode_fragment(raw[row], path).files)


def _texts(paths: Iterator[bytes], raw: Sequence[bytes], path: str) -> list[str]:
    try:
        return [text.decode() for text in paths]
    except UnicodeDecodeError:
        for data in raw:
            decode_fragment(data, path)  # says which one it is
        raise


def _sizes(recorded: Longs) -> Ints:
    """Sizes as recorded; one that no file can have counts as not recorded."""
    return np.where(recorded <= _FILE_BYTES_MAX, recorded, 0).astype(np.int64)


def _slices(data: bytes, files: Scan, number: int, kept: Ints) -> Iterator[bytes]:
    """The bytes of a field that every kept file has once."""
    spans = files.spans[number]
    order = np.argsort(spans.rows, kind="stable")
    at = order[np.searchsorted(spans.rows[order], kept)]
    return (data[begin:end] for begin, end in zip(spans.starts[at].tolist(), spans.ends[at].tolist(), strict=True))


def _layout(fields: bytes, columns: bytes, major: int, minor: int, path: str) -> FileLayout:
    data = encode_length_delimited(_FIELDS, fields) + encode_length_delimited(_COLUMNS, columns)
    message = decode_message(pb.DataFile, data, path, "a data file")
    return FileLayout(tuple(message.fields), tuple(message.column_indices), (major, minor))


def _bases(found: Scan, number: int) -> Ints:
    bases = (found.numbers[number] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return np.where(found.present[number], bases, NO_BASE)


def _add_deletions(
    found: _Collector, raw: Sequence[bytes], buffer: npt.NDArray[np.uint8], top: Scan, start: int, path: str
) -> None:
    spans = top.spans[_DELETION]
    files = scan(buffer, spans.starts, spans.ends, numbers=(_TYPE, _READ_VERSION, _FILE_ID, _DELETION_BASE))
    for row in spans.rows[files.numbers[_TYPE] > max(DeletionFileType)].tolist():
        decode_fragment(raw[row], path)  # says what is wrong with it
    ids = top.numbers[_ID][spans.rows].tolist()
    columns = (files.numbers[number].tolist() for number in (_READ_VERSION, _FILE_ID, _TYPE))
    found.deletion_rows.append(spans.rows + start)
    found.deletion_bases.append(_bases(files, _DELETION_BASE))
    found.deletion_paths += map(deletion_file_path, ids, *columns)
