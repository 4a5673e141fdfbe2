"""Automatic cleanup after each call that commits."""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.api.merge_insert import MergeInsertBuilder
from tablewright.errors import InvalidRequest, StorageError, WrongType
from tablewright.testing import FailBefore, FaultyStore, memory_world, on_call
from tablewright.testing.worlds import SeededClock
from tablewright.world import World

EVERY = {"lance.auto_cleanup.interval": "1", "lance.auto_cleanup.older_than": "0s"}


@pytest.fixture
def world() -> World:
    return replace(memory_world(), clock=SeededClock(start_ns=time.time_ns()))


def table(world: World, config: dict[str, str] | None = None) -> tw.LanceDataset:
    ds = tw.write_dataset({"id": [1, 2, 3], "s": ["a", "b", "c"]}, world)
    if config:
        ds.update_config(config)
    return ds


def numbers(ds: tw.LanceDataset) -> list[int]:
    return [each["version"] for each in ds.versions()]


def _compacted(ds: tw.LanceDataset, **more: Any) -> None:
    ds.insert({"id": [9], "s": ["x"]}, skip_auto_cleanup=True)
    ds.optimize.compact_files(**more)


def _append(ds: tw.LanceDataset) -> Any:
    return tw.LanceOperation.Append(tw.fragment.write_fragments({"id": [4], "s": ["d"]}, ds))


def _upsert(ds: tw.LanceDataset, **more: Any) -> None:
    builder = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.execute({"id": [3, 4], "s": ["x", "y"]}, **more)


CALLS: dict[str, Callable[..., Any]] = {
    "insert": lambda ds, **more: ds.insert({"id": [4], "s": ["d"]}, **more),
    "write_dataset": lambda ds, **more: tw.write_dataset({"id": [4], "s": ["d"]}, ds, mode="overwrite", **more),
    "delete": lambda ds, **more: ds.delete("id = 1", **more),
    "create_scalar_index": lambda ds, **more: ds.create_scalar_index("id", "BTREE", **more),
    "prepare_delete": lambda ds, **more: ds.prepare_delete("id = 1").execute(**more),
    "analyze": lambda ds, **more: ds.prepare_delete("id = 1").analyze_plan(**more),
    "update": lambda ds, **more: ds.update({"s": "'x'"}, **more),
    "merge_insert": _upsert,
    "truncate_table": lambda ds, **more: ds.truncate_table(**more),
    "add_columns": lambda ds, **more: ds.add_columns({"n": "id + 1"}, **more),
    "alter_columns": lambda ds, **more: ds.alter_columns({"path": "s", "name": "t"}, **more),
    "drop_columns": lambda ds, **more: ds.drop_columns(["s"], **more),
    "merge": lambda ds, **more: ds.merge({"id": [1], "z": [1]}, "id", **more),
    "update_config": lambda ds, **more: ds.update_config({"k": "v"}, **more),
    "delete_config_keys": lambda ds, **more: ds.delete_config_keys(["k"], **more),
    "update_metadata": lambda ds, **more: ds.update_metadata({"k": "v"}, **more),
    "update_schema_metadata": lambda ds, **more: ds.update_schema_metadata({"k": "v"}, **more),
    "update_field_metadata": lambda ds, **more: ds.update_field_metadata({"id": {"k": "v"}}, **more),
    "enable_stable_row_ids": lambda ds, **more: ds.enable_stable_row_ids(**more),
    "restore": lambda ds, **more: ds.restore(**more),
    "commit": lambda ds, **more: tw.LanceDataset.commit(
        ds,
        tw.LanceOperation.Append(tw.fragment.write_fragments({"id": [4], "s": ["d"]}, ds)),
        read_version=ds.version,
        **more,
    ),
    "commit_batch": lambda ds, **more: tw.LanceDataset.commit_batch(
        ds,
        [
            tw.Transaction(
                ds.version, tw.LanceOperation.Append(tw.fragment.write_fragments({"id": [4], "s": ["d"]}, ds))
            )
        ],
        **more,
    ),
    "compact_files": _compacted,
}


@pytest.mark.parametrize("name", list(CALLS))
@pytest.mark.parametrize("skip", [False, True], ids=["cleans up", "skips"])
def test_every_call_that_commits(world: World, name: str, skip: bool) -> None:
    ds = table(world, EVERY)
    assert numbers(ds) == [1, 2]
    CALLS[name](ds, skip_auto_cleanup=skip)
    left = numbers(tw.dataset(world))
    assert left[-1] > 2
    assert left == (list(range(1, left[-1] + 1)) if skip else [left[-1] - 1, left[-1]])
    tw.dataset(world).validate()


def test_no_writing_call_was_forgotten() -> None:
    """A public method that has no such argument commits nothing, or hands its arguments on."""
    names = {"insert"} | {
        name
        for name, each in inspect.getmembers(tw.LanceDataset, inspect.isfunction)
        if not name.startswith("_") and "skip_auto_cleanup" in inspect.signature(each).parameters
    }
    calls = {
        name for name in CALLS if hasattr(tw.LanceDataset, name) and name not in ("merge_insert", "prepare_delete")
    } | {"drop_index"}
    assert names == calls
    assert "skip_auto_cleanup" in inspect.signature(MergeInsertBuilder.execute).parameters
    assert "skip_auto_cleanup" in inspect.signature(tw.write_dataset).parameters


def test_the_interval(world: World) -> None:
    ds = table(world, EVERY | {"lance.auto_cleanup.interval": "3"})
    seen = []
    for number in range(6):
        ds.insert({"id": [number], "s": ["x"]})
        seen.append((ds.version, numbers(ds)))
    assert seen == [
        (3, [2, 3]),
        (4, [2, 3, 4]),
        (5, [2, 3, 4, 5]),
        (6, [5, 6]),
        (7, [5, 6, 7]),
        (8, [5, 6, 7, 8]),
    ]


def test_ages_tags_and_how_many_stay(world: World) -> None:
    ds = table(world, {"lance.auto_cleanup.interval": "1", "lance.auto_cleanup.older_than": "1h"})
    ds.insert({"id": [5], "s": ["x"]})
    assert numbers(ds) == [1, 2, 3]
    ds.tags.create("two", 2)
    ds.update_config({"lance.auto_cleanup.older_than": None, "lance.auto_cleanup.retain_versions": "3"})
    ds.insert({"id": [6], "s": ["x"]})
    assert numbers(ds) == [2, 3, 4, 5]


def test_a_call_that_makes_two_versions(world: World) -> None:
    """One of them is a multiple of the interval: whichever that is, it runs once."""
    ds = table(world, EVERY | {"lance.auto_cleanup.interval": "3"})
    builder = ds.merge_insert("id", schema_evolution=True).when_matched_update_all().when_not_matched_insert_all()
    builder.execute(pa.table({"id": [3, 4], "s": ["x", "y"], "more": [1, 2]}))
    assert (ds.version, numbers(ds)) == (4, [3, 4])


@pytest.mark.parametrize(
    "config",
    [
        {"lance.auto_cleanup.interval": "often"},
        {"lance.auto_cleanup.interval": "0"},
        EVERY | {"lance.auto_cleanup.older_than": "soon"},
        EVERY | {"lance.auto_cleanup.retain_versions": "few"},
    ],
    ids=str,
)
def test_config_that_can_t_be_understood_is_a_warning(world: World, config: dict[str, str]) -> None:
    ds = table(world)
    with pytest.warns(UserWarning, match=r"was committed; the automatic cleanup after it failed: lance.auto_cleanup"):
        ds.update_config(config)
    with pytest.warns(UserWarning, match="lance.auto_cleanup") as told:
        ds.insert({"id": [5], "s": ["x"]})
    assert told[0].filename == __file__
    assert ds.version == 3


def test_a_failure_does_not_fail_the_commit(world: World) -> None:
    table(world, EVERY)
    faulty = FaultyStore(world.store, on_call(FailBefore(), method="list", path="data"))
    ds = tw.dataset(replace(world, store=faulty))
    with pytest.warns(UserWarning, match="Version 3 was committed"):
        ds.insert({"id": [5], "s": ["x"]})
    assert (ds.version, numbers(ds)) == (3, [1, 2, 3])


def test_a_call_that_fails_cleans_up_nothing(world: World) -> None:
    ds = table(world, EVERY)
    faulty = FaultyStore(world.store, on_call(FailBefore(), method="put_if_absent"))
    with pytest.raises((StorageError, OSError)):
        tw.dataset(replace(world, store=faulty)).delete("id = 1")
    assert numbers(ds) == [1, 2]
    with pytest.raises(WrongType, match="skip_auto_cleanup"):
        ds.delete("id = 1", skip_auto_cleanup="no")  # type: ignore[arg-type]


def test_enable_and_disable(world: World) -> None:
    ds = table(world)
    ds.optimize.enable_auto_cleanup({"interval": 4, "older_than_seconds": 7200})
    assert ds.config() == {"lance.auto_cleanup.interval": "4", "lance.auto_cleanup.older_than": "7200s"}
    ds.optimize.enable_auto_cleanup({"interval": 3, "older_than_seconds": 0, "retain_versions": 2})
    assert (ds.version, numbers(ds)) == (3, [2, 3])
    ds.optimize.disable_auto_cleanup()
    assert ds.config() == {}
    for wrong in ({}, {"interval": 0, "older_than_seconds": 1}, {"often": 1}):
        with pytest.raises(InvalidRequest):
            ds.optimize.enable_auto_cleanup(wrong)


def test_options_of_a_new_table(world: World) -> None:
    options = {"interval": 2, "older_than_seconds": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ds = tw.write_dataset({"id": [1]}, world, auto_cleanup_options=options)
        for number in range(3):
            ds.insert({"id": [number]})
    assert numbers(ds) == [3, 4]
