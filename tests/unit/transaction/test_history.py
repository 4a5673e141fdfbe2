"""What was committed between two versions."""

from __future__ import annotations

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.snapshot.locate import find_version
from tablewright.transaction.history import operations_between


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
