from __future__ import annotations

import pytest

import tablewright as tw
from tablewright.errors import VersionNotFound
from tablewright.format.cleanup_journal import encode_journal
from tablewright.snapshot.removals import check_stays, read_journals
from tablewright.testing import Call, FaultyStore, Pause, memory_world, on_call


def test_a_version_that_is_gone_or_about_to_go() -> None:
    world = memory_world()
    tw.write_dataset({"id": [1]}, world).insert({"id": [2]})
    world.store.put("_cleanup/a.json", encode_journal([2], []))
    world.store.put("_cleanup/other.txt", b"junk")
    check_stays(world.store, 1)
    with pytest.raises(VersionNotFound, match="A cleanup is removing it"):
        check_stays(world.store, 2)
    with pytest.raises(VersionNotFound, match="was cleaned up"):
        check_stays(world.store, 3)


def test_a_journal_that_goes_while_it_is_read() -> None:
    store = memory_world().store
    store.put("_cleanup/a.json", encode_journal([2], ["x"]))

    def ended(call: Call) -> None:
        store.delete("_cleanup/a.json")

    assert len(list(read_journals(store))) == 1
    assert list(read_journals(FaultyStore(store, on_call(Pause(ended), method="get")))) == []
