"""Builds of every size, of no rows and of nulls alone; files of parts are gone afterwards, also after a failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.indices.btree.tables import built, check_lookup, entries_of, plan_of, stage_of, table_of, tiny

import tablewright as tw
from tablewright.errors import CorruptTable
from tablewright.indices import btree
from tablewright.indices.building import OldSegment
from tablewright.indices.query import Between, Ids, IsIn, IsNull
from tablewright.snapshot import open_snapshot
from tablewright.testing.worlds import memory_world


def everything(ids: Ids) -> tuple[Ids, Any]:
    return ids, np.ones(len(ids), np.bool_)


def test_an_untrained_index_is_two_empty_files_and_finds_nothing() -> None:
    snapshot = table_of(pa.array([1, 2]), 10)
    index = built(snapshot, plan_of(snapshot, fragments=()))
    assert entries_of(snapshot, index) == []
    check_lookup(snapshot, index, 4096)
    for query in (IsNull(), IsIn(pa.array([1])), IsIn(pa.array(range(99))), Between()):
        assert len(btree.search(snapshot, index, query).ids) == 0
        assert btree.estimate(snapshot, index, query) == 0


@pytest.mark.parametrize("by_tasks", [False, True])
def test_a_column_of_nulls(by_tasks: bool) -> None:
    snapshot = table_of(pa.nulls(9, pa.string()), 4)
    with tiny(by_tasks=by_tasks):
        index = built(snapshot)
    assert [value for value, _ in entries_of(snapshot, index)] == [None] * 9
    check_lookup(snapshot, index, 4)
    assert len(btree.search(snapshot, index, IsNull()).ids) == 9
    assert len(btree.search(snapshot, index, Between()).ids) == 0


def test_members_of_structs_and_dictionaries() -> None:
    world = memory_world()
    structs = pa.array([{"a": 3}, None, {"a": 1}], pa.struct([("a", pa.int32())]))
    words = pa.array(["y", None, "x"]).dictionary_encode()
    tw.write_dataset(pa.table({"s": structs, "w": words}), world.store.location.uri)
    snapshot = open_snapshot(world)
    member = snapshot.schema.resolve("s.a")
    plan = replace(plan_of(snapshot, column="s"), path=("s", "a"), field_id=member.id, type=pa.int32())
    assert entries_of(snapshot, built(snapshot, plan)) == [(None, 1), (1, 2), (3, 0)]
    assert entries_of(snapshot, built(snapshot, plan_of(snapshot, column="w"))) == [(None, 1), ("x", 2), ("y", 0)]


def test_parts_are_removed_also_after_a_failure() -> None:
    snapshot = table_of(pa.array(range(40)), 10)
    plan = plan_of(snapshot)
    run = stage_of(snapshot.world)

    def stage(name: str, function: Callable[..., Any], tasks: Sequence[Any]) -> list[Any]:
        found = run(name, function, tasks)
        if name == "merge":
            raise RuntimeError("a worker died")
        return found

    with tiny(), pytest.raises(RuntimeError, match="died"):
        btree.build(plan, snapshot.world, stage)  # type: ignore[arg-type]
    assert list(snapshot.world.store.list(plan.directory)) == []


def test_a_task_that_ran_twice_does_no_harm() -> None:
    snapshot = table_of(pa.array([5, 3, 1, 4, 2, 0] * 5), 6)
    run = stage_of(snapshot.world)

    def twice(name: str, function: Callable[..., Any], tasks: Sequence[Any]) -> list[Any]:
        run(name, function, tasks)
        return run(name, function, tasks)

    plan = plan_of(snapshot)
    with tiny():
        btree.build(plan, snapshot.world, twice)  # type: ignore[arg-type]
    names = {entry.path.rpartition("/")[2] for entry in snapshot.world.store.list(plan.directory)}
    assert names == {"page_data.lance", "page_lookup.lance"}


def test_an_older_segment_of_another_type_is_refused() -> None:
    snapshot = table_of(pa.array([1, 2]), 10)
    old = built(snapshot)
    texts = table_of(pa.array(["a"]), 10)
    for entry in list(snapshot.world.store.list("_indices")):
        texts.world.store.put(entry.path, snapshot.world.store.get(entry.path))
    with pytest.raises(CorruptTable, match="values of type int64 where the column has string"):
        built(texts, plan_of(texts, old=(OldSegment(old, everything),)))


@pytest.mark.parametrize("stable", [False, True])
def test_a_remap_keeps_the_order_and_drops_what_is_gone(stable: bool) -> None:
    snapshot = table_of(pa.array([3, None, 1, 3, None, 2, 1]), 3, stable=stable)
    index = built(snapshot)
    before = entries_of(snapshot, index)

    def translate(ids: Ids) -> tuple[Ids, Any]:
        return ids + np.uint64(100), ids != np.uint64(before[0][1])

    uuid = uuid4()
    with tiny(3):
        written = btree.remap(snapshot, index, translate, snapshot.world, f"_indices/{uuid}")
    again = replace(index, uuid=uuid, files=written.files)
    assert entries_of(snapshot, again) == [(value, id + 100) for value, id in before[1:]]
    check_lookup(snapshot, again, 3)
    assert written.details_type_url == index.details_type_url
