"""From what an index stores to rows of a version: what its segments cover, and which of their hits are alive.

A segment *covers* the fragments of its bitmap that still exist. Everything else in it is stale: a row that moved or was
deleted stays in the index. So a hit counts if its row is live in a fragment that *this* segment covers, and rows of all
other fragments have to be found by a scan. An older segment may name a row under a value that it no longer has; the
row's fragment is then covered by another segment, or by none.

Hits are stable row ids or addresses (:func:`~tablewright.format.index_kinds.stores_row_ids`). After a compaction that
deferred its work on indices an index may hold addresses of fragments that are gone: addresses, ranges and coverage go
through the record of such compactions (:mod:`tablewright.indices.reuse`).

Format: ``docs/format/indices.md#coverage``, ``docs/format/indices.md#fragment-reuse``.

Tests: ``tests/unit/indices/test_rows.py``, ``tests/differential/indices/test_filters.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from pyroaring import BitMap, FrozenBitMap

from tablewright.errors import CorruptTable
from tablewright.format.fragment import Fragment
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import stores_row_ids
from tablewright.format.row_address import Addresses, RowAddress
from tablewright.format.row_set import Offsets, RowSet
from tablewright.indices.query import Ids, RowRanges
from tablewright.indices.reuse import reuse_entry, reused_coverage, translate_addresses
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.address import join_uri

__all__ = ["RowsByFragment", "all_live_rows", "count_at", "covered_fragments", "rows_at", "rows_in_ranges"]

RowsByFragment = dict[int, RowSet]
"""Rows by the id of their fragment; a fragment without any is left out."""


def covered_fragments(snapshot: Snapshot, segments: Iterable[IndexMetadata]) -> FrozenBitMap:
    """The fragments of a version that these segments cover."""
    return FrozenBitMap.union(FrozenBitMap(), *(reused_coverage(snapshot, index) for index in segments))


def rows_at(snapshot: Snapshot, index: IndexMetadata, fragments: FrozenBitMap, ids: Ids) -> RowsByFragment:
    """The live rows among the hits of a segment that are in ``fragments``, which it covers."""
    return _rows_at_addresses(snapshot, index, fragments, _addresses(snapshot, index, ids))


def count_at(snapshot: Snapshot, index: IndexMetadata, fragments: FrozenBitMap, ids: Ids) -> int:
    """How many rows :func:`rows_at` returns; quicker where nothing is deleted."""
    total = 0
    for fragment, offsets in _by_fragment(snapshot, fragments, _addresses(snapshot, index, ids)):
        if int(offsets[-1]) >= fragment.physical_rows:
            raise _beyond(snapshot, index, fragment)
        total += len(offsets) if fragment.deletion is None else len(_alive(snapshot, fragment, RowSet.of(offsets)))
    return total


def _addresses(snapshot: Snapshot, index: IndexMetadata, ids: Ids) -> Addresses:
    """Where the hits of a segment are now; those that are gone are left out."""
    if snapshot.manifest.stable_row_ids and stores_row_ids(index):
        addresses, alive = snapshot.addresses_of(ids)
        return addresses[alive]
    if reuse_entry(snapshot.manifest) is not None:
        addresses, kept = translate_addresses(snapshot, ids, index)
        return addresses[kept]
    return ids


def _rows_at_addresses(
    snapshot: Snapshot, index: IndexMetadata, fragments: FrozenBitMap, addresses: Addresses
) -> RowsByFragment:
    found = {}
    for fragment, offsets in _by_fragment(snapshot, fragments, addresses):
        if int(offsets[-1]) >= fragment.physical_rows:
            raise _beyond(snapshot, index, fragment)
        if rows := _alive(snapshot, fragment, RowSet.of(offsets)):
            found[fragment.id] = rows
    return found


def rows_in_ranges(
    snapshot: Snapshot, index: IndexMetadata, fragments: FrozenBitMap, ranges: RowRanges
) -> RowsByFragment:
    """The live rows of ranges of physical rows that are in ``fragments``, which the segment covers."""
    bitmaps: dict[int, BitMap] = {}
    gone: list[tuple[int, int, int]] = []
    for fragment_id, start, stop in zip(*(part.tolist() for part in ranges), strict=True):
        if fragment_id in fragments:
            bitmaps.setdefault(fragment_id, BitMap()).add_range(start, stop)
        elif not snapshot.fragments.has(fragment_id):
            gone.append((fragment_id, start, stop))
    found = {}
    if gone and reuse_entry(snapshot.manifest) is not None:
        addresses = [RowAddress.join(owner, np.arange(start, stop)) for owner, start, stop in gone]
        found = rows_at(snapshot, index, fragments, np.concatenate(addresses))
    for fragment_id, bitmap in bitmaps.items():
        fragment = snapshot.fragments.by_id(fragment_id)
        if bitmap.max() >= fragment.physical_rows:
            raise _beyond(snapshot, index, fragment)
        if rows := _alive(snapshot, fragment, RowSet.of(bitmap)):
            found[fragment_id] = rows | found.get(fragment_id, RowSet())
    return found


def all_live_rows(snapshot: Snapshot, fragments: Iterable[int]) -> RowsByFragment:
    """All live rows of some fragments."""
    found = {}
    for fragment_id in fragments:
        fragment = snapshot.fragments.by_id(fragment_id)
        if rows := _alive(snapshot, fragment, RowSet.full(fragment.physical_rows)):
            found[fragment_id] = rows
    return found


def _alive(snapshot: Snapshot, fragment: Fragment, rows: RowSet) -> RowSet:
    deleted = snapshot.deletion_vector(fragment)
    return rows if deleted is None else rows - deleted


def _by_fragment(
    snapshot: Snapshot, fragments: FrozenBitMap, addresses: Addresses
) -> Iterator[tuple[Fragment, Offsets]]:
    """Those of the ``fragments`` that have some of the addresses, and their offsets there, in ascending order."""
    if len(addresses) == 1:
        owner, offset = divmod(int(addresses[0]), 1 << 32)
        if owner in fragments:
            yield snapshot.fragments.by_id(owner), np.array([offset])
        return
    owners, offsets = RowAddress.split(np.sort(addresses))
    ids, begins = np.unique(owners, return_index=True)
    for fragment_id, part in zip(ids.tolist(), np.split(offsets, begins[1:]), strict=False):
        if fragment_id in fragments:
            yield snapshot.fragments.by_id(fragment_id), part


def _beyond(snapshot: Snapshot, index: IndexMetadata, fragment: Fragment) -> CorruptTable:
    store, directory = snapshot.index_place(index)
    problem = f"it names rows beyond the {fragment.physical_rows} of fragment {fragment.id}"
    hint = f"drop index {index.name!r} or build it again, or read without it: use_scalar_index=False"
    return CorruptTable(join_uri(store.location.uri, directory), (problem, hint))
