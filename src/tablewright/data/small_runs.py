"""Which fragments are small, and the runs of them that are read together (:mod:`.small`).

A fragment is small if its files are and it has few rows, or if the wanted columns have a fixed width and few rows. A
million equal values make a file of some hundred bytes.

Tests: ``tests/unit/data/test_small.py``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from tablewright.data.shape import ReadShape
from tablewright.format.fragment import FragmentList
from tablewright.format.row_set import Offsets

__all__ = ["BLOCK_BITS", "KEPT_BYTES_MAX", "are_small", "small_runs"]

_FILE_BYTES_MAX = 64 * 1024
_FIXED_BYTES_MAX = 256 * 1024
KEPT_BYTES_MAX = 512 * 1024
"""A small fragment of columns with a fixed width has at most this size; larger ones of texts are not kept."""
_RUN_FRAGMENTS_MIN, _RUN_FRAGMENTS_MAX, _RUN_BYTES_MAX = 8, 64, 2 * 1024 * 1024
_GROWING_UNTIL = _RUN_FRAGMENTS_MAX - _RUN_FRAGMENTS_MIN
_WHOLE_BLOCKS_FROM = 24  # runs before this position are shorter than a block, later ones end where a block ends
_KEPT_FRAGMENTS_MAX, _KEPT_RUN_BYTES_MAX = 2048, 4 * 1024 * 1024
BLOCK_BITS = 5
"""A block has the fragments whose ids differ in this many lowest bits."""
_OFFSET_BYTES = 8  # what a row takes even if no column is read


def are_small(fragments: FragmentList, shape: ReadShape) -> bool:
    """Whether all fragments are small, so that :class:`~tablewright.data.small.SmallFragments` may read them."""
    return bool(_small(fragments, shape)[0].all())


def small_runs(
    fragments: FragmentList,
    shape: ReadShape,
    are_kept: Callable[[int, int], bool] = lambda start, stop: False,
    *,
    all_wanted: bool = False,
) -> Iterator[tuple[int, int, bool]]:
    """The list as ranges of positions, in order, and whether each is a run of small fragments to be read together.

    Runs of fragments that ``are_kept`` in the cache are joined: what is left of reading them is a ``stat`` for each and
    work of Python, which several threads do not speed up. Unless ``all_wanted``, a joined run is no longer than all
    before it, so that a scan that needs few rows reads little.
    """
    if not len(fragments):
        return
    small, nbytes = _small(fragments, shape)
    if not small.any():
        yield 0, len(small), False
        return
    stretch = np.cumsum(np.diff(small, prepend=small[0]))
    first, total = np.flatnonzero(np.diff(stretch, prepend=-1))[stretch], np.cumsum(nbytes)

    def fits(begin: int, stop: int) -> bool:
        most = _KEPT_FRAGMENTS_MAX if all_wanted else min(_KEPT_FRAGMENTS_MAX, begin - int(first[begin]))
        return stop - begin <= most and int(total[stop - 1] - total[begin]) <= _KEPT_RUN_BYTES_MAX

    begin: int | None = None  # of a run in the cache that may become longer
    for start, stop in itertools.pairwise(_edges(fragments.ids.astype(np.int64), small, first, total)):
        is_kept = bool(small[start]) and are_kept(start, stop)
        if begin is not None and not (is_kept and fits(begin, stop)):
            yield begin, start, True
            begin = None
        if not is_kept:
            yield start, stop, bool(small[start])
        elif begin is None:
            begin = start
    if begin is not None:
        yield begin, len(small), True


def _edges(ids: Offsets, small: np.ndarray, first: Offsets, total: Offsets) -> list[int]:
    """Where runs begin, and the end of the list. ``first`` is where the stretch of each fragment begins."""
    position = np.arange(len(ids))
    blocks = np.flatnonzero(np.diff(ids >> BLOCK_BITS, prepend=-1))
    block = blocks[np.searchsorted(blocks, position, side="right") - 1]
    part = np.where(small, _parts(np.where(block - first >= _WHOLE_BLOCKS_FROM, block, position) - first), 0)
    breaks = (np.diff(first) != 0) | (np.diff(part) != 0) | (small[1:] & (np.diff(total // _RUN_BYTES_MAX) != 0))
    return [0, *(np.flatnonzero(breaks) + 1).tolist(), len(ids)]


def _parts(index: Offsets) -> Offsets:
    """In which run the n-th small fragment of a stretch is: runs of 8, 16, 32 and then 64, so that a scan that needs
    few rows reads little.
    """
    growing = np.log2(np.minimum(index, _GROWING_UNTIL) // _RUN_FRAGMENTS_MIN + 1).astype(np.int64)
    parts: Offsets = np.maximum(0, index - _GROWING_UNTIL) // _RUN_FRAGMENTS_MAX + growing
    return parts


def _small(fragments: FragmentList, shape: ReadShape) -> tuple[np.ndarray, Offsets]:
    """One bool per fragment: whether it is small; and about how many bytes of it are read."""
    facts = fragments.facts
    rows = facts.physical_rows.astype(np.int64)
    if not _is_plain(shape):
        return np.zeros(len(rows), np.bool_), rows
    sizes = np.minimum(facts.file_bytes, np.uint64(1 << 40)).astype(np.int64)
    known = np.bincount(facts.file_row[sizes == 0], minlength=len(rows)) == 0
    stored = np.bincount(facts.file_row, weights=sizes, minlength=len(rows)).astype(np.int64)
    least = rows * shape.sizes.least_bytes
    small = known & (stored <= _FILE_BYTES_MAX) & (least <= KEPT_BYTES_MAX)
    if shape.sizes.fixed_bytes is not None:
        stored = least
        small |= stored <= _FIXED_BYTES_MAX
    return small & (rows > 0), np.maximum(stored, np.maximum(least, rows * _OFFSET_BYTES))


def _is_plain(shape: ReadShape) -> bool:
    """Whether columns can be concatenated and kept as they are: no blobs, no dictionaries."""
    return not shape.wanted.blob_ids and not any(_has_dictionary(kind) for _, kind in shape.columns)


def _has_dictionary(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _has_dictionary(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return True
    return any(_has_dictionary(kind.field(index).type) for index in range(kind.num_fields))
