"""Writing a BTREE: sorted entries become ``page_data.lance`` and ``page_lookup.lance``.

Entries come in blocks of any size and are cut to batches of whole pages. The bounds of a page are its first and last
value, so a page that begins with nulls has no ``min``, and a page of nulls alone no ``max``.

Format: ``docs/format/indices.md#btree-files``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tablewright.format.index import IndexFile
from tablewright.format.index_kinds import BTREE
from tablewright.indices.btree.merge import Block
from tablewright.indices.building import WrittenIndex
from tablewright.indices.files import write_index_file
from tablewright.storage.base import Store

__all__ = ["DATA_FILE", "LOOKUP_FILE", "ROWS_PER_PAGE", "Lookup", "data_schema", "write_lookup", "write_pages"]

DATA_FILE, LOOKUP_FILE = BTREE.files
ROWS_PER_PAGE = 4096
_BATCH_ROWS = 1 << 17
_BATCH_BYTES = 16 * 1024 * 1024


def data_schema(kind: pa.DataType) -> pa.Schema:
    """The columns of ``page_data.lance``."""
    return pa.schema([pa.field("values", kind), pa.field("ids", pa.uint64(), nullable=False)])


def write_pages(
    store: Store, directory: str, kind: pa.DataType, blocks: Iterable[Block], rows_per_page: int | None = None
) -> WrittenIndex:
    """Write the files of an index. If it fails, none is left.

    >>> from tablewright.storage import open_store
    >>> store = open_store("memory://btree-pages")
    >>> block = Block(pa.array([1, 2, 5]), np.array([7, 8, 9], np.uint64))
    >>> [file.path for file in write_pages(store, "_indices/a", pa.int64(), [block]).files]
    ['page_data.lance', 'page_lookup.lance']
    """
    lookup = Lookup(rows_per_page or ROWS_PER_PAGE)
    schema = data_schema(kind)

    def batches() -> Iterator[pa.RecordBatch]:
        for block in _whole_pages(blocks, lookup.rows_per_page):
            lookup.add(block.values)
            yield pa.record_batch([block.values, pa.array(block.ids)], schema=schema)

    data = write_index_file(store, directory, DATA_FILE, schema, batches())
    return write_lookup(store, directory, kind, data, lambda: lookup)


def write_lookup(
    store: Store, directory: str, kind: pa.DataType, data: IndexFile, bounds: Callable[[], Lookup]
) -> WrittenIndex:
    """Write the bounds of the pages in ``data``. If it fails, or they can't be told, neither file is left."""
    try:
        lookup = bounds()
        rows = lookup.rows(kind)
        metadata = {"batch_size": str(lookup.rows_per_page), "range_partitioned": "false"}
        found = write_index_file(
            store, directory, LOOKUP_FILE, rows.schema, [rows] if len(rows) else [], metadata=metadata
        )
    except BaseException:
        store.delete(f"{directory}/{DATA_FILE}")
        raise
    return WrittenIndex(files=(data, found), details_type_url=BTREE.type_url)


def _whole_pages(blocks: Iterable[Block], rows_per_page: int) -> Iterator[Block]:
    """The same entries in blocks of whole pages; the last one may be shorter."""
    waiting: list[Block] = []
    rows = 0
    for block in blocks:
        waiting.append(block)
        rows += len(block)
        if rows >= rows_per_page and (rows >= _BATCH_ROWS or _nbytes(waiting) >= _BATCH_BYTES):
            whole = rows // rows_per_page * rows_per_page
            together = _joined(waiting)
            yield together.slice(0, whole)
            waiting, rows = [together.slice(whole, rows)], rows - whole
    if rows:
        yield _joined(waiting)


def _nbytes(blocks: list[Block]) -> int:
    return sum(block.values.nbytes for block in blocks)


def _joined(blocks: list[Block]) -> Block:
    blocks = [block for block in blocks if len(block)]
    if len(blocks) == 1:
        return blocks[0]
    return Block(pa.concat_arrays([block.values for block in blocks]), np.concatenate([block.ids for block in blocks]))


@dataclass(slots=True)
class Lookup:
    """The bounds of the pages that were written, in order."""

    rows_per_page: int
    lows: list[pa.Array] = field(default_factory=list)
    highs: list[pa.Array] = field(default_factory=list)
    nulls: list[np.ndarray] = field(default_factory=list)

    def add(self, values: pa.Array) -> None:
        """The next whole pages; only the last ones of an index may be shorter."""
        firsts = np.arange(0, len(values), self.rows_per_page)
        lasts = np.minimum(firsts + self.rows_per_page, len(values)) - 1
        self.lows.append(values.take(pa.array(firsts)))
        self.highs.append(values.take(pa.array(lasts)))
        nulls = values.null_count  # they come first
        self.nulls.append(np.clip(nulls - firsts, 0, lasts - firsts + 1).astype(np.uint32))

    def rows(self, kind: pa.DataType) -> pa.RecordBatch:
        """The rows of ``page_lookup.lance``."""
        nulls = np.concatenate([np.zeros(0, np.uint32), *self.nulls])
        columns = {
            "min": pa.concat_arrays(self.lows) if self.lows else pa.array([], kind),
            "max": pa.concat_arrays(self.highs) if self.highs else pa.array([], kind),
            "null_count": pa.array(nulls, pa.uint32()),
            "page_idx": pa.array(np.arange(len(nulls)), pa.uint32()),
        }
        names = zip(columns, (True, True, False, False), strict=True)
        schema = pa.schema([pa.field(name, columns[name].type, nullable=null) for name, null in names])
        return pa.record_batch(list(columns.values()), schema=schema)
