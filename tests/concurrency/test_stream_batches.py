"""A batch of a stream is committed once, wherever its driver dies: it comes again, after another writer."""

from __future__ import annotations

import pytest
from tests.depth import stride

import tablewright as tw
from tablewright.errors import TablewrightError
from tablewright.storage import Store
from tablewright.testing import FaultyStore, SimulatedCrash, at_call
from tablewright.world import World

from .scene import FAULTS
from .stage import copied, makes_sense, new_store

KEY = "tablewright.stream.s"
BATCH = [{"id": 1, "n": 10}, {"id": 2, "n": 20}]


def _prepared() -> Store:
    store = new_store()
    tw.write_dataset([{"id": 1, "n": 1}, {"id": 3, "n": 3}], World(store=store))
    return store


def _upsert(store: Store) -> BaseException | None:
    """Run the batch; how it ended."""
    try:
        tw.stream_upsert(tw.dataset(World(store=store)), on="id", name="s")(BATCH, 0)
    except (TablewrightError, SimulatedCrash) as error:
        return error
    return None


def _commits(ds: tw.LanceDataset) -> int:
    """How many versions brought the batch."""
    transactions = [ds.read_transaction(version["version"]) for version in ds.versions()]
    return sum(KEY in (each.transaction_properties or {}) for each in transactions if each is not None)


@pytest.mark.slow
def test_a_fault_at_every_call_and_the_batch_again() -> None:
    prepared = _prepared()
    recording = FaultyStore(copied(prepared))
    assert _upsert(recording) is None
    endings = set()
    for call in recording.calls:
        for number, fault in enumerate(FAULTS):
            if not makes_sense(fault, call) or (number + call.index) % stride(2):
                continue
            store = copied(prepared)
            endings.add(type(_upsert(FaultyStore(store, at_call(call.index, fault)))))
            other = tw.dataset(World(store=store))
            other.update({"n": "n + 100"}, where="id = 1")
            was_there = KEY in other.config()
            assert _upsert(store) is None
            ds = tw.dataset(World(store=store))
            found = ds.to_table()
            rows = dict(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True))
            # A batch that was there is not run again: what came since stays.
            assert rows == {1: 110 if was_there else 10, 2: 20, 3: 3}, f"{fault} at {call}"
            assert (_commits(ds), ds.config()[KEY]) == (1, "0"), f"{fault} at {call}"
    assert {SimulatedCrash, type(None)} <= endings
