"""A fault at every storage call of a build, an optimisation and a drop of an index: old or new state, nothing left.

What returned is there and right. What failed with anything but CommitUnknown is not there, left nothing behind, and
works when run again. After a crash a cleanup finds what was left.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from tests.concurrency.index_check import check_indices
from tests.concurrency.leftovers import unreferenced
from tests.concurrency.scene import FAULTS, leftovers, one_thread, outcome_of
from tests.concurrency.stage import ADDRESS, Judged, copied, listing, makes_sense, new_store, on_stage, set_up
from tests.depth import stride

import tablewright as tw
from tablewright.errors import CommitUnknown
from tablewright.storage import Store
from tablewright.testing import FaultyStore, SimulatedCrash, at_call


@pytest.fixture(autouse=True)
def _stage(monkeypatch: pytest.MonkeyPatch) -> None:
    set_up(monkeypatch)
    one_thread(monkeypatch)


def rows(start: int, stop: int) -> pa.Table:
    values = [None if i % 5 == 2 else i % 4 for i in range(start, stop)]
    return pa.table(
        {
            "id": range(start, stop),
            "a": pa.array(values, pa.int64()),
            "text": pa.array([None if value is None else f"text {value}" for value in values]),
            "labels": pa.array([None if value is None else [value, 7] for value in values], pa.list_(pa.int64())),
        }
    )


COLUMNS = {"BTREE": "a", "BITMAP": "a", "ZONEMAP": "a", "BLOOMFILTER": "a", "NGRAM": "text", "LABEL_LIST": "labels"}


def _make(kind: str, stable: bool, indexed: bool, grown: bool) -> Store:
    store = new_store()

    def make() -> None:
        dataset = tw.write_dataset(rows(0, 9), ADDRESS, max_rows_per_file=3, enable_stable_row_ids=stable)
        dataset.delete("id = 4")
        if indexed:
            dataset.create_scalar_index(COLUMNS[kind], kind)
        if grown:
            dataset.insert(rows(20, 24))
            dataset.update({"a": "9"}, where="id = 1")

    on_stage(store, make, seed=99)
    return store


Verb = Callable[[Any, str], Any]
VERBS: dict[str, tuple[dict[str, bool], Verb]] = {
    "build": ({"indexed": False, "grown": False}, lambda ds, kind: ds.create_scalar_index(COLUMNS[kind], kind)),
    "replace": ({"indexed": True, "grown": True}, lambda ds, kind: ds.create_scalar_index(COLUMNS[kind], kind)),
    "merge": ({"indexed": True, "grown": True}, lambda ds, kind: ds.optimize.optimize_indices()),
    "segment": (
        {"indexed": True, "grown": True},
        lambda ds, kind: ds.optimize.optimize_indices(num_indices_to_merge=0),
    ),
    "drop": ({"indexed": True, "grown": False}, lambda ds, kind: ds.drop_index(f"{COLUMNS[kind]}_idx")),
}


def cases() -> list[tuple[str, str, bool]]:
    """Every verb of every kind on either kind of table, at full depth; in CI the kinds take turns beside a BTREE."""
    every = [(kind, verb, stable) for verb in VERBS for kind in COLUMNS for stable in (False, True)]
    others = [case for case in every if case[0] != "BTREE"]
    return [case for case in every if case[0] == "BTREE"] + others[:: stride(5)]


def _state(store: Store) -> tuple[int, list[tuple[str, str]]]:
    def read() -> tuple[int, list[tuple[str, str]]]:
        dataset = tw.dataset(ADDRESS)
        dataset.validate()
        check_indices(dataset)
        return dataset.version, sorted((each["name"], each["uuid"]) for each in dataset.list_indices())

    found: tuple[int, list[tuple[str, str]]] = on_stage(store, read)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "verb", "stable"), cases())
def test_a_fault_at_every_call(kind: str, verb: str, stable: bool) -> None:
    given, run = VERBS[verb]
    base, judged, act = _make(kind, stable, **given), Judged(), partial(run, kind=kind)
    before, objects = _state(base), listing(base)
    recording = FaultyStore(copied(base))
    assert outcome_of(recording, lambda: act(tw.dataset(ADDRESS))) is None
    calls = recording.calls[list(VERBS).index(verb) % 2 :: stride(4)]
    assert len(recording.calls) >= 4
    for call in calls:
        for fault in FAULTS:
            if not makes_sense(fault, call):
                continue
            store, where = copied(base), f"{fault} at {call}"
            error = outcome_of(FaultyStore(store, at_call(call.index, fault)), lambda: act(tw.dataset(ADDRESS)))
            if not judged.is_new(store, error):
                continue
            found = _state(store)
            assert objects <= listing(store), f"{where}: files of older versions are gone"
            if error is None:
                assert found[0] == before[0] + 1, f"{where}: it returned, and nothing is there"
                assert call.method == "delete" or not leftovers(store), f"{where}: left behind beside the new version"
            elif not isinstance(error, SimulatedCrash | CommitUnknown):
                assert found == before, f"{where}: it reported {error!r}, and yet it is there"
                assert listing(store) <= objects, f"{where}: left behind after {error!r}"
            if found == before:
                on_stage(store, lambda: act(tw.dataset(ADDRESS)), seed=8)
                assert _state(store)[0] == before[0] + 1, f"{where}: running it again"
            on_stage(store, lambda: tw.dataset(ADDRESS).cleanup_old_versions(retain_versions=9, delete_unverified=True))
            left = on_stage(store, lambda s=store: unreferenced(tw.dataset(ADDRESS), listing(s)))
            assert not left, f"{where}: cleanup left {left}"
            _state(store)
    assert {None, SimulatedCrash} <= judged.endings


def test_a_failed_build_leaves_no_directory(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a local disk directories stay where files are removed; cleanup and failed builds take them too."""
    monkeypatch.undo()
    uri = str(tmp_path / "t")
    dataset = tw.write_dataset(rows(0, 9), uri, max_rows_per_file=3)
    for path in (tmp_path / "t" / "data").iterdir():
        path.write_bytes(path.read_bytes()[:-40])
        break
    with pytest.raises(tw.errors.TablewrightError):
        dataset.create_scalar_index("a", "BTREE")
    assert not list((tmp_path / "t" / "_indices").glob("*"))
    assert dataset.version == tw.dataset(uri).version == 1
