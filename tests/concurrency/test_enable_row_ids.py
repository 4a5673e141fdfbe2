"""Stable row ids are switched on while other writers are at work: ours one after the other, then many at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.concurrency.stage import ADDRESS, copied, listing, new_store, on_stage, set_up

import tablewright as tw
from tablewright.errors import CommitUnknown, TablewrightError
from tablewright.jobs.attempt import run_job
from tablewright.jobs.row_ids import RowIdsJob
from tablewright.jobs.table import Table
from tablewright.testing import EVERY_FAULT, FaultyStore, SimulatedCrash, at_call
from tablewright.transaction import commit as loop
from tablewright.transaction.retry import RetryOptions
from tablewright.world import World

START = 40


def _rows(start: int, stop: int) -> pa.Table:
    return pa.table({"id": range(start, stop), "x": [0] * (stop - start)})


def _ids(ds: Any) -> dict[int, int]:
    ds.validate()
    table = ds.to_table(columns=["id", "_rowid"])
    ids = dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))
    assert len(set(ids.values())) == table.num_rows
    assert max(ids.values(), default=0) < ds._snapshot.manifest.next_row_id
    return ids


def _upsert(ds: Any) -> None:
    new = pa.table({"id": range(35, 45), "x": [9] * 10})
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new)


CHANGES: dict[str, tuple[Callable[[Any], Any], dict[int, int]]] = {
    "append": (lambda ds: ds.insert(_rows(40, 50)), dict.fromkeys(range(50), 0)),
    "delete": (lambda ds: ds.delete("id < 4"), dict.fromkeys(range(4, 40), 0)),
    "delete a fragment": (lambda ds: ds.delete("id < 10"), dict.fromkeys(range(10, 40), 0)),
    "update rows": (
        lambda ds: ds.update({"x": "7"}, where="id < 4", write_mode="rewrite_rows"),
        dict.fromkeys(range(40), 0) | dict.fromkeys(range(4), 7),
    ),
    "update columns": (
        lambda ds: ds.update({"x": "7"}, where="id < 4", write_mode="rewrite_columns"),
        dict.fromkeys(range(40), 0) | dict.fromkeys(range(4), 7),
    ),
    "upsert": (_upsert, dict.fromkeys(range(40), 0) | dict.fromkeys(range(35, 45), 9)),
    "add column": (lambda ds: ds.add_columns({"y": "id * 2"}), dict.fromkeys(range(40), 0)),
    "rename": (lambda ds: ds.alter_columns({"path": "id", "name": "key"}), {}),
    "settings": (lambda ds: ds.update_config({"a": "b"}), dict.fromkeys(range(40), 0)),
    "overwrite": (lambda ds: ds.insert(_rows(90, 95), mode="overwrite"), dict.fromkeys(range(90, 95), 0)),
    "restore": (lambda ds: ds.restore(), dict.fromkeys(range(40), 0)),
    "switch": (lambda ds: ds.enable_stable_row_ids(), dict.fromkeys(range(40), 0)),
}


@pytest.mark.parametrize("first", ["switch", "change"])
@pytest.mark.parametrize("name", CHANGES)
def test_both_take_effect_in_either_order(name: str, first: str) -> None:
    uri = f"memory://enable-{name.replace(' ', '-')}-{first}"
    tw.write_dataset(_rows(0, START), uri, max_rows_per_file=10)
    change, rows = CHANGES[name]
    switching, changing = tw.dataset(uri), tw.dataset(uri)
    if first == "switch":
        switching.enable_stable_row_ids()
        change(changing)
    else:
        change(changing)
        switching.enable_stable_row_ids()
    ds = tw.dataset(uri)
    if name == "restore" and first == "switch":  # back to a version without
        assert not ds.has_stable_row_ids
        return
    assert ds.has_stable_row_ids
    assert ds.version == (2 if name == "switch" else 3)
    if name == "rename":
        assert ds.schema.names == ["key", "x"]
        return
    table = ds.to_table(columns=["id", "x", "_row_created_at_version", "_row_last_updated_at_version"])
    assert dict(zip(table["id"].to_pylist(), table["x"].to_pylist(), strict=True)) == rows
    ids = _ids(ds)
    if first == "switch" and name not in ("overwrite",):
        assert {row: id for row, id in ids.items() if row < START} == {
            row: row // 10 << 32 | row % 10 for row in ids if row < START
        }
        created = dict(zip(table["id"].to_pylist(), table["_row_created_at_version"].to_pylist(), strict=True))
        updated = dict(zip(table["id"].to_pylist(), table["_row_last_updated_at_version"].to_pylist(), strict=True))
        assert created == {row: 2 if row < START else 3 for row in ids}
        changed = {
            "update rows": range(4),
            "update columns": range(4),
            "upsert": range(35, 45),
            "append": range(40, 50),
        }
        touched = set(ids) if name == "add column" else set(changed.get(name, ()))
        assert updated == {row: 3 if row in touched else 2 for row in ids}
    ds.update({"x": "x + 1"}, where="id % 2 = 0", write_mode="rewrite_rows")
    assert _ids(ds) == ids


def test_a_commit_that_loses_races_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others append, delete and update between our looking and our publishing, again and again: no conflict for us."""
    uri = "memory://enable-busy"
    tw.write_dataset(_rows(0, START), uri, max_rows_per_file=10)
    ds = tw.dataset(uri)
    turns = iter(
        [
            lambda: tw.dataset(uri).insert(_rows(40, 45)),
            lambda: tw.dataset(uri).update({"x": "3"}, where="id = 5", write_mode="rewrite_rows"),
            lambda: tw.dataset(uri).delete("id = 41 or id = 7"),
        ]
    )
    real, busy = loop.publish, False

    def publish(world: World, *args: Any) -> Any:
        nonlocal busy
        if not busy:
            busy = True
            next(turns, lambda: None)()
            busy = False
        return real(world, *args)

    monkeypatch.setattr(loop, "publish", publish)
    run_job(RowIdsJob(RetryOptions(conflict_retries=0)), Table(ds._snapshot))
    ds = tw.dataset(uri)
    assert ds.version == 5 and ds.count_rows() == 43
    assert _ids(ds)[5] == 5 << 32 and _ids(ds)[40] == 4 << 32
    assert {row: id for row, id in _ids(ds).items() if row < 4} == {row: row for row in range(4)}


def test_while_others_write(tmp_path: Path) -> None:
    """Two appenders, one of them pylance, and one who updates; in the middle of it ids are switched on."""
    uri = str(tmp_path / "t.lance")
    tw.write_dataset(_rows(0, START), uri, max_rows_per_file=10)
    stop = threading.Event()
    failures: list[BaseException] = []
    appended = [0, 0]

    def keep_on(work: Callable[[], None]) -> None:
        try:
            while not stop.is_set():
                work()
                stop.wait(0.05)
        except BaseException as error:
            failures.append(error)

    def append_ours() -> None:
        tw.dataset(uri).insert(_rows(1000 + appended[0], 1001 + appended[0]))
        appended[0] += 1

    def append_theirs() -> None:
        lance.write_dataset(_rows(5000 + appended[1], 5001 + appended[1]), uri, mode="append")
        appended[1] += 1

    def update() -> None:
        tw.dataset(uri).update({"x": "x + 1"}, where="id < 5")

    threads = [threading.Thread(target=keep_on, args=(work,)) for work in (append_ours, append_theirs, update)]
    for thread in threads:
        thread.start()
    ds = tw.dataset(uri)
    while min(appended) < 2 and not failures:
        stop.wait(0.01)
    ds.enable_stable_row_ids()
    before, then = _ids(tw.dataset(uri)), list(appended)
    while min(now - past for now, past in zip(appended, then, strict=True)) < 2 and not failures:
        stop.wait(0.01)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    after = tw.dataset(uri)
    assert after.count_rows() == START + sum(appended)
    ids = _ids(after)
    assert {row: ids[row] for row in before} == before
    theirs = lance.dataset(uri)
    theirs.validate()
    assert (
        theirs.to_table(columns=["id", "_rowid"])
        .sort_by("id")
        .equals(after.to_table(columns=["id", "_rowid"]).sort_by("id"))
    )


@pytest.mark.slow
def test_a_fault_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Off or on, never in between; what failed for certain left nothing behind, and works when run again."""
    set_up(monkeypatch)
    scene = new_store()
    on_stage(scene, lambda: tw.write_dataset(_rows(0, START), ADDRESS, max_rows_per_file=10))
    objects = listing(scene)

    def switch() -> None:
        tw.dataset(ADDRESS).enable_stable_row_ids()

    recording = FaultyStore(copied(scene))
    on_stage(recording, switch, seed=7)
    for call in recording.calls:
        for fault in EVERY_FAULT:
            store, error = copied(scene), None
            try:
                on_stage(FaultyStore(store, at_call(call.index, fault)), switch, seed=7)
            except (TablewrightError, SimulatedCrash) as caught:
                error = caught
            where = f"{fault} at {call}"
            ds = on_stage(store, lambda: tw.dataset(ADDRESS))
            assert ds.version == 1 + ds.has_stable_row_ids, where
            if error is None:
                assert ds.has_stable_row_ids, where
            elif not isinstance(error, SimulatedCrash | CommitUnknown):
                assert not ds.has_stable_row_ids and listing(store) <= objects, where
            on_stage(store, switch, seed=8)
            again = on_stage(store, lambda: tw.dataset(ADDRESS))
            assert again.version == 2 and _ids(again) == {row: row // 10 << 32 | row % 10 for row in range(START)}, (
                where
            )
