"""``optimize.auto``: it does what health recommends, within its bounds, and says why."""

from __future__ import annotations

import json
import os
from dataclasses import FrozenInstanceError, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.errors import InvalidRequest, VersionNotFound
from tablewright.format.envelope import encode_manifest_file
from tablewright.format.naming import manifest_path
from tablewright.jobs.cleanup import clean_up, may_remove
from tablewright.operations.cleanup.options import CleanupOptions
from tablewright.operations.health.auto import AutoOptions, cleanup_options_of
from tablewright.snapshot import open_snapshot
from tablewright.testing.faulty_store import Call, CrashBefore, FaultyStore, Pause, SimulatedCrash, on_call
from tablewright.testing.worlds import SeededClock, memory_world
from tablewright.world import World

SECOND_NS = 1_000_000_000


@pytest.fixture
def uri() -> str:
    return f"memory://auto-{uuid4()}"


def _small(uri: Any, fragments: int = 12, **options: Any) -> tw.LanceDataset:
    return tw.write_dataset({"id": range(10 * fragments)}, uri, max_rows_per_file=10, **options)


def _configured(ds: tw.LanceDataset, key: str, value: str) -> tw.LanceDataset:
    """The table with a setting of automatic cleanup, whatever a writer of it would think of the value."""
    snapshot = table_of(ds).snapshot
    config = {**snapshot.manifest.config, f"lance.auto_cleanup.{key}": value}
    manifest = replace(snapshot.manifest, version=snapshot.version + 1, config=config)
    snapshot.world.store.put(manifest_path(manifest.version), encode_manifest_file(manifest, b""))
    ds.checkout_latest()
    return ds


def test_nothing_to_do(uri: str) -> None:
    ds = tw.write_dataset({"id": range(10)}, uri)
    report = ds.optimize.auto()
    assert (report.steps, report.version_before, report.version_after, ds.version) == ((), 1, 1, 1)
    assert "nothing to do: 0 % of the rows are deleted" in str(report)
    assert "still version 1" in str(report)


def test_it_compacts_and_says_why(uri: str) -> None:
    ds = _small(uri)
    rows = ds.to_table()
    report = ds.optimize.auto()
    step = report.step("compact")
    assert step is not None
    assert (step.outcome, step.figures["fragments_removed"], step.figures["fragments_added"]) == ("done", 12, 1)
    assert "12 of 12 fragments have fewer than 1,048,576 rows" in step.reason
    assert ds.version == report.version_after == tw.dataset(uri).version
    assert ds.to_table() == rows
    assert "compact: done" in str(report)
    again = ds.optimize.auto()
    assert again.step("compact") is None


def test_cleanup_follows_the_tables_settings(uri: str) -> None:
    ds = _small(uri)
    ds = _configured(ds, "retain_versions", "1")
    report = ds.optimize.auto()
    assert [(step.action, step.outcome) for step in report.steps] == [("compact", "done"), ("cleanup", "done")]
    cleaned = report.step("cleanup")
    assert cleaned is not None
    assert cleaned.figures["old_versions"] >= 2
    assert [each["version"] for each in ds.versions()] == [ds.version]
    assert ds.health(sample=False).versions.reclaimable_bytes == 0


def test_young_versions_stay_by_default(uri: str) -> None:
    ds = _small(uri)
    report = ds.optimize.auto()
    cleaned = report.step("cleanup")
    assert cleaned is not None
    assert (cleaned.outcome, cleaned.figures["old_versions"]) == ("done", 0)
    assert "no version could go: older_than=14 days" in cleaned.note
    assert len(ds.versions()) == ds.version


def test_a_tag_keeps_its_version(uri: str) -> None:
    ds = _small(uri)
    ds.tags.create("first", 1)
    ds = _configured(ds, "older_than", "0s")
    ds.optimize.auto()
    assert ds.checkout_version("first").count_rows() == 120


@pytest.mark.parametrize("key", ["older_than", "retain_versions"])
def test_settings_that_are_wrong_fail_the_step(uri: str, key: str) -> None:
    ds = _small(uri)
    ds = _configured(ds, key, "soon")
    report = ds.optimize.auto()
    cleaned = report.step("cleanup")
    assert cleaned is not None
    assert cleaned.outcome == "failed"
    assert "soon" in cleaned.note
    assert [step.outcome for step in report.steps] == ["done", "failed"]


def test_max_bytes(uri: str) -> None:
    ds = _small(uri, 40)
    step = ds.optimize.auto(max_bytes=10).step("compact")
    assert step is not None
    assert (step.outcome, step.note) == ("skipped", "no group of fragments fits the limits, max_source_bytes=10")
    assert ds.version == 1
    size = ds.health(sample=False).bytes.data
    step = ds.optimize.auto(target_rows_per_fragment=100, max_bytes=size // 2).step("compact")
    assert step is not None
    assert step.outcome == "done"
    assert 0 < step.figures["bytes_read"] <= size // 2
    assert 1 < len(ds.get_fragments()) < 40


def test_no_step_begins_after_max_seconds(uri: str) -> None:
    ds = _small(uri)
    report = ds.optimize.auto(max_seconds=0)
    assert [(step.action, step.outcome) for step in report.steps] == [("compact", "skipped")]
    assert report.steps[0].note == "max_seconds=0 had passed"
    assert ds.version == 1


def test_time_is_looked_at_between_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tablewright.operations.health.auto._ROUND_BYTES", 1)
    world = memory_world()
    ds = _small(world, 40)
    slow = tw.dataset(replace(world, clock=SeededClock(step_ns=SECOND_NS // 10)))
    step = slow.optimize.auto(target_rows_per_fragment=100, max_seconds=3).step("compact")
    assert step is not None
    assert step.outcome == "done"
    assert "of 4 rounds, as max_seconds had passed" in step.note
    assert 0 < step.figures["fragments_removed"] < 40
    assert slow.count_rows() == ds.count_rows() == 400
    rest = tw.dataset(world).optimize.auto(target_rows_per_fragment=100, max_seconds=1e9).step("compact")
    assert rest is not None
    assert rest.figures["fragments_removed"] + step.figures["fragments_removed"] == 40


def test_an_old_handle_works_on_the_newest_version(uri: str) -> None:
    ds = _small(uri)
    old = tw.dataset(uri)
    ds.insert({"id": [1000]})
    report = old.optimize.auto()
    assert report.version_before == 2
    assert old.count_rows() == 121


def test_a_table_that_was_replaced_is_refused(uri: str) -> None:
    ds = _small(uri)
    tw.LanceDataset.drop(uri)
    tw.write_dataset({"id": [1]}, uri)
    with pytest.raises(VersionNotFound):
        ds.optimize.auto()


def test_an_overwrite_meanwhile_fails_the_step_alone() -> None:
    world = memory_world()
    _small(world)

    def overwrite(call: Call) -> None:
        if tw.dataset(world).version == 1:
            tw.write_dataset({"id": [7]}, world, mode="overwrite")

    store = FaultyStore(world.store, on_call(Pause(overwrite), method="put", path="data/*"))
    ds = tw.dataset(replace(world, store=store))
    report = ds.optimize.auto()
    step = report.step("compact")
    assert step is not None
    assert (step.outcome, step.figures) == ("failed", {})
    assert "Overwrite" in step.note
    assert tw.dataset(world).to_table().to_pydict() == {"id": [7]}


@pytest.mark.parametrize(
    "given",
    [
        {"max_bytes": 0},
        {"max_bytes": 1.5},
        {"max_seconds": -1},
        {"max_seconds": "1"},
        {"workload": "x"},
        {"target_rows_per_fragment": 0},
    ],
    ids=repr,
)
def test_bad_options(uri: str, given: dict[str, Any]) -> None:
    ds = _small(uri)
    with pytest.raises(InvalidRequest):
        ds.optimize.auto(**given)
    assert ds.latest_version == 1


def test_the_report_is_a_frozen_value(uri: str) -> None:
    report = _small(uri).optimize.auto()
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["steps"][0]["figures"]["fragments_removed"] == 12
    with pytest.raises(FrozenInstanceError):
        report.seconds = 3  # type: ignore[misc]
    assert AutoOptions().health.sample is False


def test_settings() -> None:
    assert cleanup_options_of({}).older_than is not None
    assert cleanup_options_of({"lance.auto_cleanup.interval": "3"}).older_than == cleanup_options_of({}).older_than
    assert cleanup_options_of({"lance.auto_cleanup.retain_versions": "3"}).retain_versions == 3


def test_a_branch(uri: str) -> None:
    branch = _small(uri).create_branch("dev")
    report = branch.optimize.auto()
    assert report.step("compact") is not None
    assert (branch.count_rows(), len(branch.get_fragments())) == (120, 1)
    assert len(tw.dataset(uri).get_fragments()) == 12
    assert table_of(branch).snapshot.branch == "dev"


def _manifests_read(world: World, ds: tw.LanceDataset) -> int:
    """How many manifests a run on the newest version reads."""
    store = FaultyStore(world.store)
    tw.dataset(replace(world, store=store), version=ds.version).optimize.auto()
    return sum(call.method == "get" and call.path.startswith("_versions/") for call in store.calls)


def test_young_versions_are_not_read() -> None:
    """However many there are: none may go, and measuring needs only what stays."""
    world = memory_world()
    ds = tw.write_dataset({"id": [0]}, world)
    counts = []
    for number in range(1, 61):
        ds.insert({"id": [number]})
        if number % 20 == 0:
            counts.append(_manifests_read(world, ds))
    assert len(ds.versions()) > 60
    assert max(counts) == min(counts) < 10, counts


def test_versions_that_go_are_read_once() -> None:
    world = memory_world()
    ds = tw.write_dataset({"id": [0]}, world)
    for number in range(1, 40):
        ds.insert({"id": [number]})
    ds = _configured(ds, "retain_versions", "3")
    assert 41 <= _manifests_read(world, ds) < 41 + 10
    assert len(ds.versions()) == 3


@pytest.mark.parametrize(
    ("tagged", "waited", "goes"),
    [((), 30.0, False), ((), 90.0, True), ((1, 2), 90.0, True), ((1, 2, 3, 4, 5), 90.0, False)],
)
def test_a_cleanup_begins_if_the_oldest_version_that_may_go_is_old(
    tagged: tuple[int, ...], waited: float, goes: bool
) -> None:
    world = memory_world()
    ds = tw.write_dataset({"id": [0]}, world)
    for number in range(1, 4):
        ds.insert({"id": [number]})
    ds = _configured(ds, "older_than", "1m")
    for version in tagged:
        ds.tags.create(f"v{version}", version)
    world.clock.sleep(waited)
    ds.insert({"id": [7]})
    snapshot = open_snapshot(world)
    options = cleanup_options_of(snapshot.manifest.config)
    table = table_of(ds).at(snapshot)
    assert may_remove(table, options) is goes
    assert bool(clean_up(table, options).old_versions) is goes


def test_an_old_file_that_no_version_names_is_removed_though_no_version_goes(tmp_path: Path) -> None:
    ds = _small(tmp_path)
    orphan = tmp_path / "data" / "orphan.lance"
    orphan.write_bytes(b"x" * 100_000)
    ds.optimize.auto()
    assert orphan.exists(), "it may belong to a writer that is under way"
    os.utime(orphan, (1, 1))
    cleaned = ds.optimize.auto().step("cleanup")
    assert cleaned is not None
    assert not orphan.exists()
    assert (cleaned.figures["old_versions"], cleaned.figures["data_files_removed"]) == (0, 1)


def test_an_interrupted_cleanup_is_to_be_finished_though_no_version_goes() -> None:
    world = memory_world()
    tw.write_dataset({"id": [0]}, world)
    tw.write_dataset({"id": [1]}, world, mode="overwrite")
    crash = FaultyStore(world.store, on_call(CrashBefore(), method="delete", path="data/*"))
    with pytest.raises(SimulatedCrash):
        tw.dataset(replace(world, store=crash)).cleanup_old_versions(timedelta(0))
    table = table_of(tw.dataset(world))
    assert may_remove(table, CleanupOptions())
    assert clean_up(table, CleanupOptions()).data_files_removed == 1
    assert not may_remove(table, CleanupOptions())
