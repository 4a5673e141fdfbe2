"""How keys are matched, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.format.index import IndexMetadata
from tablewright.operations.merge_insert.clauses import Clauses
from tablewright.operations.merge_insert.match.strategy import (
    Strategy,
    choose_strategy,
    key_ranges,
    too_many_for_a_worker,
)
from tablewright.operations.merge_insert.plan import plan_merge
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

SCHEMA = pa.schema({"k": pa.int64(), "x": pa.int64()})
ROWS_PER_FRAGMENT, FRAGMENTS = 1_000_000, 4


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    """Four fragments of a million rows each, as the manifest says."""
    uri = "memory://strategy"
    tw.write_dataset({"k": range(FRAGMENTS), "x": range(FRAGMENTS)}, uri, max_rows_per_file=1)
    small = open_snapshot(World(open_store(uri)))
    large = [replace(fragment, physical_rows=ROWS_PER_FRAGMENT) for fragment in small.fragments]
    fragments = type(small.fragments).of(large)
    return replace(small, file=replace(small.file, manifest=replace(small.manifest, fragments=fragments)))


def indexed(snapshot: Snapshot, *covered: int) -> Snapshot:
    index = IndexMetadata(
        uuid=UUID(int=1),
        fields=(0,),
        name="k_idx",
        dataset_version=1,
        details_type_url="/lance.table.BTreeIndexDetails",
    )
    indices = (index.with_coverage(covered),)
    return replace(snapshot, file=replace(snapshot.file, manifest=replace(snapshot.manifest, indices=indices)))


def chosen(snapshot: Snapshot, rows: int | None, on: Any = "k", *, known: Any = (), **given: Any) -> Strategy:
    options = {name: given.pop(name) for name in ("ranges", "shuffles") if name in given}
    clauses = Clauses(**{"when_matched": "update", "insert": True, **given})
    if on == ["k", "x"]:
        clauses = Clauses(insert=True)
    return choose_strategy(snapshot, plan_merge(snapshot, clauses, on, SCHEMA, 0), rows, known=known, **options)


@pytest.mark.parametrize(
    ("given", "name", "words"),
    [
        ({}, "broadcast", "no BTREE index on the key; 10 keys go to every task"),
        ({"on": ["k", "x"]}, "broadcast", "no BTREE index on any of the key's 2 columns"),
        ({"ranges": ((0, 5), (5, 10))}, "passes", "go through the table in 2 turns"),
        ({"shuffles": True}, "shuffle", "10 keys are too many for one worker"),
    ],
    ids=str,
)
def test_without_an_index(snapshot: Snapshot, given: dict[str, Any], name: str, words: str) -> None:
    found = chosen(snapshot, 10, **given)
    assert found.name == name and words in found.why
    assert found.scanned == (0, 1, 2, 3) and not found.indexed
    assert found.ranges == given.get("ranges", ((0, 10),))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"use_index": False}, "use_index=False was asked for"),
        ({"delete_by_source": True}, "which no index knows"),
        ({"shuffles": True}, "so many keys are not looked up"),
        ({"on": "x"}, "no BTREE index on the key"),
    ],
    ids=str,
)
def test_where_an_index_does_not_serve(snapshot: Snapshot, given: dict[str, Any], words: str) -> None:
    found = chosen(indexed(snapshot, 0, 1, 2, 3), 10, **given)
    assert found.name != "index" and words in found.why


def test_an_index_serves_few_keys_in_many_rows(snapshot: Snapshot) -> None:
    """Reading a key costs 22 ns, looking one up 5000, after 6 ms: of 2 million rows it pays off up to 7600 keys."""
    both = indexed(snapshot, 0, 2)
    found = chosen(both, 7600)
    assert (found.name, found.indexed, found.scanned) == ("index", (0, 2), (1, 3))
    assert "covers 2000000 rows in 2 of 4 fragments: asking it for 7600 keys" in found.why
    assert str(found).endswith("ScalarIndexQuery: index=[k_idx](BTree), covered_fragments=2, scanned_fragments=2")
    many = chosen(both, 7601)
    assert many.name == "broadcast" and "costs less than looking up 7601" in many.why
    assert "up to about 7600 keys" in chosen(both, None).why


def test_fragments_in_which_nothing_is_to_be_found(snapshot: Snapshot) -> None:
    found = chosen(indexed(snapshot, 0, 1, 2), 10, known={1, 3})
    assert (found.name, found.indexed, found.scanned) == ("index", (0, 2), ())


@pytest.mark.parametrize(
    ("rows", "key_bytes", "expected"),
    [
        (0, 0, ((0, 0),)),
        (1 << 22, 1 << 25, ((0, 1 << 22),)),
        ((1 << 22) + 1, 1 << 25, ((0, 2097152), (2097152, 4194305))),
        (10, 1 << 28, ((0, 5), (5, 10))),
    ],
)
def test_turns(rows: int, key_bytes: int, expected: tuple[tuple[int, int], ...]) -> None:
    assert key_ranges(rows, key_bytes) == expected


@pytest.mark.parametrize(
    ("rows", "key_bytes", "expected"),
    [(1 << 20, 1 << 25, False), ((1 << 20) + 1, 0, True), (1, (1 << 25) + 1, True)],
)
def test_a_worker_holds_some_keys(rows: int, key_bytes: int, expected: bool) -> None:
    assert too_many_for_a_worker(rows, key_bytes) is expected


def test_of_several_key_columns_the_most_selective_index_narrows(snapshot: Snapshot) -> None:
    both = indexed(snapshot, 0, 2)
    (first,) = both.manifest.indices
    second = replace(first, uuid=UUID(int=2), fields=(1,), name="x_idx")
    manifest = replace(both.manifest, indices=(first, second))
    both = replace(both, file=replace(both.file, manifest=manifest))
    plan = plan_merge(both, Clauses(insert=True), ["k", "x"], SCHEMA, 0)

    found = choose_strategy(both, plan, 100, hits=lambda place, segments: [500, 20][place])
    assert (found.name, found.narrows, found.indexed, found.scanned) == ("index", 1, (0, 2), (1, 3))
    assert "the index on x covers" in found.why and "reading about 20 rows" in found.why
    dear = choose_strategy(both, plan, 100, hits=lambda place, segments: 10**9)
    assert dear.name == "broadcast" and "costs less than looking up 100" in dear.why
    assert choose_strategy(both, plan, None).narrows == 0
