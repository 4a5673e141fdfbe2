"""How the rows of the table find their keys. Pure, and explained: the cheapest way that serves.

- *index*: a BTREE on the key column is asked for the fragments that it covers; the rest is scanned. It pays off for
  few keys in many rows, and can't tell which rows match nothing. Of several key columns the index that finds fewest
  rows is asked; only these are read, and compared with the whole key.
- *broadcast*: all keys of the source go to every task, which reads the key columns of its fragments.
- *shuffle*: more keys than a Spark worker should hold: Spark brings the keys of both sides together and sorts them.
- *passes*: more keys than this process should hold: they go through the table in several turns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from pyroaring import FrozenBitMap

from tablewright.data.sizes import fixed_width
from tablewright.format.index import IndexMetadata
from tablewright.indices import covered, usable_btrees
from tablewright.operations.merge_insert.limits import DEFAULT_MERGE_LIMITS, MatchLimits
from tablewright.operations.merge_insert.plan import MergePlan
from tablewright.operations.merge_insert.source.shared import KeyRange
from tablewright.reading.scan_task import bytes_of_each
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["Strategy", "choose_strategy", "key_ranges", "scan_bytes", "too_many_for_a_worker"]

_KEY_BYTES_UNKNOWN = 16

Hits = Callable[[int, tuple[IndexMetadata, ...]], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """The chosen way and the reason. ``segments`` of an index answer for the fragments ``indexed``.

    ``narrows``: the index is on this one of several key columns, and the rows that it finds are read.
    """

    name: str
    why: str
    scanned: tuple[int, ...]
    ranges: tuple[KeyRange, ...]
    segments: tuple[IndexMetadata, ...] = ()
    indexed: tuple[int, ...] = ()
    narrows: int | None = None

    def __str__(self) -> str:
        text = f"  strategy: {self.name}: {self.why}"
        if not self.segments:
            return text
        names = ", ".join(dict.fromkeys(index.name for index in self.segments))
        return (
            f"{text}\n  ScalarIndexQuery: index=[{names}](BTree), covered_fragments={len(self.indexed)}, "
            f"scanned_fragments={len(self.scanned)}"
        )


def choose_strategy(
    snapshot: Snapshot,
    plan: MergePlan,
    source_rows: int | None,
    ranges: tuple[KeyRange, ...] = (),
    *,
    shuffles: bool = False,
    known: Collection[int] = (),
    hits: Hits | None = None,
) -> Strategy:
    """Decide how to match ``source_rows`` keys; ``None``: it is not known how many there will be.

    ``shuffles`` says that Spark is to bring the keys together; in the fragments ``known`` nothing has to be found.
    ``hits`` tells about how many rows the index on one of several key columns finds, by the column's place in the key.
    """
    ids = plan.fragments.ids.tolist()
    every = tuple(id for id in ids if id not in known) if known else tuple(ids)
    ranges = ranges or ((0, source_rows or 0),)
    scans = _Scans(every, ranges, source_rows, shuffles, plan.limits.match)
    if shuffles:
        return scans.because("so many keys are not looked up in an index")
    several = len(plan.key.paths) > 1
    found = [(place, usable_btrees(snapshot, field_id)) for place, field_id in enumerate(plan.key.ids)]
    choices = [(0.0 if hits is None or not several else hits(*each), *each) for each in found if each[1]]
    if not choices:
        parts = f"any of the key's {len(plan.key.paths)} columns" if several else "the key"
        return scans.because(f"there is no BTREE index on {parts}")
    expected, place, segments = min(choices, key=lambda choice: choice[0])
    if not plan.clauses.use_index:
        return scans.because("use_index=False was asked for")
    if plan.clauses.changes_unmatched:
        return scans.because("rows without a source row are wanted too, which no index knows")
    fragments = FrozenBitMap(covered(snapshot, segments)) & FrozenBitMap(every)
    rows = _rows_in(plan, fragments)
    costs = plan.limits.match
    taken = expected * costs.take_row_ns
    limit = max(0, int((rows * _row_ns(plan) - costs.lookup_ns - taken) / costs.lookup_key_ns))
    subject = f"the index on {plan.key.names[place]}" if several else "the index"
    facts = f"{subject} covers {rows} rows in {len(fragments)} of {len(every)} fragments"
    if source_rows is not None and source_rows > limit:
        return scans.because(f"{facts}, and reading their keys costs less than looking up {source_rows}")
    keys = f"up to about {limit} keys" if source_rows is None else f"{source_rows} keys"
    if several:
        keys += (
            ", and reading the rows that it finds," if hits is None else f", and reading about {round(expected)} rows,"
        )
    return Strategy(
        name="index",
        why=f"{facts}: asking it for {keys} costs less than reading theirs",
        scanned=tuple(id for id in every if id not in fragments),
        ranges=ranges,
        segments=segments,
        indexed=tuple(fragments),
        narrows=place if several else None,
    )


@dataclass(frozen=True, slots=True)
class _Scans:
    fragments: tuple[int, ...]
    ranges: tuple[KeyRange, ...]
    source_rows: int | None
    shuffles: bool
    limits: MatchLimits

    def because(self, why: str) -> Strategy:
        keys = "the source's keys" if self.source_rows is None else f"{self.source_rows} keys"
        name, how = "broadcast", f"{keys} go to every task"
        if self.source_rows is None:
            most, turn = self.limits.keys_per_worker, self.limits.keys_per_pass
            how += f" (more than {most} would be shuffled by Spark, or go in turns of {turn})"
        if self.shuffles:
            name, how = (
                "shuffle",
                f"{keys} are too many for one worker: Spark brings both sides together by key, sorted",
            )
        elif len(self.ranges) > 1:
            turns = len(self.ranges)
            name, how = "passes", f"{keys} do not fit into memory together and go through the table in {turns} turns"
        return Strategy(name=name, why=f"{why}; {how}", scanned=self.fragments, ranges=self.ranges)


def _rows_in(plan: MergePlan, fragments: FrozenBitMap) -> int:
    ids = plan.fragments.ids.astype(np.int64)
    return int(plan.fragments.physical_rows[np.isin(ids, np.fromiter(fragments, np.int64, len(fragments)))].sum())


def _row_ns(plan: MergePlan) -> float:
    fields = plan.scan.reads.first.fields.to_arrow()
    width = sum(fixed_width(field.type) or _KEY_BYTES_UNKNOWN for field in fields)
    return plan.limits.match.scan_row_ns + plan.limits.match.scan_byte_ns * width


def key_ranges(rows: int, key_bytes: int, limits: MatchLimits = DEFAULT_MERGE_LIMITS.match) -> tuple[KeyRange, ...]:
    """Rows of the source whose keys fit into memory together.

    >>> key_ranges(10, 80), len(key_ranges(10**7, 8 * 10**7))
    (((0, 10),), 3)
    """
    passes = max(1, -(-rows // limits.keys_per_pass), -(-key_bytes // limits.key_bytes_per_pass))
    edges = [rows * index // passes for index in range(passes + 1)]
    return tuple(pairwise(edges))


def too_many_for_a_worker(rows: int, key_bytes: int, limits: MatchLimits = DEFAULT_MERGE_LIMITS.match) -> bool:
    """Whether the keys of this many rows should be shuffled, rather than sent to every worker of Spark.

    >>> too_many_for_a_worker(1000, 8000), too_many_for_a_worker(10**7, 8 * 10**7)
    (False, True)
    """
    return rows > limits.keys_per_worker or key_bytes > limits.key_bytes_per_worker


def scan_bytes(plan: MergePlan, fragments: Sequence[int]) -> int:
    """About how much a scan of the keys of some fragments reads."""
    every = plan.fragments
    chosen = every if len(fragments) == len(every) else every.at(every.positions(fragments).tolist())
    return int(bytes_of_each(chosen, plan.scan.reads.shapes()[:1]).sum())
