from __future__ import annotations

import threading

import pytest

import tablewright as tw
from tablewright.testing import memory_world
from tablewright.transaction.recorded import record, recorded_commits


def test_versions_that_a_block_commits() -> None:
    with recorded_commits() as made:
        ds = tw.write_dataset({"id": [1]}, memory_world())
        ds.insert({"id": [2]})
        with recorded_commits() as inner:
            ds.delete("id = 1")
        thread = threading.Thread(target=ds.insert, args=({"id": [3]},))
        thread.start()
        thread.join()
    assert [snapshot.version for snapshot in made] == [1, 2, 3]
    assert inner == []
    ds.insert({"id": [4]})
    assert len(made) == 3


def test_a_block_that_fails_ends() -> None:
    snapshot = tw.write_dataset({"id": [1]}, memory_world())._snapshot
    with pytest.raises(KeyError), recorded_commits():
        raise KeyError
    with recorded_commits() as made:
        record(snapshot)
    assert made == [snapshot]
    record(snapshot)
    assert len(made) == 1
