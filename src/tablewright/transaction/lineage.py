"""Row lineage of new fragments: row ids, created-at and last-updated-at versions.

Only tables with stable row ids have lineage. New rows take the next block of ids; moved rows bring theirs as a
prefix, and keep the version they were created at.

Format: ``docs/format/row-ids.md#assignment``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.fragment import Fragment, FragmentList
from tablewright.format.limits import NEXT_ROW_ID_MAX, check_limit
from tablewright.format.row_id_ranges import row_id_ranges
from tablewright.format.row_ids import (
    RowIdSequence,
    VersionSequence,
    decode_row_ids,
    decode_versions,
    encode_row_ids,
    encode_versions,
)
from tablewright.format.row_set import RowSet
from tablewright.values import evolve

__all__ = [
    "check_next_row_id",
    "created_versions",
    "moved_rows",
    "with_lineage",
    "with_updated_rows",
    "without_lineage",
]


_LAST_FRAGMENTS = 256
_SHORT_BYTES = 4096


def check_next_row_id(fragments: FragmentList, next_row_id: int) -> None:
    """Refuse to give out row ids that rows of a damaged manifest have already.

    All fragments would take longer than a small insert into many of them. So the number of rows is compared, and the
    ids of the last fragments, which have the highest ones; ``validate`` looks at all of them.
    """
    highest = max(fragments.total_live_rows - 1, _highest_row_id(fragments.raw[-_LAST_FRAGMENTS:]))
    if highest >= next_row_id:
        problem = f"the next row id is {next_row_id}, but rows have ids up to {highest} or above: they would come twice"
        raise CorruptTable(fragments.path, (problem,))


def _highest_row_id(raw: Sequence[bytes]) -> int:
    """The highest id of serialised fragments; long sequences of other shapes than ranges are passed over."""
    ranges = row_id_ranges(raw)
    short = FragmentList([raw[place] for place in ranges.others.tolist() if len(raw[place]) <= _SHORT_BYTES])
    sequences = (decode_row_ids(each.row_ids, f"fragment {each.id}") for each in short if each.row_ids is not None)
    bounds = (sequence.bounds for sequence in sequences)
    known: list[int] = ranges.lasts.tolist()
    return max([-1, *known, *(each[1] for each in bounds if each is not None)])


def without_lineage(fragment: Fragment) -> Fragment:
    """The fragment as a transaction of a table without stable row ids carries it."""
    if fragment.row_ids is None and fragment.created_at is None and fragment.last_updated_at is None:
        return fragment
    return evolve(fragment, row_ids=None, created_at=None, last_updated_at=None)


def moved_rows(fragment: Fragment) -> int:
    """How many rows of a new fragment bring their row ids with them (the others are new)."""
    return 0 if fragment.row_ids is None else len(decode_row_ids(fragment.row_ids, "transaction"))


def _versions(data: bytes | None, rows: int, fragment: int) -> VersionSequence:
    """A version sequence; a missing one reads as version 1."""
    return VersionSequence.constant(rows, 1) if data is None else decode_versions(data, f"fragment {fragment}", rows)


def created_versions(ids: NDArray[np.uint64], sources: Iterable[Fragment]) -> NDArray[np.uint64]:
    """The version each row id was created at, looked up in the fragments that hold (or held) the rows.

    Each fragment is searched for the ids within its bounds that were not found before.
    """
    versions = np.zeros(len(ids), np.uint64)
    missing = np.argsort(ids, kind="stable")
    for fragment in sources:
        if fragment.row_ids is None or not len(missing):
            continue
        sequence = decode_row_ids(fragment.row_ids, f"fragment {fragment.id}", fragment.physical_rows)
        bounds = sequence.bounds
        if bounds is None:
            continue
        ascending = ids[missing]
        low = int(np.searchsorted(ascending, np.uint64(bounds[0]), "left"))
        high = int(np.searchsorted(ascending, np.uint64(bounds[1]), "right"))
        positions = sequence.position_of(ascending[low:high])
        hit = positions >= 0
        created = _versions(fragment.created_at, fragment.physical_rows, fragment.id)
        versions[missing[low:high][hit]] = created.at(positions[hit])
        missing = np.delete(missing, low + np.flatnonzero(hit))
    if len(missing):
        raise InvalidRequest(f"Row id {int(ids[missing[0]])} of an updated row is in none of the touched fragments.")
    return versions


def with_lineage(
    fragments: Sequence[Fragment], next_row_id: int, version: int, sources: Sequence[Fragment] = ()
) -> tuple[tuple[Fragment, ...], int]:
    """Complete the lineage of new fragments; returns them and the next free row id.

    A fragment that carries row ids has moved rows first; the rest are new rows.
    """
    complete: list[Fragment] = []
    for fragment in fragments:
        moved = (
            RowIdSequence.from_range(0, 0)
            if fragment.row_ids is None
            else decode_row_ids(fragment.row_ids, "transaction")
        )
        fresh = fragment.physical_rows - len(moved)
        if fresh < 0:
            raise InvalidRequest(f"A new fragment of {fragment.physical_rows} rows carries {len(moved)} row ids.")
        check_limit("row id", next_row_id + fresh, NEXT_ROW_ID_MAX)
        ids = moved.concat(RowIdSequence.from_range(next_row_id, next_row_id + fresh)) if fresh else moved
        created = VersionSequence.constant(fresh, version)
        if len(moved):
            old = VersionSequence.from_values(created_versions(moved.to_numpy(), sources))
            created = old.concat(created) if fresh else old
        assert len(ids) == len(created) == fragment.physical_rows, "every row has one id and one version"
        complete.append(
            evolve(
                fragment,
                row_ids=encode_row_ids(ids),
                created_at=encode_versions(created),
                last_updated_at=encode_versions(VersionSequence.constant(fragment.physical_rows, version)),
            )
        )
        next_row_id += fresh
    return tuple(complete), next_row_id


def with_updated_rows(fragment: Fragment, offsets: RowSet | None, version: int) -> Fragment:
    """Values changed in place at ``offsets`` (all rows if ``None``): those rows were last updated now."""
    rows = fragment.physical_rows
    if offsets is None:
        updated = VersionSequence.constant(rows, version)
    else:
        updated = _versions(fragment.last_updated_at, rows, fragment.id).patched(offsets, version)
    return evolve(fragment, last_updated_at=encode_versions(updated))
