from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tablewright.errors import TaggedVersions, VersionNotFound
from tablewright.operations.cleanup.options import CleanupOptions
from tablewright.operations.cleanup.select import Refs, select_versions

DAY = 86_400 * 10**9
NOW = 1000 * DAY
AGES = {1: NOW - 30 * DAY, 2: NOW - 20 * DAY, 4: NOW - 10 * DAY, 5: NOW - DAY, 6: NOW}
NONE = Refs({}, {})


def selected(refs: Refs = NONE, current: int = 6, **options: Any) -> list[int]:
    chosen = CleanupOptions(**options)
    return sorted(select_versions(AGES, current, chosen, refs, now_ns=NOW, uri="here"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [1, 2]),
        ({"older_than": timedelta(0)}, [1, 2, 4, 5]),
        ({"older_than": timedelta(days=10)}, [1, 2]),
        ({"older_than": timedelta(days=9)}, [1, 2, 4]),
        ({"retain_versions": 1}, [1, 2, 4, 5]),
        ({"retain_versions": 3}, [1, 2]),
        ({"retain_versions": 99}, []),
        ({"older_than": timedelta(days=25), "retain_versions": 1}, [1]),
        ({"versions": [1, 4, 6]}, [1, 4]),
        ({"versions": [1, 3], "older_than": timedelta(days=25)}, [1]),
    ],
    ids=str,
)
def test_all_conditions_together(options: dict[str, Any], expected: list[int]) -> None:
    assert selected(**options) == expected


def test_the_dataset_s_own_version_and_later_ones_stay() -> None:
    assert selected(current=4, retain_versions=1) == [1, 2]
    assert selected(current=1 << 63, retain_versions=1) == [1, 2, 4, 5]


def test_tags() -> None:
    refs = Refs({"a": 2, "b": 5, "c": 2}, {})
    assert selected(refs, retain_versions=1, error_if_tagged_old_versions=False) == [1, 4]
    with pytest.raises(TaggedVersions, match=r'3 tagged version.*{"a": 2, "b": 5, "c": 2}') as caught:
        selected(refs, retain_versions=1)
    assert caught.value.tags == {"a": 2, "b": 5, "c": 2}
    assert selected(Refs({"a": 5}, {}), retain_versions=2) == [1, 2, 4]


def test_versions_that_branches_begin_from_stay() -> None:
    assert selected(Refs({}, {"b": 2}), retain_versions=1) == [1, 4, 5]


def test_versions_that_never_were() -> None:
    assert selected(versions=[3]) == []
    with pytest.raises(VersionNotFound, match=r"Version 7.*latest version is 6"):
        selected(versions=[1, 7])


def test_no_versions() -> None:
    assert select_versions({}, 1, CleanupOptions(), NONE, now_ns=NOW, uri="here") == frozenset()
