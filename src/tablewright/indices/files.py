"""Files of an index: data files of version 2.2 with metadata of their own, and bytes beside the columns.

Tests: ``tests/unit/indices/test_building.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tablewright.data.encoder import DataFileReader, DataFileWriter
from tablewright.errors import CorruptTable
from tablewright.format.index import IndexFile, IndexMetadata
from tablewright.storage.address import join_uri
from tablewright.storage.base import Store
from tablewright.storage.identity import is_local, local_identity

__all__ = [
    "IndexPlaces",
    "IndexTable",
    "check_sizes",
    "open_index_file",
    "read_buffer",
    "read_index_file",
    "write_index_file",
]

FILE_VERSION = "2.2"
_DIGITS_MAX = 9


class IndexPlaces(Protocol):
    """Where files of indices are: a snapshot, or the context of a task."""

    def index_place(self, index: IndexMetadata) -> tuple[Store, str]:
        """Store and directory of an index's files."""


@dataclass(frozen=True, slots=True, eq=False)
class IndexTable:
    """A whole index file in memory: its rows, the metadata of its schema, and the bytes beside them by their number."""

    rows: pa.Table
    metadata: Mapping[str, str]
    buffers: Mapping[int, bytes]
    where: str


def write_index_file(
    store: Store,
    directory: str,
    name: str,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    *,
    metadata: Mapping[str, str] | None = None,
    buffers: Mapping[str, bytes] | None = None,
) -> IndexFile:
    """Write a file below a directory. Each of ``buffers`` is put beside the columns, and its number into the metadata.

    If it fails, no file is left.

    >>> from tablewright.storage import open_store
    >>> store = open_store("memory://index-files")
    >>> rows = pa.record_batch({"keys": [1, 2]})
    >>> write_index_file(store, "_indices/a", "x.lance", rows.schema, [rows], buffers={"nulls": b"bits"}).path
    'x.lance'
    >>> found = read_index_file(store, "_indices/a", "x.lance", buffers=["nulls"])
    >>> found.rows.num_rows, found.buffers[int(found.metadata["nulls"])]
    (2, b'bits')
    """
    writer = DataFileWriter(store, f"{directory}/{name}", schema, FILE_VERSION)
    try:
        for batch in batches:
            writer.write(batch)
        for key, data in (buffers or {}).items():
            writer.add_metadata(key, str(writer.add_buffer(data)))
        for key, value in (metadata or {}).items():
            writer.add_metadata(key, value)
        _, size = writer.close()
    except BaseException:
        writer.abort()
        raise
    return IndexFile(path=name, size_bytes=size)


def check_sizes(store: Store, directory: str, index: IndexMetadata) -> None:
    """Raise :class:`CorruptTable` if a local file of an index has another size than the manifest says.

    So a file that another was copied over, which may be readable, answers nothing. Elsewhere it would cost a request
    per file. A file that is missing passes: whoever reads it says so.
    """
    for file in index.files:
        path = f"{directory}/{file.path}"
        location = store.codec_location(path)
        found = local_identity(location.uri) if location is not None and is_local(location) else None
        if found is not None and file.size_bytes and found[2] != file.size_bytes:
            size = f"it has {found[2]} bytes, and the manifest says {file.size_bytes}"
            problem = f"{size}: build index {index.name!r} again, or ask without it (use_scalar_index=False)"
            raise CorruptTable(join_uri(store.location.uri, path), (problem,))


def open_index_file(store: Store, directory: str, name: str, columns: list[str] | None = None) -> DataFileReader:
    """A reader of some columns of an index file; :class:`CorruptTable` if it lacks one of them."""
    try:
        return DataFileReader(store, f"{directory}/{name}", columns)
    except KeyError as error:
        raise CorruptTable(f"{directory}/{name}", (f"it has no column {error}",)) from None


def read_index_file(store: Store, directory: str, name: str, *, buffers: Iterable[str] = ()) -> IndexTable:
    """All of a small index file, with the bytes whose numbers its metadata has under the keys ``buffers``."""
    reader = DataFileReader(store, f"{directory}/{name}")
    schema = reader.schema
    metadata = {key.decode(): value.decode() for key, value in (schema.metadata or {}).items()}
    batches = list(reader.read(0, reader.num_rows, max(1, reader.num_rows))) if reader.num_rows else []
    numbers = [metadata[key] for key in buffers if key in metadata]
    wrong = [number for number in numbers if not number.isdecimal() or len(number) > _DIGITS_MAX]
    if wrong:
        raise CorruptTable(reader.where, (f"it names the buffers {wrong}, which are no numbers",))
    found = {int(number): reader.buffer(int(number)) for number in numbers}
    return IndexTable(pa.Table.from_batches(batches, schema=schema), metadata, found, reader.where)


def read_buffer(store: Store, directory: str, name: str, key: str) -> tuple[bytes | None, str]:
    """The bytes beside the columns whose number the metadata has under ``key``, if it has, and where the file is."""
    reader = DataFileReader(store, f"{directory}/{name}")
    number = (reader.schema.metadata or {}).get(key.encode())
    if number is None:
        return None, reader.where
    if not number.isdigit() or len(number) > _DIGITS_MAX:
        raise CorruptTable(reader.where, (f"it names the buffer {number!r}, which is no number",))
    return reader.buffer(int(number)), reader.where
