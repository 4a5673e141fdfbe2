"""Files of an index, copied or rewritten batch by batch: what is not changed on purpose stays as it was.

Tests: ``tests/unit/indices/foreign/test_remap.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa

from tablewright.data.encoder import DataFileReader, DataFileWriter
from tablewright.errors import CorruptTable
from tablewright.format.index import IndexFile
from tablewright.storage.base import Store

__all__ = ["batches_of", "copy_file", "json_text", "rewrite_file", "row_bytes"]

_COPY_BYTES_MAX = 64 << 20
_BATCH_BYTES = 16 << 20


def copy_file(source: Store, old: str, target: Store, directory: str) -> IndexFile:
    """The same file in another directory: its bytes, or if they are many, its rows, metadata and buffers."""
    name = old.rsplit("/", 1)[-1]
    if source.head(old).size <= _COPY_BYTES_MAX:
        data = source.get(old)
        target.put(f"{directory}/{name}", data)
        return IndexFile(path=name, size_bytes=len(data))
    reader = DataFileReader(source, old)
    return rewrite_file(reader, target, directory, name, batches_of(reader, 0, reader.num_rows))


def rewrite_file(
    reader: DataFileReader,
    target: Store,
    directory: str,
    name: str,
    batches: Iterable[pa.RecordBatch],
    changed: Callable[[], Mapping[int, bytes]] = dict,
) -> IndexFile:
    """A file with other rows and the same schema, metadata and buffers.

    ``changed`` has buffers that differ, by their number; it is called after all batches were written.
    """
    writer = DataFileWriter(target, f"{directory}/{name}", reader.schema, reader.version)
    try:
        for batch in batches:
            writer.write(batch)
        new = changed()
        for number in range(1, reader.num_buffers):
            data = new.get(number)
            writer.add_buffer(reader.buffer(number) if data is None else data)
        _, size = writer.close()
    except BaseException:
        writer.abort()
        raise
    return IndexFile(path=name, size_bytes=size)


def batches_of(reader: DataFileReader, start: int, count: int) -> Iterator[pa.RecordBatch]:
    """Some rows of a file, some megabytes at a time."""
    if count:
        yield from reader.read(start, count, max(1, min(count, _BATCH_BYTES // row_bytes(reader))))


def row_bytes(reader: DataFileReader) -> int:
    """About how many bytes a row has."""
    return max(1, sum(reader.column_bytes) // max(1, reader.num_rows))


def json_text(reader: DataFileReader, key: str) -> str:
    """A value of the file's metadata; :class:`CorruptTable` if it is missing."""
    found = (reader.schema.metadata or {}).get(key.encode())
    if found is None:
        raise CorruptTable(reader.where, (f"its metadata has no {key}",))
    return str(found.decode())
