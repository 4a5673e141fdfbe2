"""A fault at every storage call of a delete from a Paimon table; deleters, appenders and a compaction in between.

Afterwards a fresh reader finds the old snapshot or the new one, exactly once and whole. A delete that returned is
there; one that failed with anything but CommitUnknown is not, left nothing behind, and works when run again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from tests.concurrency.stage import Judged, has_effect, makes_sense
from tests.unit.paimon.tables import append, compact, copied, create, ids_of, new_store, numbers

from tablewright.errors import AccessDenied, CommitConflict, CommitUnknown, StorageError
from tablewright.paimon import DeleteResult
from tablewright.paimon.metadata import latest_snapshot_id, read_state
from tablewright.paimon.opening import open_in
from tablewright.storage import Store, open_store
from tablewright.testing import (
    EVERY_FAULT,
    CrashAfter,
    CrashBefore,
    DenyCreation,
    FailBefore,
    FaultyStore,
    LoseReply,
    Pause,
    SimulatedCrash,
    StaleList,
    at_call,
    first_of,
    interleave,
    on_call,
    seeded_world,
)


def stage(*, bucketed: bool = False, files: int = 2) -> Store:
    """A table of some files of ten rows, of which row 0 is deleted."""
    store = new_store()
    create(store, numbers(0, 1).schema, options={"bucket": "2", "bucket-key": "id"} if bucketed else None)
    for number in range(files):
        append(store, numbers(number * 10, number * 10 + 10), bucket=number % 2 if bucketed else 0)
    delete(store, "id = 0", seed=99)
    return store


_seeds = itertools.count(1000)


def delete(store: Store, predicate: str, seed: int | None = None, retries: int = 20) -> DeleteResult:
    """Each with a seed of its own, or two would mint the same names."""
    return open_in(seeded_world(store, next(_seeds) if seed is None else seed)).delete(
        predicate, engine="local", conflict_retries=retries
    )


def unreferenced(store: Store) -> set[str]:
    """Index files, index manifests and manifest lists that no snapshot names."""
    named = {"snapshot/LATEST", "schema/schema-0"}
    for id in range(1, (latest_snapshot_id(store) or 0) + 1):
        state = read_state(store, id)
        assert state.snapshot is not None
        snapshot = state.snapshot
        named |= {f"snapshot/snapshot-{id}", f"manifest/{snapshot.index_manifest}"}
        named |= {f"manifest/{snapshot.base.name}", f"manifest/{snapshot.delta.name}"}
        named |= {f"manifest/{record['_FILE_NAME']}" for records in state.manifest_lists for record in records.values}
        named |= {f"index/{file.name}" for file in state.index.files}
        named |= {f"bucket-{file.bucket}/{file.name}" for file in state.files}
    return {info.path for info in store.list("")} - named


@pytest.mark.parametrize("bucketed", [False, True], ids=["unaware", "bucketed"])
def test_a_fault_at_every_call(bucketed: bool) -> None:
    start = stage(bucketed=bucketed)
    before, after = ids_of(start), [i for i in ids_of(start) if i not in (3, 15)]
    counting = FaultyStore(copied(start))
    assert delete(counting, "id in (0, 3, 15)", seed=0).num_deleted_rows == 2
    judged = Judged()
    every = (*EVERY_FAULT, DenyCreation(), StaleList(lambda path: path.endswith("snapshot-3")))
    for call in counting.calls:
        for fault in (LoseReply(), CrashAfter()) if bucketed else every:
            if not makes_sense(fault, call):
                continue
            inner = copied(start)
            faulty = FaultyStore(inner, at_call(call.index, fault))
            error: BaseException | None = None
            try:
                result = delete(faulty, "id in (0, 3, 15)", seed=0)
                assert result.num_deleted_rows == 2 and result.snapshot_id == 4
            except (StorageError, CommitUnknown, SimulatedCrash) as failure:
                error = failure
            if not judged.is_new(inner, error):
                continue
            where = f"{fault} at {call}"
            newest = latest_snapshot_id(inner)
            assert newest in (3, 4), where
            assert ids_of(inner) == (before if newest == 3 else after), where
            assert [ids_of(inner, id) for id in (1, 2, 3)] == [ids_of(start, id) for id in (1, 2, 3)], where
            if error is None:
                assert newest == 4, where
            elif not isinstance(error, CommitUnknown | SimulatedCrash) and has_effect(call) is False:
                assert newest == 3 and not unreferenced(inner), where
            elif not isinstance(error, CommitUnknown | SimulatedCrash):
                assert newest == 3 and unreferenced(inner) <= {call.path}, where
            again = delete(inner, "id in (0, 3, 15)", seed=5)
            assert again.num_deleted_rows == (0 if newest == 4 else 2), where
            assert ids_of(inner) == after, where
    assert SimulatedCrash in judged.endings and StorageError in judged.endings and None in judged.endings


def test_a_store_that_never_answers() -> None:
    """The snapshot may be there: what it names stays, and CommitUnknown says how to look."""
    start = stage()
    for fault, newest in ((CrashBefore(), 3), (CrashAfter(), 4)):
        inner = copied(start)
        with pytest.raises(SimulatedCrash):
            delete(FaultyStore(inner, on_call(fault, method="put_if_absent")), "id = 5")
        assert latest_snapshot_id(inner) == newest and (5 in ids_of(inner)) == (newest == 3)
    inner = copied(start)
    plan = first_of(
        on_call(LoseReply(), method="put_if_absent"),
        on_call(LoseReply(), method="get", path="snapshot/snapshot-4"),
    )
    with pytest.raises(CommitUnknown, match="The commit of version 4"):
        delete(FaultyStore(inner, plan), "id = 5")
    assert 5 not in ids_of(inner) and not unreferenced(inner)


@pytest.mark.parametrize("bucketed", [False, True], ids=["unaware", "bucketed"])
def test_deleters_switched_at_every_call(bucketed: bool) -> None:
    """Two deletes of overlapping rows: each row goes once, each counts its own, nobody's is lost."""
    start = stage(bucketed=bucketed)
    attempts = set()
    for seed in range(12):
        store = copied(start)
        writers = [
            partial(delete, predicate=predicate, seed=seed * 10 + number)
            for number, predicate in enumerate(["id in (1, 2, 11)", "id in (2, 3, 11, 12)"])
        ]
        outcomes = interleave(store, writers, seed)
        assert [outcome.error for outcome in outcomes] == [None, None]
        results = [outcome.result for outcome in outcomes if outcome.result is not None]
        attempts.add(max(result.num_attempts for result in results))
        assert ids_of(store) == [i for i in range(20) if i not in (0, 1, 2, 3, 11, 12)]
        assert sorted(result.snapshot_id or 0 for result in results) == [4, 5]
        first = min(results, key=lambda result: result.snapshot_id or 0)
        assert sum(result.num_deleted_rows for result in results) == 5
        assert first.num_deleted_rows == (3 if first is results[0] else 4)
        assert not unreferenced(store)
    assert max(attempts) > 1  # some of them did race


def test_a_deleter_and_an_appender_switched_at_every_call() -> None:
    """A delete takes the new rows of all appends that come before it in the snapshots, and no others."""
    start, orders = stage(), set()

    def append_thrice(store: Store) -> None:
        for first in (20, 30, 40):
            ids_of(store)  # takes as many calls as a delete, so that either may come first
            append(store, numbers(first, first + 10))

    for seed in range(10):
        store = copied(start)
        outcomes = interleave(store, [partial(delete, predicate="id % 10 = 5", seed=seed), append_thrice], seed)
        assert [outcome.error for outcome in outcomes] == [None, None]
        result = outcomes[0].result
        assert isinstance(result, DeleteResult) and latest_snapshot_id(store) == 7
        appended = (result.snapshot_id or 0) - 4
        orders.add(appended)
        assert result.num_deleted_rows == 2 + appended
        assert ids_of(store) == [i for i in range(1, 50) if i % 10 != 5 or i >= 20 + 10 * appended]
    assert len(orders) > 1


def meanwhile(store: Store, change: Callable[[], object], at: str) -> FaultyStore:
    """A store in which `change` happens just before the first call of this method."""
    done: list[bool] = []

    def once(_: object) -> None:
        if not done:
            done.append(True)
            change()

    return FaultyStore(store, on_call(Pause(once), method=at))


def test_appended_or_compacted_meanwhile() -> None:
    store = stage()
    racing = meanwhile(store, lambda: append(store, numbers(20, 30)), "put_if_absent")
    result = delete(racing, "id % 10 = 5")
    assert (result.num_deleted_rows, result.num_attempts, result.snapshot_id) == (3, 2, 5)
    assert ids_of(store) == [i for i in range(1, 30) if i % 10 != 5] and not unreferenced(store)
    searched = [call.path for call in racing.calls if call.method == "head" and call.path.endswith(".parquet")]
    assert len(searched) == 3 == len(set(searched))  # after the lost race only the new file

    racing = meanwhile(store, lambda: compact(store), "put_if_absent")
    assert delete(racing, "id % 10 = 6").num_deleted_rows == 3
    assert ids_of(store) == [i for i in range(1, 30) if i % 10 not in (5, 6)]
    assert len(open_in(seeded_world(store)).files()) == 1

    racing = meanwhile(store, lambda: delete(store, "id = 27", seed=3), "put_if_absent")
    assert delete(racing, "id = 27").num_deleted_rows == 0  # another delete took it first
    assert racing.calls[-1].method != "put" and 27 not in ids_of(store)
    assert not unreferenced(store)


def test_giving_up() -> None:
    store, numbers_left = stage(), iter(range(100, 1000))
    rival = FaultyStore(
        store, on_call(Pause(lambda _: append(store, numbers(next(numbers_left), 1000))), method="put_if_absent")
    )
    with pytest.raises(CommitConflict, match="Too many concurrent writers"):
        delete(rival, "id = 1", retries=2)
    assert 1 in ids_of(store) and not unreferenced(store)


def test_a_store_that_refuses() -> None:
    """No permission to write the snapshot: certain, so what was written for it goes."""
    store = stage()
    refusing = FaultyStore(store, on_call(FailBefore(AccessDenied("no")), method="put_if_absent"))
    with pytest.raises(AccessDenied):
        delete(refusing, "id = 1")
    assert 1 in ids_of(store) and not unreferenced(store)


def test_on_disk(tmp_path: Path) -> None:
    """Threads at once on a real directory: put-if-absent is what keeps them apart."""
    memory, disk = stage(files=3), open_store(tmp_path / "table")
    for info in memory.list(""):
        disk.put(info.path, memory.get(info.path))
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda n: delete(open_store(tmp_path / "table"), f"id % 6 = {n}", seed=n), range(6)))
    assert ids_of(disk) == [] and sum(result.num_deleted_rows for result in results) == 29
    assert sorted(result.snapshot_id or 0 for result in results) == list(range(5, 11))
    assert not unreferenced(disk)
