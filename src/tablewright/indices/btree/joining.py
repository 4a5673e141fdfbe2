"""The last stage of a large build without older entries: sorted parts become ``page_data.lance`` as they are.

To decode and encode all entries once more would take a fifth of the whole build, in one process. Instead the bytes of
the parts are copied one after the other (:mod:`tablewright.format.file_join`). What the lookup file needs, the first
and the last value of every page, is read from the parts.

Stores that can't write an object piece by piece, and parts that can't be joined, have no such stage:
:func:`~tablewright.indices.btree.pages.write_pages` does it.

Tests: ``tests/unit/indices/btree/test_joining.py``, ``tests/differential/indices/btree/test_build.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from tablewright.data.encoder import DataFileReader
from tablewright.data.file_end import read_end
from tablewright.data.prefetch import prefetch
from tablewright.errors import CorruptTable
from tablewright.format.file_join import file_part, join_ends, padding_after
from tablewright.format.index import IndexFile
from tablewright.indices.btree import pages
from tablewright.indices.btree.pages import DATA_FILE, Lookup, write_lookup
from tablewright.indices.btree.sorting import SortedFile
from tablewright.indices.building import WrittenIndex
from tablewright.storage.base import Store
from tablewright.storage.subtree import put_pieces, takes_pieces

__all__ = ["join_parts"]

_PIECE_BYTES = 1024 * 1024  # fits the processor's caches: 4 MiB took twice as long on ext4


def join_parts(store: Store, directory: str, kind: pa.DataType, parts: Sequence[SortedFile]) -> WrittenIndex | None:
    """The files of an index with the entries of parts, in order; ``None`` if they can't be joined.

    If it fails, neither file is left.
    """
    if not takes_pieces(store):
        return None
    paths = [f"{directory}/{part.name}" for part in parts]
    ends = [read_end(store, path).tail for path in paths]
    files = [file_part(end) for end in ends]
    whole = [file for file in files if file is not None]
    if not whole or len(whole) < len(files) or len({file.kind for file in whole}) > 1:
        return None
    end = join_ends(whole)
    if end is None:
        return None
    sizes = [tail.size for tail in ends]

    def pieces() -> Iterator[bytes]:
        for path, size in zip(paths, sizes, strict=True):
            for begin in range(0, size, _PIECE_BYTES):
                stop = min(size, begin + _PIECE_BYTES)
                piece = store.get_range(path, begin, stop)
                if len(piece) != stop - begin:
                    raise CorruptTable(path, ("it became shorter while it was read",))
                yield piece
            yield padding_after(size)
        yield end

    put_pieces(store, f"{directory}/{DATA_FILE}", pieces())
    size = sum(size + len(padding_after(size)) for size in sizes) + len(end)
    data = IndexFile(path=DATA_FILE, size_bytes=size)
    return write_lookup(store, directory, kind, data, lambda: _lookup(store, paths, kind, parts))


def _lookup(store: Store, paths: Sequence[str], kind: pa.DataType, parts: Sequence[SortedFile]) -> Lookup:
    """The bounds of all pages."""
    rows_per_page = pages.ROWS_PER_PAGE
    edges = np.cumsum([0, *(part.rows for part in parts)])
    firsts = np.arange(0, int(edges[-1]), rows_per_page)
    lasts = np.minimum(firsts + rows_per_page, int(edges[-1])) - 1
    wanted = np.unique(np.concatenate([firsts, lasts]))

    def values(number: int) -> list[pa.Array]:
        low, high = np.searchsorted(wanted, edges[number : number + 2]).tolist()
        if low == high:
            return []
        reader = DataFileReader(store, paths[number], ["values"])
        return [batch.column(0) for batch in reader.take(wanted[low:high] - edges[number], high - low)]

    found = [array for arrays in prefetch(values, range(len(parts))) for array in arrays]
    bounds = pa.concat_arrays(found) if found else pa.array([], kind)
    nulls = sum(part.nulls for part in parts)  # they come first
    return Lookup(
        rows_per_page,
        [bounds.take(pa.array(np.searchsorted(wanted, firsts)))],
        [bounds.take(pa.array(np.searchsorted(wanted, lasts)))],
        [np.clip(nulls - firsts, 0, lasts - firsts + 1).astype(np.uint32)],
    )
