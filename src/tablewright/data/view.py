"""Data files whose schema the codec misreads, as local files that it reads right.

A view is a sparse file with the length of the original and a new end: the repaired schema
(``format/file_descriptor.py``) and the original metadata of the columns. Buffers of columns keep their offsets, and are
fetched before the first read of their column; what is between them, such as the bytes of blobs, is never fetched.

Readers of one file share one view for as long as any of them exists. Data files never change and their names are
random, so a view can't be stale.

Format: ``docs/format/blobs.md#reading-and-writing-with-the-codec``.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence

from tablewright.data.spool import Spool, present
from tablewright.errors import CorruptTable
from tablewright.format.file_descriptor import repaired
from tablewright.format.file_tail import FileTail, decode_tail
from tablewright.storage.address import join_uri
from tablewright.storage.base import Store
from tablewright.storage.temporary import temporary_space

__all__ = ["View", "view_of"]

_TAIL_BYTES = 64 * 1024
_GAP_BYTES_MAX = 64 * 1024  # ranges that are closer are fetched as one
_CHUNK_BYTES = 8 * 1024 * 1024

_views: weakref.WeakValueDictionary[tuple[str, str, bool], View] = weakref.WeakValueDictionary()
_READ_RIGHT_MAX = 1 << 14
_read_right: set[tuple[str, str, bool]] = set()
_lock = threading.Lock()


def view_of(store: Store, path: str, *, describe: bool) -> View | None:
    """The view of a data file; ``None`` if the codec reads the file itself right."""
    key = (store.location.uri, path, describe)
    with _lock:
        view = _views.get(key)
        if view is not None or key in _read_right:
            return view
    where = join_uri(store.location.uri, path)
    with present(where):
        tail = _read_tail(store, path, where)
    descriptor = repaired(tail.descriptor, where, describe=describe)
    if descriptor is None:
        with _lock:
            if len(_read_right) >= _READ_RIGHT_MAX:
                _read_right.clear()
            _read_right.add(key)
        return None
    view = View(store, path, where, tail, descriptor)
    with _lock:
        return _views.setdefault(key, view)


class View:
    """A data file with a repaired schema. ``path`` is a local file, which vanishes with this value."""

    def __init__(self, store: Store, path: str, where: str, tail: FileTail, descriptor: bytes) -> None:
        self._store, self._source, self._where, self._tail = store, path, where, tail
        self._spool = Spool()
        self._present: set[int] = set()
        self._fetching = threading.Lock()
        self.path = self._spool.path
        begin, end = tail.encode(descriptor)
        with temporary_space(), open(self.path, "wb") as file:
            file.seek(begin)
            file.write(end)

    def fetch(self, columns: Sequence[int]) -> None:
        """Fetch the buffers of some physical columns, unless they are here."""
        with self._fetching:
            missing = [column for column in columns if column not in self._present]
            if not missing:
                return
            with temporary_space(), open(self.path, "r+b") as file:
                for begin, end in _chunks(_joined(self._tail.ranges(missing, self._where))):
                    with present(self._where):
                        data = self._store.get_range(self._source, begin, end)
                    if len(data) != end - begin:
                        raise CorruptTable(self._where, (f"it ends before byte {end}",))
                    file.seek(begin)
                    file.write(data)
            self._present.update(missing)


def _read_tail(store: Store, path: str, where: str) -> FileTail:
    size = store.head(path).size
    begin = max(0, size - _TAIL_BYTES)
    known = store.get_range(path, begin, size)

    def read(start: int, end: int) -> bytes:
        nonlocal begin, known
        if start < begin:
            known, begin = store.get_range(path, start, begin) + known, start
        return known[start - begin : end - begin]

    return decode_tail(size, read, where)


def _joined(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The ranges in order; those that overlap, or nearly touch, as one."""
    begin = end = -1
    for start, stop in sorted(ranges):
        if end >= 0 and start <= end + _GAP_BYTES_MAX:
            end = max(end, stop)
            continue
        if end >= 0:
            yield begin, end
        begin, end = start, stop
    if end >= 0:
        yield begin, end


def _chunks(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for begin, end in ranges:
        for start in range(begin, end, _CHUNK_BYTES):
            yield start, min(end, start + _CHUNK_BYTES)
