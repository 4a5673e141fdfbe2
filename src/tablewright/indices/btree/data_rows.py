"""Rows of ``page_data.lance``: the sorted values and their ids.

A page is read without the codec where that is possible (:mod:`tablewright.data.number_files`), else by an open file
that may wait for the next read (:mod:`tablewright.data.idle`).

Tests: ``tests/unit/indices/btree/test_search.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import pyarrow as pa

from tablewright.data.encoder import DataFileReader
from tablewright.data.idle import Idle, process_readers
from tablewright.data.number_files import open_numbers
from tablewright.errors import CorruptTable
from tablewright.indices.btree.pages import DATA_FILE
from tablewright.storage.address import join_uri
from tablewright.storage.base import Store

__all__ = ["count_entries", "only_batch", "plain", "read_entries", "read_page"]

_BOTH = ("values", "ids")


def count_entries(store: Store, directory: str) -> int:
    """How many rows the file has. It must have both columns."""
    with open_numbers(store, f"{directory}/{DATA_FILE}") as file:
        if file is not None and min(file.places(_BOTH)) >= 0:
            return file.num_rows
    idle = _opened(store, directory, _BOTH)
    process_readers.keep(idle)
    return idle.reader.num_rows


def read_page(store: Store, directory: str, kind: pa.DataType, start: int, stop: int) -> tuple[pa.Array, pa.Array]:
    """The values, of this type, and ids of the rows from ``start`` up to ``stop``, none of which is null."""
    path = f"{directory}/{DATA_FILE}"
    with open_numbers(store, path) as file:
        found = None if file is None else file.read(file.places(_BOTH), start, stop)
    if found is None:
        (batch,) = read_entries(store, directory, _BOTH, start, stop, stop - start)
        found = [batch.column(name) for name in _BOTH]
    where = join_uri(store.location.uri, path)
    return plain(found[0], "values", kind, where), plain(found[1], "ids", pa.uint64(), where)


def read_entries(
    store: Store, directory: str, columns: Sequence[str], start: int, stop: int, rows_per_batch: int
) -> list[pa.RecordBatch]:
    """Some columns of the rows from ``start`` up to ``stop``, by the codec."""
    idle = _opened(store, directory, columns)
    found = idle.reader.read(start, stop - start, rows_per_batch)
    batches = list(only_batch(found) if stop - start <= rows_per_batch else found)
    process_readers.keep(idle)
    return batches


def _opened(store: Store, directory: str, columns: Sequence[str]) -> Idle:
    path = f"{directory}/{DATA_FILE}"
    try:
        return process_readers.open(store, path, columns, describe=False)
    except KeyError:
        reader = DataFileReader(store, path)
        missing = [f"it has no column {name!r}" for name in columns if name not in reader.schema.names]
        raise CorruptTable(reader.where, tuple(missing)) from None


def only_batch(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The only batch of a read: asking the codec for the end costs as much as a batch."""
    return islice(batches, 1)


def plain(array: pa.Array, name: str, kind: pa.DataType, where: str) -> pa.Array:
    """A column of the file, which must have values of this type and no nulls."""
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    if array.type != kind:
        raise CorruptTable(where, (f"column {name!r} has the type {array.type} instead of {kind}",))
    if array.null_count:
        raise CorruptTable(where, (f"column {name!r} has nulls where the lookup counts none",))
    return array
