"""The row-id index of a version: stable row id → row address, over all fragments, deletions applied.

An interval index. Its entries are *pieces*: consecutive ids in consecutive rows, as first id, last id, fragment and
offset. A fragment of contiguous ids is one piece whatever its size. Long scattered segments (range with bitmap, arrays)
keep their stored shape, and are searched as a whole.

1. *Build.* Ranges are read from the bytes of all fragments at once (``format/row_id_ranges.py``); only fragments that
   hold something else are decoded.
2. *Layers.* A row that moved leaves its id in the old fragment, where the deletion file hides it, so pieces may
   overlap. They are partitioned into the fewest layers of disjoint pieces (interval partitioning): one layer if nothing
   was updated, two if rows moved once.
3. *Look up.* A binary search per layer finds every occurrence of an id; one in a fragment with a deletion file counts
   if its row is live. Only the deletion files of fragments that were hit are read.
4. *Next version.* Pieces of fragments whose bytes did not change are kept; the others are read as in 1.

An id of two live rows means that the table is damaged: :class:`~tablewright.errors.CorruptTable`.

Format: ``docs/format/row-ids.md#sequences``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablewright.errors import CorruptTable
from tablewright.format.fragment import Fragment, FragmentList
from tablewright.format.row_address import RowAddress
from tablewright.format.row_id_ranges import row_id_ranges
from tablewright.format.row_ids import RowIdSequence, decode_row_ids
from tablewright.format.row_set import RowSet
from tablewright.format.wire import Bools, Ints, Longs
from tablewright.lazy import cached_property

__all__ = ["RowIdIndex"]

Vectors = Callable[[Fragment], RowSet | None]

_PIECES_PER_SEGMENT_MAX = 4096
_SHOWN_MAX = 5
_BYTES_PER_ID = 24  # of a scattered segment, at most: its values, sorted, and where each was
_PIECE_BYTES = 32
_FRAGMENT_BYTES = 100  # an object for its bytes, and what is decoded of it


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Columns: id of the fragment, first and last id (both included), offset of the first id's row."""

    fragments: Longs
    firsts: Longs
    lasts: Longs
    offsets: Ints

    def __len__(self) -> int:
        return len(self.firsts)

    def at(self, where: Ints | Bools) -> _Pieces:
        return _Pieces(self.fragments[where], self.firsts[where], self.lasts[where], self.offsets[where])

    @staticmethod
    def joined(parts: Iterable[_Pieces]) -> _Pieces:
        none = np.zeros(0, np.uint64)
        several = [_Pieces(none, none, none, np.zeros(0, np.int64)), *parts]
        return _Pieces(
            np.concatenate([part.fragments for part in several]),
            np.concatenate([part.firsts for part in several]),
            np.concatenate([part.lasts for part in several]),
            np.concatenate([part.offsets for part in several]),
        )


@dataclass(frozen=True, slots=True)
class _Wide:
    """A scattered segment in its stored shape: fragment, bounds (included), its search, offset of its first row."""

    fragment: int
    low: int
    high: int
    find: Callable[[Longs], Ints]
    offset: int
    nbytes: int


class RowIdIndex:
    """Where the row of each stable row id is. Immutable; threads may share it.

    >>> from tablewright.format.fragment import DataFile
    >>> from tablewright.format.row_ids import encode_row_ids
    >>> file = DataFile(path="a.lance", fields=(0,), column_indices=(0,), file_major_version=2, file_minor_version=2)
    >>> ids = encode_row_ids(RowIdSequence.from_range(100, 103))
    >>> fragments = FragmentList.of([Fragment(id=7, files=(file,), physical_rows=3, row_ids=ids)])
    >>> addresses, found = RowIdIndex.of(fragments, "a manifest").locate([101, 5], lambda fragment: None)
    >>> [hex(address) for address in addresses[found].tolist()], found.tolist()
    (['0x700000001'], [True, False])
    """

    def __init__(self, fragments: FragmentList, path: str, pieces: _Pieces, wide: tuple[_Wide, ...]) -> None:
        """Use :meth:`of` or :meth:`extended`."""
        self._fragments, self._path, self._pieces, self._wide = fragments, path, pieces, wide
        self._check_fragments_without_deletions()

    @classmethod
    def of(cls, fragments: FragmentList, path: str) -> RowIdIndex:
        """The index over fragments that carry row ids; ``path`` names the manifest that they come from."""
        pieces, wide = _read(fragments, path)
        return cls(fragments, path, pieces, tuple(wide))

    def extended(self, fragments: FragmentList, path: str) -> RowIdIndex:
        """The index over the fragments of another version. Pieces of unchanged fragments are reused, not read again."""
        if fragments is self._fragments:
            return self
        same = _unchanged(self._fragments, fragments)
        changed = FragmentList([fragments.raw[place] for place in np.flatnonzero(~same).tolist()], path)
        kept = np.sort(fragments.ids[same])
        pieces, wide = _read(changed, path)
        old = [
            part
            for part, stays in zip(self._wide, _among([w.fragment for w in self._wide], kept), strict=True)
            if stays
        ]
        known = self._pieces.at(_among(self._pieces.fragments, kept))
        return RowIdIndex(fragments, path, _Pieces.joined([known, pieces]), (*old, *wide))

    def is_over(self, fragments: FragmentList) -> bool:
        """Whether these are the fragments that it was made of, and not only equal ones."""
        return fragments is self._fragments

    @property
    def nbytes(self) -> int:
        """About what it takes in memory: pieces as read and in layers, scattered segments, the fragments' bytes."""
        pieces = 2 * _PIECE_BYTES * len(self._pieces) + sum(part.nbytes for part in self._wide)
        return pieces + sum(map(len, self._fragments.raw)) + _FRAGMENT_BYTES * len(self._fragments)

    @property
    def num_pieces(self) -> int:
        """How many entries there are: pieces of consecutive ids, and scattered segments."""
        return len(self._pieces) + len(self._wide)

    # ------------------------------------------------------------------------------------------------------- look up
    def locate(self, ids: npt.ArrayLike, deletion_vector: Vectors) -> tuple[Longs, Bools]:
        """The address of each id's live row (0 where there is none), and which ids have one.

        ``deletion_vector`` returns the deleted rows of a fragment; it is called for fragments that were hit.
        """
        numbers = np.asarray(ids).astype(np.uint64)
        asked, fragments, offsets = self._places(numbers)
        alive = self._alive(fragments, offsets, deletion_vector)
        asked, fragments, offsets = asked[alive], fragments[alive], offsets[alive]
        addresses, found = np.zeros(len(numbers), np.uint64), np.zeros(len(numbers), np.bool_)
        addresses[asked] = RowAddress.join(fragments, offsets)
        found[asked] = True
        if np.count_nonzero(found) < len(asked):
            twice = np.unique(numbers[np.bincount(asked, minlength=len(numbers)) > 1])
            raise self._repeated(twice)
        return addresses, found

    def _places(self, numbers: Longs) -> tuple[Ints, Longs, Ints]:
        """Every row that has or had one of these ids: which id, fragment, and offset."""
        hits: list[tuple[Ints, Longs, Ints]] = [(np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.int64))]
        for layer in self._layers:
            place = np.maximum(np.searchsorted(layer.firsts, numbers, side="right") - 1, 0)
            hit = np.flatnonzero((numbers >= layer.firsts[place]) & (numbers <= layer.lasts[place]))
            place = place[hit]
            offsets = layer.offsets[place] + (numbers[hit] - layer.firsts[place]).astype(np.int64)
            hits.append((hit, layer.fragments[place], offsets))
        for part in self._wide:
            near = np.flatnonzero((numbers >= np.uint64(part.low)) & (numbers <= np.uint64(part.high)))
            if len(near):
                positions = part.find(numbers[near])
                hit, positions = near[positions >= 0], positions[positions >= 0]
                hits.append((hit, np.full(len(hit), part.fragment, np.uint64), positions + part.offset))
        asked, fragments, offsets = (np.concatenate(column) for column in zip(*hits, strict=True))
        return asked, fragments, offsets

    def _alive(self, fragments: Longs, offsets: Ints, deletion_vector: Vectors) -> Bools:
        alive = np.ones(len(fragments), np.bool_)
        doubtful = np.flatnonzero(_among(fragments, self._with_deletions))
        order = doubtful[np.argsort(fragments[doubtful], kind="stable")]
        owners, begins = np.unique(fragments[order], return_index=True)
        for fragment_id, rows in zip(owners.tolist(), np.split(order, begins[1:]), strict=False):
            vector = deletion_vector(self._fragments.by_id(fragment_id))
            if vector is not None:
                alive[rows] = ~vector.contains(offsets[rows])
        return alive

    @cached_property
    def _with_deletions(self) -> Longs:
        facts = self._fragments.facts
        return np.sort(facts.ids[facts.has_deletion])

    @cached_property
    def _layers(self) -> tuple[_Pieces, ...]:
        """Pieces in ascending order of their ids, none overlapping another of its layer."""
        return tuple(_layers(self._pieces))

    # -------------------------------------------------------------------------------------------------------- checks
    def _check_fragments_without_deletions(self) -> None:
        """All ids in fragments without a deletion file are those of live rows, so their pieces can't overlap."""
        whole = self._pieces.at(~_among(self._pieces.fragments, self._with_deletions))
        order = np.argsort(whole.firsts, kind="stable")
        firsts, lasts = whole.firsts[order], whole.lasts[order]
        twice = firsts[1:][firsts[1:] <= lasts[:-1]]
        if len(twice):
            raise self._repeated(twice)

    def _repeated(self, ids: Longs) -> CorruptTable:
        shown = ", ".join(map(str, ids[:_SHOWN_MAX].tolist()))
        return CorruptTable(self._path, (f"several live rows have the row ids {shown}",))


def _among(values: npt.ArrayLike, ascending: Longs) -> Bools:
    numbers = np.asarray(values, np.uint64)
    if not len(ascending):
        return np.zeros(len(numbers), np.bool_)
    place = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    return np.equal(ascending[place], numbers)


def _unchanged(old: FragmentList, new: FragmentList) -> Bools:
    """One bool per new fragment: whether the old list has the very same bytes under its id."""
    order = np.argsort(old.ids, kind="stable")
    known = _among(new.ids, old.ids[order])
    place = order[np.minimum(np.searchsorted(old.ids[order], new.ids), max(len(old) - 1, 0))] if len(old) else known
    before, after = old.raw, new.raw
    same = [
        is_known and before[at] == data
        for is_known, at, data in zip(known.tolist(), place.tolist(), after, strict=True)
    ]
    return np.array(same, np.bool_)


def _layers(pieces: _Pieces) -> Iterator[_Pieces]:
    """Interval partitioning: each layer is a greedy selection of the rest, so there are as few as possible."""
    rest = pieces.at(np.argsort(pieces.firsts, kind="stable"))
    while len(rest):
        taken = _greedy_disjoint(rest)
        yield rest if taken.all() else rest.at(taken)
        rest = rest.at(~taken)


def _greedy_disjoint(pieces: _Pieces) -> Bools:
    """Greedy interval selection: the first piece, then each next one that starts after the end of the last one taken.

    ``pieces`` ascend by first id. A piece that starts after the end of *all* before it is always taken; often these are
    all. Otherwise the successors of taken pieces are followed by pointer doubling (1, 2, 4, … steps), in O(n log n).
    """
    count = len(pieces)
    taken = np.ones(count, np.bool_)
    taken[1:] = pieces.firsts[1:] > np.maximum.accumulate(pieces.lasts)[:-1]
    before = np.maximum.accumulate(np.where(taken, np.arange(count), 0))
    if not np.any(pieces.firsts > pieces.lasts[before]):
        return taken
    following = np.append(np.searchsorted(pieces.firsts, pieces.lasts, side="right"), count)
    taken, known = np.append(taken, False), 0
    while np.count_nonzero(taken) > known:
        known = int(np.count_nonzero(taken))
        taken[following[taken]] = True
        following = following[following]
    return taken[:count]


# --------------------------------------------------------------------------------------------------------------- build
def _read(fragments: FragmentList, path: str) -> tuple[_Pieces, list[_Wide]]:
    ranges = row_id_ranges(fragments.raw)
    parts = [_Pieces(fragments.ids[ranges.rows], ranges.firsts, ranges.lasts, ranges.offsets)]
    wide: list[_Wide] = []
    for position in ranges.others.tolist():
        fragment = fragments[position]
        if fragment.row_ids is not None:
            sequence = decode_row_ids(fragment.row_ids, path, fragment.physical_rows)
            _add_segments(fragment.id, sequence, parts, wide)
    return _Pieces.joined(parts), wide


def _add_segments(fragment_id: int, sequence: RowIdSequence, parts: list[_Pieces], wide: list[_Wide]) -> None:
    offset = 0
    for segment in sequence.segments:
        bounds = segment.bounds()
        if segment.num_runs_max <= _PIECES_PER_SEGMENT_MAX:
            firsts, lasts = segment.intervals()
            sizes = (lasts - firsts).astype(np.int64) + 1
            offsets = np.cumsum(sizes) - sizes + offset
            parts.append(_Pieces(np.full(len(firsts), fragment_id, np.uint64), firsts, lasts, offsets))
        elif bounds is not None:
            wide.append(_Wide(fragment_id, *bounds, segment.finder(), offset, _BYTES_PER_ID * segment.count))
        offset += segment.count
