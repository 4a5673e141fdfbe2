"""What was committed between two versions."""

from __future__ import annotations

from tests.unit.transaction.crossings import crossed, sixteen_rows

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.snapshot.locate import find_version
from tablewright.snapshot.snapshot import open_snapshot
from tablewright.transaction.history import crossings_between, operations_between


def test_operations_by_version() -> None:
    dataset = tw.write_dataset({"id": [1, 2]}, "memory://history")
    dataset.delete("id = 1")
    dataset.insert({"id": [3]})
    newest = table_of(dataset).snapshot
    found = operations_between(1, newest)
    assert {version: type(operation).__name__ for version, operation in found.items()} == {2: "Delete", 3: "Append"}
    assert operations_between(3, newest) == {}
    entry = find_version(newest.world.store, 2)
    assert entry is not None
    newest.world.store.delete(entry.path)
    assert operations_between(1, newest)[2] is None


def test_the_steps_over_rewrites() -> None:
    base = sixteen_rows(stable=False)
    crossed(base, [[0, 1]])
    tw.dataset(base.location.uri).delete("id = 15")
    newest = crossed(open_snapshot(base.world), [[2, 3]]).after
    steps = list(crossings_between(base, newest))
    assert [(step.before.version, step.after.version) for step in steps] == [(3, 4), (6, 7)]
    assert [step.rewritten(range(4)) for step in steps] == [[0, 1], [2, 3]]
    entry = find_version(base.world.store, 5)
    assert entry is not None
    base.world.store.delete(entry.path)
    assert [step.after.version for step in crossings_between(base, newest)] == [4], "what version 5 did is not known"
