"""The versions of a feed, and what has to be there."""

from __future__ import annotations

from pathlib import Path

import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest, VersionNotFound
from tablewright.format.naming import manifest_path
from tablewright.operations.change_feed.span import check_span, open_at, open_pairs, require_ids, require_versions
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World


@pytest.fixture
def newest(tmp_path: Path) -> Snapshot:
    """Version 4 of a table whose version 2 is gone."""
    ds = tw.write_dataset({"id": [1]}, str(tmp_path / "t"), enable_stable_row_ids=True)
    for number in (2, 3, 4):
        ds.insert({"id": [number]})
    (tmp_path / "t" / manifest_path(2)).unlink()
    return open_snapshot(World(open_store(str(tmp_path / "t"))))


def test_numbers_in_order() -> None:
    assert check_span(0, 3) == (0, 3) and check_span(2, 2) == (2, 2)
    with pytest.raises(InvalidRequest, match="begin version 3 is newer than end version 2"):
        check_span(3, 2)
    with pytest.raises(ValueError, match="non-negative"):
        check_span(-1, 2)


def test_ends(newest: Snapshot) -> None:
    assert open_at(newest, 0) is None
    assert open_at(newest, 4) is newest
    first = open_at(newest, 1)
    assert first is not None and first.version == 1


@pytest.mark.parametrize("span", [(3, 4), (4, 4), (3, 3)])
def test_versions_that_are_there(newest: Snapshot, span: tuple[int, int]) -> None:
    require_versions(newest, *span)


@pytest.mark.parametrize(
    ("span", "words"),
    [
        ((0, 4), r"Version 2 .*cleaned up.*complete from version 3 on"),
        ((1, 3), r"Version 2 .*cleaned up"),
        ((2, 2), r"Version 2 .*cleaned up"),
        ((3, 5), r"Version 5 .*latest version is 4"),
        ((9, 10**12), r"Version 9 .*latest version is 4"),
    ],
)
def test_versions_that_are_not(newest: Snapshot, span: tuple[int, int], words: str) -> None:
    with pytest.raises(VersionNotFound, match=words):
        require_versions(newest, *span)


def test_each_version_with_the_one_before(newest: Snapshot) -> None:
    before = open_at(newest, 3)
    assert [(old and old.version, new.version) for old, new in open_pairs(before, newest, 3)] == [(3, 4)]
    assert list(open_pairs(newest, newest, 4)) == []


def test_rows_without_ids_can_not_be_followed() -> None:
    tw.write_dataset({"id": [1]}, "memory://span-without-ids")
    with pytest.raises(InvalidRequest, match=r"Version 1 .*no stable row ids.*enable_stable_row_ids\(\)"):
        require_ids(open_snapshot(World(open_store("memory://span-without-ids"))))
