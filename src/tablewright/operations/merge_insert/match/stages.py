"""The stages of a match on the driver: pairs that an index or a shuffle finds, tasks for the rest.

Tests: ``tests/unit/api/test_merge_insert.py``, ``tests/unit/operations/merge_insert/test_reuse.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from tablewright.errors import InvalidRequest
from tablewright.format.fragment import FragmentList
from tablewright.format.index import IndexMetadata
from tablewright.format.row_set import RowSet
from tablewright.indices import btree, find_rows
from tablewright.indices.query import IsIn
from tablewright.operations.merge_insert.keys.key_table import KeyTable, Positions
from tablewright.operations.merge_insert.match.pairing import PairingTask
from tablewright.operations.merge_insert.match.pairs import FragmentMatches, Pairs, by_fragment
from tablewright.operations.merge_insert.match.shuffle import KeyPlaces, SourceKeysTask, TableKeysTask, source_tasks
from tablewright.operations.merge_insert.match.strategy import Hits, Strategy
from tablewright.operations.merge_insert.plan import MergePlan
from tablewright.operations.merge_insert.source.distinct import ambiguous
from tablewright.operations.merge_insert.source.kept import KeptSource
from tablewright.operations.merge_insert.source.shared import SharedKeys, SharedSource, source_keys
from tablewright.reading.chosen import ChosenRows
from tablewright.reading.projection import RowLayout
from tablewright.reading.scan_task import ScanTask
from tablewright.snapshot.snapshot import Snapshot

__all__ = [
    "expected_hits",
    "index_candidates",
    "index_pairs",
    "known_matches",
    "pairing_tasks",
    "shuffle_tasks",
    "shuffled_pairs",
]

_SAMPLE_ROWS = 512


def index_pairs(snapshot: Snapshot, plan: MergePlan, strategy: Strategy, source: KeptSource) -> dict[int, Pairs]:
    """The pairs in the indexed fragments, by fragment id, looked up in the index here."""
    found: dict[int, list[Pairs]] = {}
    asked = frozenset(strategy.indexed)
    for start, stop in strategy.ranges if strategy.segments else ():
        (keys,) = source_keys(source, plan.key, (start, stop))
        positions, addresses = find_rows(snapshot, strategy.segments, _whole(keys))
        for id, pairs in by_fragment(addresses, positions + start):
            if id in asked:
                found.setdefault(id, []).append(pairs)
    return {id: Pairs.joined(parts) for id, parts in found.items()}


def index_candidates(
    snapshot: Snapshot, plan: MergePlan, strategy: Strategy, source: KeptSource
) -> dict[int, ChosenRows]:
    """The rows in the indexed fragments whose one key column is that of a source row, by fragment id."""
    assert strategy.narrows is not None
    asked, found = frozenset(strategy.indexed), dict[int, RowSet]()
    for rows in strategy.ranges:
        keys = _whole(source_keys(source, plan.key, rows)[strategy.narrows])
        distinct = keys if pa.types.is_floating(keys.type) else keys.unique()  # which merges the two zeros
        positions, addresses = find_rows(snapshot, strategy.segments, distinct)
        for id, pairs in by_fragment(addresses, positions):
            if id in asked:
                found[id] = found.get(id, RowSet()) | RowSet.of(pairs.offsets)
    return {id: ChosenRows(rows, exact=False) for id, rows in found.items()}


def expected_hits(snapshot: Snapshot, plan: MergePlan, source: KeptSource) -> Hits:
    """How many rows an index on one of the key columns would find, from a sample of the source's keys."""
    rows = (0, min(source.num_rows, _SAMPLE_ROWS))

    def hits(place: int, segments: tuple[IndexMetadata, ...]) -> float:
        keys = _whole(source_keys(source, plan.key, rows)[place]).drop_null()
        distinct = keys if pa.types.is_floating(keys.type) else keys.unique()
        if not len(distinct):
            return 0.0
        try:
            found = sum(btree.estimate(snapshot, index, IsIn(distinct)) or 0.0 for index in segments)
        except InvalidRequest:  # keys of a type that this index does not hold
            return float(plan.fragments.total_live_rows)
        seen_before = 1 - len(distinct) / len(keys)
        return found * (1 + (source.num_rows / rows[1] - 1) * (1 - seen_before))

    return hits


def shuffle_tasks(
    plan: MergePlan, strategy: Strategy, source: SharedSource
) -> tuple[SourceKeysTask | TableKeysTask, ...]:
    """Tasks for the keys of both sides."""
    reads = replace(plan.scan.reads, first=RowLayout.of(plan.table, plan.key.paths))
    scan, limits = replace(plan.scan, reads=reads), plan.limits.match
    scans = _scans(scan, plan.fragments, strategy.scanned, limits.shuffle_task_bytes)
    return (
        *source_tasks(source, plan.key, limits),
        *(TableKeysTask(scan=scan, key=plan.key) for scan in scans),
    )


def shuffled_pairs(
    plan: MergePlan, strategy: Strategy, source: KeptSource, places: Sequence[KeyPlaces]
) -> tuple[dict[int, Pairs], Positions]:
    """The pairs of all scanned fragments, and the source rows that others stand for.

    Two source rows with one key are an error, if nothing decides between them.
    """
    duplicate = min((each.duplicate for each in places if each.duplicate is not None), default=None)
    if duplicate is not None:
        raise ambiguous(source, plan.key, *duplicate)
    found: dict[int, list[Pairs]] = {id: [] for id in strategy.scanned}
    for each in places:
        for id, pairs in each.pairs.items():
            found[id].append(pairs)
    dropped = np.concatenate([np.zeros(0, np.int64), *(each.dropped for each in places)])
    return {id: Pairs.joined(parts) for id, parts in found.items()}, dropped


def _whole(keys: pa.ChunkedArray) -> pa.Array:
    return keys.chunk(0) if keys.num_chunks == 1 else keys.combine_chunks()


def known_matches(plan: MergePlan, known: Mapping[int, Pairs]) -> list[FragmentMatches]:
    """What was found, where nothing else has to be asked about it."""
    if plan.conditions is not None or plan.clauses.changes_unmatched:
        return []
    return [FragmentMatches(fragment_id=id, pairs=pairs) for id, pairs in known.items() if len(pairs)]


def pairing_tasks(
    plan: MergePlan,
    strategy: Strategy,
    keys: KeyTable | SharedKeys | None,
    source: KeptSource | SharedSource,
    known: Mapping[int, Pairs],
    candidates: Mapping[int, ChosenRows] | None = None,
) -> tuple[PairingTask, ...]:
    """Tasks for the fragments that have to be read: for their keys, or to ask the conditions about known pairs.

    Without ``keys`` all pairs are known. Of fragments in ``candidates`` only these rows may match.
    """
    by_source = plan.clauses.changes_unmatched
    asked = known if plan.conditions is not None or by_source else {}
    searched = () if keys is None else strategy.scanned
    condition_only = [id for id, pairs in asked.items() if by_source or len(pairs)]
    return tuple(
        PairingTask(
            scan=scan,
            key=plan.key,
            keys=keys,
            known={id: asked[id] for id in scan.fragment_ids if id in asked} if asked else {},
            conditions=plan.conditions,
            source=None if plan.conditions is None else source,
            by_source=by_source,
            by_source_conditions=plan.by_source_conditions,
        )
        for scan in _scans(
            replace(plan.scan, chosen=candidates or {}),
            plan.fragments,
            [*searched, *condition_only, *(candidates or ())],
        )
    )


def _scans(
    scan: ScanTask, fragments: FragmentList, ids: Sequence[int], task_bytes: int | None = None
) -> tuple[ScanTask, ...]:
    """Scans of some fragments, in parts."""
    if len(ids) == len(fragments):
        return _tasks(scan, task_bytes)
    places = np.flatnonzero(np.isin(fragments.ids.astype(np.int64), np.array(ids, np.int64))).tolist()
    some = replace(
        scan,
        fragments=fragments.at(places),
        first_rows=tuple(scan.first_rows[place] for place in places),
    )
    return _tasks(some, task_bytes)


def _tasks(scan: ScanTask, task_bytes: int | None) -> tuple[ScanTask, ...]:
    return scan.tasks if task_bytes is None else tuple(scan.split(task_bytes))
