"""Is an index asked, or is a scan cheaper? From estimates of the rows that it would return.

A scan reads the filter's columns of all rows. An index costs a fixed sum per segment, some more per hit, and its hits
are then taken one by one: their columns for the result, and those of the filter where the index is not exact. A scan in
two steps takes its matches, too, so that this is no difference. Of parts that are joined by AND, the smallest is asked,
and each other one that saves more than it costs; the filter looks at the rest.

Costs are in nanoseconds; what a query returns does not depend on them. They are round numbers near one measurement with
10 million rows in ten fragments on a local disk, two cores under heavy load, each figure the best of 3 to 20 runs:

- ``count_rows`` without an index: 9 ns per row for a column of 8 bytes, 110 for a text of some 12;
- ``to_table`` without an index, three columns read at once: 70 to 120 ns per row;
- ``count_rows`` of 1,000 to a million neighbours by a BTREE: 75 to 190 ns per hit; of three, 1.2 ms with all planning.
  ``lookup_ns`` is not measured on its own: half of that is a guess;
- ``to_table`` of 20,000 to 110,000 scattered rows by a BITMAP: 17 to 48 µs per row that is taken.

Rows that lie closer than one in fifty are read as ranges, so taking more than that share is not priced higher.

Tests: ``tests/unit/reading/test_index_costs.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tablewright.indices.registry import offered
from tablewright.reading.index_filter import Asked, AskedTree, Every, Some
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["DEFAULT_COSTS", "Decision", "IndexCosts", "ScanCost", "decide_use", "rows_worth_taking"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexCosts:
    """What reading costs. ``unknown_share`` of the rows are expected of a condition that nobody can estimate."""

    lookup_ns: float = 600_000
    hit_ns: float = 100
    take_row_ns: float = 20_000
    scan_row_ns: float = 2
    scan_byte_ns: float = 1.0
    unknown_share: float = 0.05


DEFAULT_COSTS = IndexCosts()
_DENSE = 1 / 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanCost:
    """What a scan of the known fragments reads for the filter, and how many rows end it early.

    ``takes_matches``: it reads other columns of its matches in a second step.
    """

    rows: int
    nbytes: int
    counts_only: bool = False
    rows_wanted: int | None = None
    takes_matches: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The indices that are asked, if any, about how many rows they return, and the reason."""

    tree: AskedTree | None
    why: str
    hits: float = 0


def decide_use(
    snapshot: Snapshot, tree: AskedTree, scan: ScanCost, *, forced: bool = False, costs: IndexCosts = DEFAULT_COSTS
) -> Decision:
    """Whether to ask; ``forced`` asks in any case. Estimates are read from the indices where a scan is dear enough."""
    if forced:
        return Decision(tree=tree, why="use_scalar_index=True was asked for")
    scan_ns = _scan_ns(scan.rows, scan.nbytes, costs)
    least = costs.lookup_ns * sum(len(asked.segments) for asked in _cheapest(tree))
    if scan_ns <= least:
        return Decision(tree=None, why=f"a scan of {scan.rows} rows costs less than opening an index")
    best = min(_ways(snapshot, tree, scan, costs), key=lambda way: _price(way, scan, costs))
    hits = best.hits
    if scan.rows_wanted is not None and hits > scan.rows_wanted:
        scan_ns *= scan.rows_wanted / hits
    if scan.takes_matches and not scan.counts_only:
        scan_ns += _takes_ns(hits if scan.rows_wanted is None else min(hits, scan.rows_wanted), scan, costs)
    facts = f"about {round(hits)} of {scan.rows} rows"
    if _price(best, scan, costs) >= scan_ns:
        return Decision(tree=None, why=f"{facts} would be taken one by one, and a scan costs less", hits=hits)
    return Decision(tree=best.tree, why=f"{facts} match: asking costs less than reading all", hits=hits)


def rows_worth_taking(asked: Asked, rows: int, nbytes: int, costs: IndexCosts = DEFAULT_COSTS) -> int:
    """How many rows may be found by an index and taken one by one before a scan of so many rows and bytes costs less.

    0 if the scan costs less than opening the index.
    """
    left = _scan_ns(rows, nbytes, costs) - _lookups_ns(asked, costs)
    return max(0, int(left / (costs.take_row_ns + costs.hit_ns)))


def _scan_ns(rows: int, nbytes: int, costs: IndexCosts) -> float:
    return rows * costs.scan_row_ns + nbytes * costs.scan_byte_ns


@dataclass(frozen=True, slots=True)
class _Way:
    """What is asked, about how many rows are left of it, and how many ids the indices return for that."""

    tree: AskedTree
    hits: float
    ids: float


def _ways(snapshot: Snapshot, tree: AskedTree, scan: ScanCost, costs: IndexCosts) -> Iterator[_Way]:
    yield _weighed(snapshot, tree, scan.rows, costs, asks_all=False)
    if scan.counts_only and not isinstance(tree, Asked):  # an exact answer is worth more: no row is taken
        yield _weighed(snapshot, tree, scan.rows, costs, asks_all=True)


def _price(way: _Way, scan: ScanCost, costs: IndexCosts) -> float:
    takes = 0 if scan.counts_only and way.tree.exact >= way.tree.known else _takes_ns(way.hits, scan, costs)
    return _lookups_ns(way.tree, costs) + way.ids * costs.hit_ns + takes


def _takes_ns(hits: float, scan: ScanCost, costs: IndexCosts) -> float:
    """What it costs to take rows: above a share of them ranges are read."""
    return min(hits, max(1.0, scan.rows * _DENSE)) * costs.take_row_ns


def _cheapest(tree: AskedTree) -> Iterable[Asked]:
    """The leaves that have to be asked at least."""
    if isinstance(tree, Asked):
        return [tree]
    if isinstance(tree, Some):
        return [asked for part in tree.parts for asked in _cheapest(part)]
    return min(
        (list(_cheapest(part)) for part in tree.parts), key=lambda parts: sum(len(part.segments) for part in parts)
    )


def _lookups_ns(tree: AskedTree, costs: IndexCosts) -> float:
    if isinstance(tree, Asked):
        return costs.lookup_ns * len(tree.segments)
    return sum(_lookups_ns(part, costs) for part in tree.parts)


def _weighed(snapshot: Snapshot, tree: AskedTree, rows: int, costs: IndexCosts, *, asks_all: bool) -> _Way:
    """The parts that are worth asking, the smallest first. Parts of an AND are taken to be independent."""
    if isinstance(tree, Asked):
        hits = _hits(snapshot, tree, rows, costs)
        return _Way(tree, hits, hits)
    ways = [_weighed(snapshot, part, rows, costs, asks_all=asks_all) for part in tree.parts]
    if isinstance(tree, Some):
        parts = tuple(way.tree for way in ways)
        return _Way(Some(parts), min(float(rows), sum(way.hits for way in ways)), sum(way.ids for way in ways))
    ways.sort(key=lambda way: way.hits)
    kept, left, ids = [ways[0].tree], ways[0].hits, ways[0].ids
    for way in ways[1:]:
        share = min(1.0, way.hits / max(rows, 1))
        price = _lookups_ns(way.tree, costs) + way.ids * costs.hit_ns
        if asks_all or left * (1 - share) * costs.take_row_ns > price:
            kept, left, ids = [*kept, way.tree], left * share, ids + way.ids
    return _Way(Every(tuple(kept), asks_all=tree.asks_all and len(kept) == len(ways)), left, ids)


def _hits(snapshot: Snapshot, asked: Asked, rows: int, costs: IndexCosts) -> float:
    estimate = offered(asked.kind).estimate
    total = 0.0
    for index, _ in asked.segments:
        found = None if estimate is None else estimate(snapshot, index, asked.leaf.query)
        if found is None:
            return rows * costs.unknown_share
        total += found
    return max(0.0, rows - total) if asked.leaf.negated else min(float(rows), total)
