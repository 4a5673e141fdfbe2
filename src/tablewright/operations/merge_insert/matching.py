"""The stages of a match on the driver: keys that an index knows, letters for the rest, and what came home."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tablewright.data.system_columns import ADDRESS_BITS
from tablewright.indices import find_rows
from tablewright.operations.merge_insert.keys import KeyTable, Positions
from tablewright.operations.merge_insert.match import MatchTask
from tablewright.operations.merge_insert.pairs import FragmentMatches, Pairs
from tablewright.operations.merge_insert.plan import MergePlan
from tablewright.operations.merge_insert.shared import SharedKeys, SharedSource, source_keys
from tablewright.operations.merge_insert.source import KeptSource
from tablewright.operations.merge_insert.strategy import Strategy
from tablewright.operations.scan import ScanTask
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["index_pairs", "known_matches", "match_tasks"]

_OFFSET_MASK = np.uint64((1 << ADDRESS_BITS) - 1)


def index_pairs(snapshot: Snapshot, plan: MergePlan, strategy: Strategy, source: KeptSource) -> dict[int, Pairs]:
    """The pairs in covered fragments, by fragment id, looked up in the index here."""
    found: dict[int, list[Pairs]] = {}
    for start, stop in strategy.ranges if strategy.segments else ():
        (keys,) = source_keys(source, plan.key, (start, stop))
        positions, addresses = find_rows(snapshot, strategy.segments, _whole(keys))
        for id, pairs in _by_fragment(positions + start, addresses):
            found.setdefault(id, []).append(pairs)
    return {id: Pairs.joined(parts) for id, parts in found.items()}


def _whole(keys: pa.ChunkedArray) -> pa.Array:
    return keys.chunk(0) if keys.num_chunks == 1 else keys.combine_chunks()


def _by_fragment(positions: Positions, addresses: np.ndarray) -> Iterator[tuple[int, Pairs]]:
    order = np.argsort(addresses, kind="stable")
    positions, addresses = positions[order], addresses[order]
    ids, begins = np.unique(addresses >> np.uint64(ADDRESS_BITS), return_index=True)
    edges = [*begins.tolist(), len(addresses)]
    for id, (begin, end) in zip(ids.tolist(), pairwise(edges), strict=True):
        offsets = (addresses[begin:end] & _OFFSET_MASK).astype(np.uint32)
        yield id, Pairs(offsets, positions[begin:end])


def known_matches(plan: MergePlan, known: Mapping[int, Pairs]) -> list[FragmentMatches]:
    """What an index found, where there is no condition to ask about it."""
    if plan.condition is not None:
        return []
    return [FragmentMatches(fragment_id=id, pairs=pairs) for id, pairs in known.items()]


def match_tasks(
    plan: MergePlan,
    strategy: Strategy,
    keys: KeyTable | SharedKeys,
    source: KeptSource | SharedSource,
    known: Mapping[int, Pairs],
) -> tuple[MatchTask, ...]:
    """Letters for the fragments that have to be read: for their keys, or for the condition on known pairs."""
    asked = known if plan.condition is not None else {}
    ids = [*strategy.scanned, *asked]
    return tuple(
        MatchTask(
            scan=scan,
            key=plan.key,
            keys=keys,
            known={fragment.id: asked[fragment.id] for fragment in scan.fragments if fragment.id in asked},
            condition=plan.condition,
            source=None if plan.condition is None else source,
            by_source=plan.clauses.delete_by_source,
            by_source_condition=plan.by_source_condition,
        )
        for scan in _scans(plan, ids)
    )


def _scans(plan: MergePlan, ids: Sequence[int]) -> tuple[ScanTask, ...]:
    """Scans of some fragments, in parts."""
    whole = plan.scan.whole
    if len(ids) == len(plan.fragments):
        return plan.scan.tasks
    places = np.flatnonzero(np.isin(plan.fragments.ids.astype(np.int64), np.array(ids, np.int64))).tolist()
    some = replace(
        whole,
        fragments=tuple(plan.fragments[place] for place in places),
        first_rows=tuple(whole.first_rows[place] for place in places),
    )
    return replace(plan.scan, whole=some).tasks
