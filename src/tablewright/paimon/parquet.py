"""Parquet data files, streamed through any store.

A file on disk is opened by Arrow itself. Everywhere else Arrow reads through a file object whose reads are ranges of
the store, so that errors, credentials and counting of requests are handled by the store.

Tests: ``tests/unit/paimon/test_pruning.py``, ``tests/unit/paimon/test_table.py``.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from tablewright.errors import CorruptTable, TablewrightError
from tablewright.storage.address import join_uri
from tablewright.storage.base import ObjectNotFound, Store
from tablewright.storage.failures import translate_error

__all__ = ["read_batches"]

Choice = Callable[[pq.ParquetFile], npt.NDArray[np.bool_]]

_BATCH_BYTES = 16 * 1024 * 1024
_BATCH_ROWS_MAX = 65_536
_BATCH_ROWS_MIN = 256


def read_batches(
    store: Store, path: str, rows: int, columns: Sequence[str], choose: Choice | None = None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The named top-level columns of a data file, some rows at a time, in the order of the file.

    Each batch comes with the position of its first row in the file. ``rows`` is how many the file has to have; without
    any column the batches only count them. ``choose`` says for each row group whether it is read.
    """
    where = join_uri(store.location.uri, path)
    try:
        with pq.ParquetFile(_source(store, path)) as file:
            _check(file, rows, columns, where)
            size = _batch_rows(file)
            if not columns:
                for begin in range(0, rows, size):
                    yield begin, pa.record_batch([pa.nulls(min(size, rows - begin))], ["rows"]).select([])
                return
            wanted = [True] * file.num_row_groups if choose is None else choose(file).tolist()
            for begin, groups in _runs(file.metadata, wanted):
                for batch in file.iter_batches(size, groups, list(columns), use_threads=False):
                    yield begin, batch.select(list(columns))
                    begin += batch.num_rows
    except (ObjectNotFound, FileNotFoundError):
        raise CorruptTable(where, ("the data file is missing",)) from None
    except TablewrightError:
        raise
    except PermissionError as error:
        raise translate_error(error, "read", store.location, path) from error
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptTable(where, (f"the data file can't be read as Parquet: {error}",)) from error


def _runs(file: pq.FileMetaData, wanted: Sequence[bool]) -> Iterator[tuple[int, list[int]]]:
    """The wanted row groups, those that follow each other together, and the position of their first row."""
    groups, begin, position = list[int](), 0, 0
    for index, is_wanted in enumerate(wanted):
        if is_wanted and not groups:
            begin = position
        if is_wanted:
            groups.append(index)
        elif groups:
            yield begin, groups
            groups = []
        position += file.row_group(index).num_rows
    if groups:
        yield begin, groups


def _source(store: Store, path: str) -> pa.NativeFile | str:
    location = store.codec_location(path)
    if location is not None and "://" not in location.uri:
        return location.uri
    return pa.PythonFile(_StoreFile(store, path), mode="r")


def _check(file: pq.ParquetFile, rows: int, columns: Sequence[str], where: str) -> None:
    problems = []
    if file.metadata.num_rows != rows:
        problems.append(f"the data file has {file.metadata.num_rows} rows where its manifest counts {rows}")
    counts = Counter(file.schema_arrow.names)
    problems += [f"the data file has {counts[name] or 'no'} columns {name}" for name in columns if counts[name] != 1]
    if problems:
        raise CorruptTable(where, tuple(problems))


def _batch_rows(file: pq.ParquetFile) -> int:
    """The number of rows that take about ``_BATCH_BYTES``."""
    groups = (file.metadata.row_group(index) for index in range(file.metadata.num_row_groups))
    per_row: int = sum(group.total_byte_size for group in groups) // max(1, file.metadata.num_rows)
    return min(_BATCH_ROWS_MAX, max(_BATCH_ROWS_MIN, _BATCH_BYTES // max(1, per_row)))


class _StoreFile(io.RawIOBase):
    """An object of a store, to be read at any place."""

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path = store, path
        self._size = store.head(path).size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self._size

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = base + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        end = self._size if size is None or size < 0 else min(self._size, self._at + size)
        data = self._store.get_range(self._path, self._at, end) if end > self._at else b""
        self._at += len(data)
        return data
