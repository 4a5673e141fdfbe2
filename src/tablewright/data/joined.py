"""Small data files, read whole, and as many as possible opened as one.

Opening a file costs the codec far more than decoding the few rows of a small one, and on a store that answers slowly it
asks for the size of the file, then for its end, then for its pages. So

1. the bytes of a small file are read at once, by one request;
2. files of one kind are joined (:mod:`tablewright.format.file_join`) and written to a local file, which exists while it
   is read: the codec opens that one;
3. the rows come as one batch, of which each fragment has a slice.

A file that can't be joined is a local file by itself, where that saves requests. No error is decided here: a file that
is damaged, or not what the manifest says, is left to who reads fragments one by one and says what is wrong.

Tests: ``tests/unit/data/test_joined.py``, ``tests/differential/data/test_joined.py``.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tablewright.data.context import ReadContext
from tablewright.data.read import FragmentReader, ToOpen, files_to_open
from tablewright.data.shape import ReadShape
from tablewright.data.spool import present
from tablewright.format.file_join import WholeFile, join_files, whole_file
from tablewright.format.fragment import DataFile, Fragment
from tablewright.format.row_ids import RowIdSequence
from tablewright.format.row_set import RowSet
from tablewright.storage.address import join_uri
from tablewright.storage.base import Location, Store
from tablewright.storage.identity import FileIdentity, is_local, read_identified
from tablewright.storage.requests import count_request
from tablewright.storage.subtree import SubtreeStore
from tablewright.storage.temporary import temporary_space
from tablewright.storage.together import answers_slowly

__all__ = ["WholeFragment", "read_joined", "read_whole"]

_LOCAL_BYTES_MAX, _REMOTE_BYTES_MAX = 64 * 1024, 256 * 1024
_FIRST_JOINED = (2, 1)


@dataclass(frozen=True, slots=True)
class _Part:
    """A file that was read whole. Without ``whole`` it can't be joined with others."""

    asked: ToOpen
    data: bytes
    whole: WholeFile | None

    @property
    def kind(self) -> Hashable:
        file = self.asked.file
        own = id(self) if self.whole is None else self.whole.kind
        return own, file.fields, file.column_indices, file.file_major_version, file.file_minor_version


@dataclass(frozen=True, slots=True)
class WholeFragment:
    """A fragment with the bytes of its files that hold a wanted column, and which files the local ones were."""

    fragment: Fragment
    identities: Mapping[str, FileIdentity] = field(default_factory=dict)
    parts: tuple[_Part, ...] = ()

    @property
    def kind(self) -> Hashable:
        """Fragments of one kind are read together."""
        return tuple(part.kind for part in self.parts)


def read_whole(context: ReadContext, fragment: Fragment, shape: ReadShape) -> WholeFragment | None:
    """The files of a small fragment; ``None`` if it has to be read by itself."""
    identities: dict[str, FileIdentity] = {}
    parts = []
    for asked in files_to_open(context, fragment, shape):
        part = _read_remote(asked) if answers_slowly(asked.store) else _read_local(asked, identities)
        if part is None or len(part.data) != asked.file.file_size_bytes:
            return None
        parts.append(part)
    return WholeFragment(fragment, identities, tuple(parts))


def _read_remote(asked: ToOpen) -> _Part | None:
    if not 0 < asked.file.file_size_bytes <= _REMOTE_BYTES_MAX:
        return None
    with present(join_uri(asked.store.location.uri, asked.path)):
        data = asked.store.get(asked.path)
    return _Part(asked, data, whole_file(data))


def _read_local(asked: ToOpen, identities: dict[str, FileIdentity]) -> _Part | None:
    file = asked.file
    if not 0 < file.file_size_bytes <= _LOCAL_BYTES_MAX:
        return None
    if (file.file_major_version, file.file_minor_version) < _FIRST_JOINED:
        return None
    location = asked.store.codec_location(asked.path)
    if location is None or not is_local(location):
        return None
    count_request("read", path=location.uri)
    found = read_identified(location.uri, _LOCAL_BYTES_MAX)
    whole = None if found is None else whole_file(found[1])
    if found is None or whole is None:
        return None
    identities[location.uri] = found[0]
    return _Part(asked, found[1], whole)


def read_joined(context: ReadContext, found: Sequence[WholeFragment], shape: ReadShape) -> list[pa.RecordBatch] | None:
    """The physical rows of each fragment, deleted ones included; ``None`` if files can't be joined after all."""
    kinds: dict[Hashable, list[int]] = {}
    for number, each in enumerate(found):
        kinds.setdefault(each.kind, []).append(number)
    groups = list(kinds.values())
    batches: dict[int, pa.RecordBatch] = {}
    with _local_files(context) as local:
        fragments = [local.join([found[number] for number in group], shape) for group in groups]
        together = [each for each in fragments if each is not None]
        if len(together) < len(groups):
            return None
        started = [reader.start() for reader in FragmentReader.of_each(local, together, shape)]
        for group, stream in zip(groups, started, strict=True):
            parts = [rows.batch for rows in stream]
            whole = parts[0] if len(parts) == 1 else pa.concat_batches(parts)
            ends = np.cumsum([0, *(found[number].fragment.physical_rows for number in group)]).tolist()
            for number, (begin, end) in zip(group, pairwise(ends), strict=True):
                batches[number] = whole.slice(begin, end - begin)
    return [batches[number] for number in range(len(found))]


class _Held(SubtreeStore):
    """A store of which one data file is a local file for the codec."""

    def __init__(self, store: Store, file: str) -> None:
        super().__init__(store, "")
        self._file = file

    @property
    def location(self) -> Location:
        return self.parent.location

    def codec_location(self, path: str) -> Location | None:
        return Location(self._file)

    def _up(self, path: str) -> str:
        return path


class _LocalFiles:
    """The surroundings of fragments whose data files are local files, made here, which only this user can read.

    All are in one directory: files of one directory share what the codec needs to open them.
    """

    def __init__(self, context: ReadContext) -> None:
        self._context = context
        self._files: dict[str, tuple[Store, str]] = {}

    @property
    def place(self) -> Hashable | None:
        return self._context.place

    def data_place(self, file: DataFile) -> tuple[Store, str]:
        store, path = self._files[file.path]
        return _Held(store, file.path), path

    def store_of(self, base_id: int | None) -> Store:
        return self._context.store_of(base_id)

    def deletion_vector(self, fragment: Fragment) -> RowSet | None:
        return None

    def row_ids(self, fragment: Fragment) -> RowIdSequence | None:
        return None

    def join(self, found: Sequence[WholeFragment], shape: ReadShape) -> Fragment | None:
        """One fragment with the rows of several of one kind; ``None`` if they can't be joined."""
        files = []
        for parts in zip(*(each.parts for each in found), strict=True):
            first = parts[0].asked
            wholes = [part.whole for part in parts if part.whole is not None]
            data = join_files(wholes, shape.physical_columns(first.file)) if len(parts) > 1 else parts[0].data
            if data is None:
                return None
            files.append(replace(first.file, path=self._written(data, first), base_id=None, file_size_bytes=0))
        rows = sum(each.fragment.physical_rows for each in found)
        return Fragment(id=found[0].fragment.id, files=tuple(files), physical_rows=rows)

    def _written(self, data: bytes, asked: ToOpen) -> str:
        with temporary_space():
            descriptor, file = tempfile.mkstemp(prefix="tablewright-", suffix=".lance")
            self._files[file] = (asked.store, asked.path)
            with open(descriptor, "wb") as opened:
                opened.write(data)
        return file

    def remove(self) -> None:
        """Remove the local files."""
        for file in self._files:
            with suppress(OSError):
                os.unlink(file)


@contextmanager
def _local_files(context: ReadContext) -> Iterator[_LocalFiles]:
    files = _LocalFiles(context)
    try:
        yield files
    finally:
        files.remove()
