"""The row-id index of each table that was asked for last, in the cache of the process.

An index is a function of the bytes of the fragments alone, and extending it compares these bytes. So one per directory
of versions is enough, whichever version asks: the next one reads only what changed, and another table at the same
address shares no fragment and takes nothing over. Taking turns between versions costs a comparison of all fragments.

An index that the cache does not take, because that is off or too small, stays with the snapshot that asked.
"""

from __future__ import annotations

from tablewright.cache import CacheKind
from tablewright.format.fragment import FragmentList
from tablewright.snapshot.row_id_index import RowIdIndex

__all__ = ["find_index"]

_indices = CacheKind[RowIdIndex]("row-id indices")


def find_index(fragments: FragmentList, path: str, before: RowIdIndex | None = None) -> tuple[RowIdIndex, bool]:
    """The index over the fragments of the manifest at ``path``, and whether the cache has it now.

    ``before`` is that of another version of the table, if the caller has one.
    """
    directory = path.rpartition("/")[0]
    found = _indices.find(directory)
    if found is not None and found.is_over(fragments):
        return found, True
    known = found or before
    index = RowIdIndex.of(fragments, path) if known is None else known.extended(fragments, path)
    return index, _indices.keep(directory, index, index.nbytes)
