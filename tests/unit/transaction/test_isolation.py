"""Serializable: rows and schema have to be those that were read; settings and indices need not."""

from __future__ import annotations

import pickle

import pytest

import tablewright as tw
from tablewright.errors import CommitConflict, InvalidRequest
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.transaction.isolation import Both, Unchanged, check_isolation
from tablewright.world import World

URI = "memory://isolation"


def newest() -> Snapshot:
    return open_snapshot(World(open_store(URI)))


def test_levels() -> None:
    assert check_isolation("snapshot") == "snapshot"
    for wrong in ("SNAPSHOT", "", None, 1):
        with pytest.raises(InvalidRequest, match="isolation must be one of snapshot, serializable"):
            check_isolation(wrong)


@pytest.mark.parametrize(
    ("change", "is_conflict"),
    [
        (lambda ds: ds.insert({"id": [2]}), True),
        (lambda ds: ds.delete("id = 1"), True),
        (lambda ds: ds.update({"id": "5"}), True),
        (lambda ds: ds.alter_columns({"path": "id", "name": "key"}), True),
        (lambda ds: ds.update_config({"a": "b"}), False),
    ],
    ids=["insert", "delete", "update", "rename", "config"],
)
def test_rows_and_columns_count(change: object, is_conflict: bool) -> None:
    ds = tw.write_dataset({"id": [1]}, URI, mode="overwrite")
    recheck = pickle.loads(pickle.dumps(Unchanged.since(newest(), "Delete")))
    recheck(newest())
    change(ds)  # type: ignore[operator]
    if is_conflict:
        with pytest.raises(CommitConflict, match=f"rows or columns changed since version {recheck.version}") as caught:
            recheck(newest())
        assert caught.value.retryable
    else:
        recheck(newest())


def test_of_two_rechecks_the_first_speaks() -> None:
    tw.write_dataset({"id": [1]}, URI, mode="overwrite")
    asked: list[str] = []

    def first(snapshot: Snapshot) -> None:
        asked.append("first")

    def second(snapshot: Snapshot) -> None:
        asked.append("second")
        raise InvalidRequest("second")

    with pytest.raises(InvalidRequest, match="second"):
        Both(first, second)(newest())
    with pytest.raises(InvalidRequest, match="second"):
        Both(second, first)(newest())
    assert asked == ["first", "second", "second"]
