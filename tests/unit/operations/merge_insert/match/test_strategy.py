"""How rows find their keys: the cheapest way that serves, and the reason."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.operations.merge_insert.plans import planned
from tests.unit.operations.tables import btree, fragment, snapshot

from tablewright.operations.merge_insert.limits import MatchLimits, MergeLimits
from tablewright.operations.merge_insert.match.strategy import (
    choose_strategy,
    key_ranges,
    scan_bytes,
    too_many_for_a_worker,
)

ROWS = 1_000_000
FRAGMENTS = [fragment(0, ROWS), fragment(1, ROWS), fragment(4, ROWS)]
PLAIN = snapshot(*FRAGMENTS)
INDEXED = snapshot(*FRAGMENTS, indices=[btree(0, [0, 1])])
LIMIT = int((2 * ROWS * (10 + 1.5 * 8) - 6_000_000) / 5_000)
"""So many keys cost as much in the index as two fragments' keys of 8 bytes do in a scan."""


@pytest.mark.parametrize(
    ("table", "given", "source_rows", "options", "name", "why", "scanned"),
    [
        (PLAIN, {}, 10, {}, "broadcast", "there is no BTREE index on the key; 10 keys go to every task", (0, 1, 4)),
        (PLAIN, {}, None, {}, "broadcast", "more than 1048576 would be shuffled by Spark", (0, 1, 4)),
        (PLAIN, {}, 10, {"known": {1}}, "broadcast", "no BTREE", (0, 4)),
        (PLAIN, {}, 10, {"ranges": ((0, 5), (5, 10))}, "passes", "go through the table in 2 turns", (0, 1, 4)),
        (PLAIN, {}, 10, {"shuffles": True}, "shuffle", "10 keys are too many for one worker", (0, 1, 4)),
        (INDEXED, {}, LIMIT, {}, "index", "covers 2000000 rows in 2 of 3 fragments", (4,)),
        (INDEXED, {}, LIMIT + 1, {}, "broadcast", "reading their keys costs less than looking up", (0, 1, 4)),
        (INDEXED, {}, None, {}, "index", f"up to about {LIMIT} keys", (4,)),
        (INDEXED, {}, 10, {"known": {0, 4}}, "index", "covers 1000000 rows in 1 of 1 fragments", ()),
        (INDEXED, {}, 10, {"shuffles": True}, "shuffle", "so many keys are not looked up in an index", (0, 1, 4)),
        (INDEXED, {"use_index": False}, 10, {}, "broadcast", "use_index=False was asked for", (0, 1, 4)),
        (INDEXED, {"delete_by_source": True}, 10, {}, "broadcast", "which no index knows", (0, 1, 4)),
        (INDEXED, {"on": ["id", "s"]}, 10, {}, "broadcast", "the key has 2 columns", (0, 1, 4)),
        (INDEXED, {"on": "x"}, 10, {}, "broadcast", "there is no BTREE index on the key", (0, 1, 4)),
    ],
)
def test_the_way_and_the_reason(
    table: Any, given: Any, source_rows: int | None, options: Any, name: str, why: str, scanned: Any
) -> None:
    strategy = choose_strategy(table, planned(table=table, **given), source_rows, **options)
    assert strategy.name == name and why in strategy.why, strategy.why
    assert strategy.scanned == scanned
    assert (strategy.indexed != ()) == (strategy.segments != ()) == (name == "index")
    assert strategy.ranges == options.get("ranges", ((0, source_rows or 0),))


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (MatchLimits(lookup_ns=0, lookup_key_ns=0.001), "index"),
        (MatchLimits(lookup_ns=10**12), "broadcast"),
        (MatchLimits(lookup_key_ns=10**9), "broadcast"),
        (MatchLimits(scan_row_ns=0, scan_byte_ns=0), "broadcast"),
        (MatchLimits(scan_byte_ns=1000), "index"),
    ],
)
def test_costs_decide(limits: MatchLimits, name: str) -> None:
    plan = planned(table=INDEXED, limits=MergeLimits(match=limits))
    assert choose_strategy(INDEXED, plan, 2 * LIMIT if name == "index" else 10).name == name


def test_an_index_explains_itself() -> None:
    text = str(choose_strategy(INDEXED, planned(table=INDEXED), 10))
    assert "ScalarIndexQuery: index=[id_idx](BTree), covered_fragments=2, scanned_fragments=1" in text


@pytest.mark.parametrize(
    ("rows", "key_bytes", "ranges"),
    [
        (0, 0, ((0, 0),)),
        (100, 1000, ((0, 100),)),
        (101, 1000, ((0, 50), (50, 101))),
        (100, 1001, ((0, 50), (50, 100))),
        (250, 10, ((0, 83), (83, 166), (166, 250))),
    ],
)
def test_ranges_of_keys(rows: int, key_bytes: int, ranges: Any) -> None:
    assert key_ranges(rows, key_bytes, MatchLimits(keys_per_pass=100, key_bytes_per_pass=1000)) == ranges


@pytest.mark.parametrize(
    ("rows", "key_bytes", "too_many"), [(100, 1000, False), (101, 1000, True), (100, 1001, True), (0, 0, False)]
)
def test_too_many_keys_for_a_worker(rows: int, key_bytes: int, too_many: bool) -> None:
    limits = MatchLimits(keys_per_worker=100, key_bytes_per_worker=1000)
    assert too_many_for_a_worker(rows, key_bytes, limits) == too_many


def test_bytes_of_a_scan() -> None:
    plan = planned(table=PLAIN)
    assert scan_bytes(plan, [0, 4]) == 2 * ROWS * 8 and scan_bytes(plan, []) == 0
