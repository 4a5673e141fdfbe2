"""Columnar metadata of all fragments of a manifest, read from their bytes without decoding them.

Two tables: one row per fragment (id, rows, deleted rows, ...), and one row per use of a base path or data-file version
by one of its files. Both can be sliced and concatenated, so a commit that touches three fragments reads three.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablewright.format.fragment.value import (
    PHYSICAL_ROWS_MAX,
    DataFile,
    DeletionFile,
    Fragment,
)
from tablewright.format.limits import FRAGMENT_ID_MAX
from tablewright.format.wire import Bools, Ints, Longs, Scan, Spans, as_buffer, scan
from tablewright.format.wire_walk import NotWhole, walk
from tablewright.values import evolve

__all__ = ["FragmentFacts", "facts_of", "facts_of_values"]

NO_BASE = -1

_ID, _FILES, _DELETION, _PHYSICAL_ROWS, _ROW_IDS = 1, 2, 3, 4, 5
_REFUSED = (11, 12, 13, 14)
_EXTERNAL = (6, 8, 10)
_FILE_MAJOR, _FILE_MINOR, _FILE_BYTES, _BASE = 4, 5, 6, 7
_DELETED_ROWS = 4
_SHOWN_MAX = 5
_BLOCK = 1 << 13
_FEW = 32
_U32_MASK, _U64_MASK = (1 << 32) - 1, (1 << 64) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FragmentFacts:
    """Columns over fragments, and over their files (``file_row`` is the fragment's position in the other columns).

    ``file_version`` is major << 32 | minor; ``file_base`` and ``deletion_base`` are :data:`NO_BASE` where none is.
    ``broken`` marks bytes that are no fragment, ``refused`` fragments whose rows we can't read, ``has_external`` those
    with sequences in files of their own.
    """

    ids: Longs
    physical_rows: Longs
    deleted_rows: Longs
    has_deletion: Bools
    has_row_ids: Bools
    has_external: Bools
    broken: Bools
    refused: Bools
    deletion_base: Ints
    file_row: Ints
    file_version: Longs
    file_base: Ints
    file_bytes: Longs

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, positions: Ints) -> FragmentFacts:
        """The facts of the fragments at ``positions``, in that order; no position twice."""
        moved = np.full(len(self), -1, np.int64)
        moved[positions] = np.arange(len(positions))
        row = moved[self.file_row]
        kept = row >= 0
        return FragmentFacts(
            **{name: getattr(self, name)[positions] for name in _PER_FRAGMENT},
            **{name: getattr(self, name)[kept] for name in _PER_FILE},
            file_row=row[kept],
        )

    def concat(self, other: FragmentFacts) -> FragmentFacts:
        """The facts of our fragments, then of the other's."""
        return FragmentFacts(
            **{
                name: np.concatenate((getattr(self, name), getattr(other, name)))
                for name in (*_PER_FRAGMENT, *_PER_FILE)
            },
            file_row=np.concatenate((self.file_row, other.file_row + len(self))),
        )

    def with_deletions(self, position: int, fragment: Fragment) -> FragmentFacts:
        """The facts where the fragment at ``position`` has other deleted rows, and is otherwise the same."""
        deleted_rows, has_deletion = self.deleted_rows.copy(), self.has_deletion.copy()
        deletion_base = self.deletion_base.copy()
        deleted_rows[position] = fragment.deleted_rows
        has_deletion[position] = fragment.deletion is not None
        deletion_base[position] = _base(fragment.deletion)
        return evolve(self, deleted_rows=deleted_rows, has_deletion=has_deletion, deletion_base=deletion_base)

    @property
    def base_ids(self) -> frozenset[int]:
        """The base paths that some file names."""
        return (_distinct(self.file_base) | _distinct(self.deletion_base)) - {NO_BASE}

    @property
    def file_versions(self) -> frozenset[tuple[int, int]]:
        """The (major, minor) versions of all data files."""
        return frozenset([(code >> 32, code & _U32_MASK) for code in _distinct(self.file_version)])

    def problems(self) -> Iterator[str]:
        """What is wrong with the fragments as far as the columns show; single files are checked when decoded."""
        if np.count_nonzero(self.ids[1:] <= self.ids[:-1]):
            order = np.sort(self.ids)
            twice = np.unique(order[1:][order[1:] == order[:-1]])
            if len(twice):
                yield f"fragment ids are used twice: {_some(twice)}"
        large_id, many_rows = self.ids > FRAGMENT_ID_MAX, self.physical_rows > PHYSICAL_ROWS_MAX
        excess = (self.physical_rows > 0) & (self.deleted_rows > self.physical_rows)
        if not np.count_nonzero(self.broken | large_id | many_rows | excess):
            return
        if self.broken.any():
            places = np.flatnonzero(self.broken)
            yield f"{len(places)} fragments can't be decoded, at positions {_some(places)}"
        yield from self._complain(large_id, "have an id that does not fit 32 bits")
        yield from self._complain(many_rows, "have more rows than 32 bits of offsets")
        yield from self._complain(excess, "have more deleted rows than rows")

    def _complain(self, mask: Bools, what: str) -> Iterator[str]:
        if mask.any():
            yield f"fragments {_some(self.ids[mask])} {what}"


_PER_FRAGMENT = (
    "ids",
    "physical_rows",
    "deleted_rows",
    "has_deletion",
    "has_row_ids",
    "has_external",
    "broken",
    "refused",
    "deletion_base",
)
_PER_FILE = ("file_version", "file_base", "file_bytes")
_KIND: dict[str, type] = {
    **dict.fromkeys(("has_deletion", "has_row_ids", "has_external", "broken", "refused"), np.bool_),
    **dict.fromkeys(("ids", "physical_rows", "deleted_rows", "file_version", "file_bytes"), np.uint64),
    **dict.fromkeys(("deletion_base", "file_base"), np.int64),
}


def _distinct(column: Longs | Ints) -> frozenset[int]:
    """The values in a column; nearly always it is one, and then no sorting is needed."""
    if not len(column):
        return frozenset()
    if np.count_nonzero(column != column[0]):
        return frozenset(np.unique(column).tolist())
    return frozenset((int(column[0]),))


def _some(values: npt.NDArray[np.generic]) -> str:
    shown = ", ".join(str(value) for value in values[:_SHOWN_MAX].tolist())
    return f"{shown}, ... ({len(values)} in all)" if len(values) > _SHOWN_MAX else shown


def facts_of(fragments: Sequence[bytes]) -> FragmentFacts:
    """The facts of serialised fragments. They are read in blocks whose columns stay in the processor's cache.

    A few are read one by one: the fixed cost of a block is that of 50 fragments.
    """
    if len(fragments) <= _FEW:
        return _facts_of_few(fragments)
    if len(fragments) <= _BLOCK:
        return _facts_of_block(fragments)
    blocks = [_facts_of_block(fragments[start : start + _BLOCK]) for start in range(0, len(fragments), _BLOCK)]
    firsts = np.arange(len(blocks)) * _BLOCK
    return FragmentFacts(
        **{name: np.concatenate([getattr(block, name) for block in blocks]) for name in (*_PER_FRAGMENT, *_PER_FILE)},
        file_row=np.concatenate([block.file_row + first for block, first in zip(blocks, firsts, strict=True)]),
    )


def facts_of_values(fragments: Sequence[Fragment]) -> FragmentFacts:
    """The facts of a few fragments that are values already: cheaper than reading their bytes."""
    files = [(row, file) for row, fragment in enumerate(fragments) for file in fragment.files]
    deletions = [fragment.deletion for fragment in fragments]
    none = np.zeros(len(fragments), np.bool_)
    return FragmentFacts(
        ids=np.array([fragment.id for fragment in fragments], np.uint64),
        physical_rows=np.array([fragment.physical_rows for fragment in fragments], np.uint64),
        deleted_rows=np.array([fragment.deleted_rows for fragment in fragments], np.uint64),
        has_deletion=np.array([deletion is not None for deletion in deletions], np.bool_),
        has_row_ids=np.array([fragment.row_ids is not None for fragment in fragments], np.bool_),
        has_external=none,
        broken=none,
        refused=none,
        deletion_base=np.array([_base(deletion) for deletion in deletions], np.int64),
        file_row=np.array([row for row, _ in files], np.int64),
        file_version=np.array(
            [file.file_major_version << 32 | file.file_minor_version for _, file in files], np.uint64
        ),
        file_base=np.array([_base(file) for _, file in files], np.int64),
        file_bytes=np.array([file.file_size_bytes for _, file in files], np.uint64),
    )


def _base(file: DataFile | DeletionFile | None) -> int:
    return NO_BASE if file is None or file.base_id is None else file.base_id


def _facts_of_block(fragments: Sequence[bytes]) -> FragmentFacts:
    """One scan over the fragments, one over their files, one over their deletion files."""
    buffer, starts, ends = as_buffer(fragments)
    top = scan(
        buffer, starts, ends, numbers=(_ID, _PHYSICAL_ROWS), spans=(_FILES, _DELETION, _ROW_IDS, *_EXTERNAL, *_REFUSED)
    )
    files, deletions = top.spans[_FILES], top.spans[_DELETION]
    file_scan = scan(buffer, files.starts, files.ends, numbers=(_FILE_MAJOR, _FILE_MINOR, _FILE_BYTES, _BASE))
    deletion_scan = scan(buffer, deletions.starts, deletions.ends, numbers=(_DELETED_ROWS, _BASE))

    count = len(fragments)
    broken = top.bad.copy()
    broken[files.rows[file_scan.bad]] = True
    broken[deletions.rows[deletion_scan.bad]] = True
    broken |= np.bincount(deletions.rows, minlength=count) > 1
    deleted_rows = np.zeros(count, np.uint64)
    deleted_rows[deletions.rows] = deletion_scan.numbers[_DELETED_ROWS]
    deletion_base = np.full(count, NO_BASE, np.int64)
    deletion_base[deletions.rows] = _bases(deletion_scan)
    return FragmentFacts(
        ids=top.numbers[_ID],
        physical_rows=top.numbers[_PHYSICAL_ROWS],
        deleted_rows=deleted_rows,
        has_deletion=_met(deletions, count),
        has_row_ids=_met(top.spans[_ROW_IDS], count),
        has_external=np.logical_or.reduce([_met(top.spans[number], count) for number in _EXTERNAL]),
        broken=broken,
        refused=np.logical_or.reduce([_met(top.spans[number], count) for number in _REFUSED]),
        deletion_base=deletion_base,
        file_row=files.rows,
        file_version=(file_scan.numbers[_FILE_MAJOR] << np.uint64(32)) | file_scan.numbers[_FILE_MINOR],
        file_base=_bases(file_scan),
        file_bytes=file_scan.numbers[_FILE_BYTES],
    )


def _facts_of_few(fragments: Sequence[bytes]) -> FragmentFacts:
    """What :func:`_facts_of_block` finds, without arrays on the way."""
    files: list[tuple[int, int, int, int]] = []
    rows = [_facts_of_one(row, data, files) for row, data in enumerate(fragments)]
    columns = tuple(zip(*rows, strict=True)) or ((),) * len(_PER_FRAGMENT)
    file_row, *file_columns = tuple(zip(*files, strict=True)) or ((),) * (len(_PER_FILE) + 1)
    return FragmentFacts(
        **{name: np.array(values, _KIND[name]) for name, values in zip(_PER_FRAGMENT, columns, strict=True)},
        **{name: np.array(values, _KIND[name]) for name, values in zip(_PER_FILE, file_columns, strict=True)},
        file_row=np.array(file_row, np.int64),
    )


def _facts_of_one(row: int, data: bytes, files: list[tuple[int, int, int, int]]) -> tuple[int | bool, ...]:
    """The columns of one fragment, in the order of ``_PER_FRAGMENT``; those of its files are added to ``files``."""
    fragment_id = physical_rows = deleted_rows = deletions = 0
    base, has_row_ids, has_external, refused, broken = NO_BASE, False, False, False, False
    try:
        for number, kind, value, end in walk(data, 0, len(data)):
            if kind == 0:
                fragment_id = value if number == _ID else fragment_id
                physical_rows = value if number == _PHYSICAL_ROWS else physical_rows
            elif kind == 2 and number == _FILES:
                found = _numbers(data, value, end)
                version = found.get(_FILE_MAJOR, 0) << 32 & _U64_MASK | found.get(_FILE_MINOR, 0)
                files.append((row, version, _base_of(found), found.get(_FILE_BYTES, 0)))
            elif kind == 2 and number == _DELETION:
                found = _numbers(data, value, end)
                deleted_rows, base, deletions = found.get(_DELETED_ROWS, 0), _base_of(found), deletions + 1
            elif kind == 2:
                has_row_ids |= number == _ROW_IDS
                has_external |= number in _EXTERNAL
                refused |= number in _REFUSED
    except NotWhole:
        broken = True
    marks = (deletions > 0, has_row_ids, has_external, broken or deletions > 1, refused)
    return fragment_id, physical_rows, deleted_rows, *marks, base


def _numbers(data: bytes, begin: int, end: int) -> dict[int, int]:
    return {number: value for number, kind, value, _ in walk(data, begin, end) if kind == 0}


def _base_of(found: dict[int, int]) -> int:
    return found[_BASE] & _U32_MASK if _BASE in found else NO_BASE


def _bases(found: Scan) -> Ints:
    bases = (found.numbers[_BASE] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    return np.where(found.present[_BASE], bases, NO_BASE)


def _met(spans: Spans, count: int) -> Bools:
    mask = np.zeros(count, np.bool_)
    mask[spans.rows] = True
    return mask
