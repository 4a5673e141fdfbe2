"""Rewritten groups on their way into the table: what other writers did since the rows were read.

A group keeps its old fragments exactly as they were read: ranks, and so new addresses, follow from them
(:mod:`tablewright.format.address_map`). Against the newest version:

- *Rows gone since* (deleted or moved) become deletion vectors of the new fragments. The sources are not read again.
- *Columns written since* (rewritten in place, added, cast) are stale in the new fragments: they alone are read from the
  newest fragments and written beside the new files (:mod:`.carry`). Renames and drops need no bytes.
- *Row ids and versions* come from the newest fragments.
- *A group is overtaken* if another rewrite took one of its fragments, or if rows came back that were deleted when it
  was read. It is dropped: its rows are elsewhere, or need another look.

Pure; deletion vectors come from the caller.

Format: ``docs/format/transactions.md#row-addresses-after-a-rewrite``.

Tests: ``tests/unit/operations/compact/test_groups.py``, ``tests/concurrency/test_compaction_meanwhile.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tablewright.data.context import ReadContext
from tablewright.format.address_map import AddressMap, NewRows, OldRows
from tablewright.format.fragment import DeletionFile, Fragment, FragmentList
from tablewright.format.row_ids import (
    RowIdSequence,
    VersionSequence,
    decode_row_ids,
    decode_versions,
    encode_row_ids,
    encode_versions,
)
from tablewright.format.row_set import Offsets, RowSet
from tablewright.format.schema import Schema
from tablewright.format.transaction import Rewrite, RewriteGroup, Transaction

__all__ = [
    "Group",
    "Now",
    "compaction_transaction",
    "has_changed",
    "hidden_rows",
    "is_overtaken",
    "newest_of",
    "numbered",
    "stale_columns",
]

_GONE_MAX = 4_000_000

Place = tuple[int | None, str]
Now = tuple[Fragment | None, ...]
"""What the old fragments of a group are in the newest version; ``None`` where one is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Old fragments as they were read, and the new ones under their reserved ids.

    ``known`` is the state of the old fragments whose columns the new files hold; ``None`` where one is gone.
    ``paths`` are all files that were written for the group.
    """

    read_version: int
    old: tuple[Fragment, ...]
    new: tuple[Fragment, ...]
    known: tuple[Fragment | None, ...]
    paths: tuple[str, ...] = ()

    def address_map(self, context: ReadContext) -> AddressMap:
        """The map from old to new addresses."""
        old = tuple(OldRows(f.id, f.physical_rows, context.deletion_vector(f) or RowSet()) for f in self.old)
        return AddressMap(old, tuple(NewRows(fragment.id, fragment.physical_rows) for fragment in self.new))


def numbered(groups: Sequence[Group], first_id: int) -> tuple[Group, ...]:
    """The groups with their reserved fragment ids, in order."""
    done: list[Group] = []
    for group in groups:
        new = tuple(replace(fragment, id=first_id + place) for place, fragment in enumerate(group.new))
        done.append(replace(group, new=new))
        first_id += len(new)
    return tuple(done)


def newest_of(fragments: Iterable[Fragment], newest: FragmentList) -> Now:
    """What some fragments are now; ``None`` where one is gone."""
    places = newest.positions([fragment.id for fragment in fragments]).tolist()
    return tuple(newest[place] if place >= 0 else None for place in places)


def has_changed(fragments: Iterable[Fragment], now: Now) -> bool:
    """Whether some fragment is gone, or has other files than it had."""
    return any(
        newest is None or (newest.files, newest.deletion) != (old.files, old.deletion)
        for old, newest in zip(fragments, now, strict=True)
    )


def is_overtaken(
    group: Group, now: Now, rewritten: Collection[int] | None, context: ReadContext, stable_row_ids: bool
) -> bool:
    """Whether the group can't be put on the newest version, where its old fragments are ``now``.

    ``rewritten`` are fragments that other rewrites took; ``None`` if that is not known.
    """
    for old, newest in zip(group.old, now, strict=True):
        if newest is None:
            if rewritten is None or old.id in rewritten or (stable_row_ids and old.row_ids is None):
                return True
        elif newest.deletion != old.deletion:
            before, after = context.deletion_vector(old), context.deletion_vector(newest)
            if before and not (after and before <= after):
                return True
    return False


def hidden_rows(group: Group, now: Now, context: ReadContext) -> dict[int, RowSet]:
    """Rows of the new fragments that are gone since the group was read, by fragment id."""
    changed = [
        (old, newest)
        for old, newest in zip(group.old, now, strict=True)
        if newest is None or newest.deletion != old.deletion
    ]
    if not changed:
        return {}
    addresses, hidden = group.address_map(context), dict[int, RowSet]()
    for old, newest in changed:
        before = context.deletion_vector(old) or RowSet()
        after = RowSet.full(old.physical_rows) if newest is None else context.deletion_vector(newest) or RowSet()
        for id, rows in addresses.forward(old.id, after - before).items():
            hidden[id] = hidden.get(id, RowSet()) | rows
    return hidden


# ------------------------------------------------------------------------------------------------------------- columns
def stale_columns(group: Group, now: Now, schema: Schema) -> tuple[str, ...]:
    """Columns of the newest schema whose values the new files do not hold: others have written them since."""
    stale: set[int] = set()
    for known, newest in zip(group.known, now, strict=True):
        if known is not None and newest is not None and known.files != newest.files:
            then, places = _places(known), _places(newest)
            stale |= {id for id in then.keys() | places.keys() if then.get(id) != places.get(id)}
    return tuple(
        column.name for column in schema.top_level if stale and not stale.isdisjoint(schema.descendants(column.id))
    )


def _places(fragment: Fragment) -> dict[int, Place]:
    return {id: (file.base_id, file.path) for file in fragment.files for id in file.live_fields}


# ------------------------------------------------------------------------------------------------------------- lineage
def _with_lineage(group: Group, now: Now, context: ReadContext) -> Iterator[Fragment]:
    """The new fragments with the row ids and versions that their rows have now."""
    ids, created, updated = list[RowIdSequence](), list[VersionSequence](), list[VersionSequence]()
    for sources, gone in _parts(group, now, context):
        ids.append(RowIdSequence.join(map(_ids, sources), gone))
        created.append(_live_versions(sources, [fragment.created_at for fragment in sources], gone))
        updated.append(_live_versions(sources, [fragment.last_updated_at for fragment in sources], gone))
    return _cut(group.new, RowIdSequence.join(ids), VersionSequence.join(created), VersionSequence.join(updated))


def _cut(
    new: Iterable[Fragment], ids: RowIdSequence, created: VersionSequence, updated: VersionSequence
) -> Iterator[Fragment]:
    """The new fragments with their part of all row ids and versions."""
    begin = 0
    for fragment in new:
        end = begin + fragment.physical_rows
        yield replace(
            fragment,
            row_ids=encode_row_ids(ids.slice(begin, end)),
            created_at=encode_versions(created.slice(begin, end)),
            last_updated_at=encode_versions(updated.slice(begin, end)),
        )
        begin = end
    assert begin == len(ids), f"{len(ids)} row ids for {begin} rows: ids would move to other rows"


def _parts(group: Group, now: Now, context: ReadContext) -> Iterator[tuple[list[Fragment], Offsets]]:
    """The sources of a group, and the offsets of deleted rows among all of their rows.

    In parts of neighbours with at most four million deleted rows, unless one alone has more: a number of 8 bytes each.
    """
    part, gone, rows, count = list[Fragment](), [np.zeros(0, np.int64)], 0, 0
    for old, newest in zip(group.old, now, strict=True):
        deleted = context.deletion_vector(old) or RowSet()
        if part and count + len(deleted) > _GONE_MAX:
            yield part, np.concatenate(gone)
            part, gone, rows, count = [], gone[:1], 0, 0
        part.append(newest or old)
        gone.append(deleted.to_numpy() + rows)
        rows, count = rows + old.physical_rows, count + len(deleted)
    yield part, np.concatenate(gone)


def _ids(fragment: Fragment) -> RowIdSequence:
    assert fragment.row_ids is not None, f"fragment {fragment.id} of a table with stable row ids has none"
    return decode_row_ids(fragment.row_ids, f"fragment {fragment.id}", fragment.physical_rows)


def _live_versions(fragments: Sequence[Fragment], sequences: Sequence[bytes | None], gone: Offsets) -> VersionSequence:
    """The versions of all live rows; where a fragment has none, they read as version 1."""

    def versions(fragment: Fragment, data: bytes | None) -> VersionSequence:
        if data is None:
            return VersionSequence.constant(fragment.physical_rows, 1)
        return decode_versions(data, f"fragment {fragment.id}", fragment.physical_rows)

    return VersionSequence.join(map(versions, fragments, sequences)).without(gone)


# --------------------------------------------------------------------------------------------------------- transaction
def compaction_transaction(
    groups: Sequence[tuple[Group, Now]],
    deletions: Mapping[int, DeletionFile],
    context: ReadContext,
    *,
    stable_row_ids: bool,
    uuid: str,
) -> Transaction:
    """The Rewrite of some groups, none of which is overtaken. ``deletions`` are files by new fragment id."""

    def finished(group: Group, now: Now) -> RewriteGroup:
        new = tuple(_with_lineage(group, now, context)) if stable_row_ids else group.new
        hidden = tuple(replace(fragment, deletion=deletions.get(fragment.id)) for fragment in new)
        return RewriteGroup(old_fragments=group.old, new_fragments=hidden)

    read_version = min(group.read_version for group, _ in groups)
    rewrite = Rewrite(groups=tuple(finished(*each) for each in groups))
    return Transaction(read_version=read_version, uuid=uuid, operation=rewrite)
