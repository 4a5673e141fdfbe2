"""A compaction in its simplest form: planned on one version, committed on another, without anything of `lance`.

It reads the old fragments when it is planned and lists them as they were read. When it is committed, rows that are gone
since become deletion vectors of the new fragments. Columns that changed in between are not its business.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tablewright.data.read import read_fragment
from tablewright.data.write import WriteOptions, discard_fragments, write_fragments
from tablewright.format.address_map import AddressMap, NewRows, OldRows
from tablewright.format.fragment import DeletionFileType, Fragment
from tablewright.format.naming import deletion_path
from tablewright.format.row_ids import (
    RowIdSequence,
    VersionSequence,
    decode_row_ids,
    decode_versions,
    encode_row_ids,
    encode_versions,
)
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import ReserveFragments, Rewrite, RewriteGroup, Transaction
from tablewright.snapshot.files import write_deletion_vector
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage.uncommitted import discard_files
from tablewright.transaction.commit import commit

__all__ = ["Compaction", "compact", "plan_compaction"]

Members = Sequence[Fragment]


@dataclass(frozen=True)
class Compaction:
    """New fragments that were written for groups of old ones, which ``base`` has."""

    base: Snapshot
    groups: tuple[tuple[tuple[Fragment, ...], tuple[Fragment, ...]], ...]
    reorder: bool = False

    def commit(self) -> Snapshot:
        """Put it on the newest version."""
        world, outputs = self.base.world, sum(len(new) for _, new in self.groups)
        newest = open_snapshot(world)
        reserve = Transaction(
            read_version=newest.version,
            uuid=str(world.ids.uuid()),
            operation=ReserveFragments(num_fragments=outputs),
        )
        first = (newest.manifest.max_fragment_id or 0) + 1
        newest = commit(world, reserve, base=newest).snapshot
        ids = itertools.count(first)
        groups = tuple(
            self._group(newest, old, tuple(replace(each, id=next(ids)) for each in new)) for old, new in self.groups
        )
        rewrite = Transaction(
            read_version=self.base.version, uuid=str(world.ids.uuid()), operation=Rewrite(groups=groups)
        )
        made = commit(world, rewrite, base=newest).snapshot
        unused = [each for group in groups for each in group.new_fragments if not made.fragments.has(each.id)]
        discard_fragments(world, unused)
        discard_files(world.store, [deletion_path(each.id, each.deletion) for each in unused if each.deletion])
        return made

    def _group(self, newest: Snapshot, old: Members, new: Members) -> RewriteGroup:
        map = AddressMap(
            tuple(OldRows(each.id, each.physical_rows, _deleted(self.base, each)) for each in old),
            tuple(NewRows(each.id, each.physical_rows) for each in new),
        )
        hidden: dict[int, RowSet] = {}
        for each in map.old:
            now = RowSet.full(each.physical_rows)
            if newest.fragments.has(each.id):
                now = _deleted(newest, newest.fragments.by_id(each.id))
            for id, rows in map.forward(each.id, now - each.deleted).items():
                hidden[id] = hidden.get(id, RowSet()) | rows
        rows = [_with_deletions(newest, each, hidden.get(each.id)) for each in new]
        if newest.manifest.stable_row_ids:
            rows = _with_lineage(newest, map, old, rows, -1 if self.reorder else 1)
        return RewriteGroup(old_fragments=tuple(old), new_fragments=tuple(rows))


def plan_compaction(
    base: Snapshot, groups: Sequence[Sequence[int]] | None = None, *, rows_per_file: int = 1000, reorder: bool = False
) -> Compaction:
    """Write the live rows of each group of fragment ids, of all fragments by default, in order."""
    chosen = [base.fragments.ids.tolist()] if groups is None else groups
    options = WriteOptions(max_rows_per_file=rows_per_file)
    made = []
    for ids in chosen:
        old = tuple(base.fragments.by_id(id) for id in ids)
        batches = [batch for each in old for batch in read_fragment(base, each, base.schema, base.schema)]
        if reorder:
            table = pa.Table.from_batches(batches)
            batches = table.take(np.arange(table.num_rows)[::-1]).combine_chunks().to_batches()
        made.append((old, write_fragments(base.world, base.schema, batches, options)))
    return Compaction(base, tuple(made), reorder)


def compact(base: Snapshot, groups: Sequence[Sequence[int]] | None = None, *, rows_per_file: int = 1000) -> Snapshot:
    """Plan and commit."""
    return plan_compaction(base, groups, rows_per_file=rows_per_file).commit()


def _deleted(snapshot: Snapshot, fragment: Fragment) -> RowSet:
    return snapshot.deletion_vector(fragment) or RowSet()


def _with_deletions(newest: Snapshot, fragment: Fragment, rows: RowSet | None) -> Fragment:
    if not rows:
        return fragment
    world, kind = newest.world, DeletionFileType.ARROW_ARRAY
    file, _ = write_deletion_vector(world.store, fragment.id, rows, newest.version, world.ids.u64(), kind)
    return fragment.with_deletion(file)


def _with_lineage(newest: Snapshot, map: AddressMap, old: Members, new: Members, step: int) -> list[Fragment]:
    """Row ids and versions of the newest state of the old fragments, of the rows that were carried over."""
    now = [newest.fragments.by_id(each.id) if newest.fragments.has(each.id) else each for each in old]
    live = [each.deleted.absent(each.physical_rows) for each in map.old]
    pairs = list(zip(now, live, strict=True))
    ids = np.concatenate([decode_row_ids(f.row_ids or b"", "").to_numpy()[rows] for f, rows in pairs])[::step]
    created = np.concatenate([_versions(f.created_at, f).at(rows) for f, rows in pairs])[::step]
    updated = np.concatenate([_versions(f.last_updated_at, f).at(rows) for f, rows in pairs])[::step]
    ends = np.cumsum([0, *(each.physical_rows for each in new)]).tolist()
    return [
        replace(
            each,
            row_ids=encode_row_ids(RowIdSequence.from_values(ids[begin:end])),
            created_at=encode_versions(VersionSequence.from_values(created[begin:end])),
            last_updated_at=encode_versions(VersionSequence.from_values(updated[begin:end])),
        )
        for each, begin, end in zip(new, ends, ends[1:], strict=False)
    ]


def _versions(data: bytes | None, fragment: Fragment) -> VersionSequence:
    rows = fragment.physical_rows
    return VersionSequence.constant(rows, 1) if data is None else decode_versions(data, "", rows)
