from __future__ import annotations

import pytest
from tests.unit.format.samples import FILE, SCHEMA

from tablewright.format.transaction import (
    Append,
    DataReplacement,
    DataReplacementGroup,
    MapUpdate,
    Merge,
)


def test_names() -> None:
    assert Append.name == "Append"
    assert Merge(fragments=(), schema=SCHEMA).name == "Merge"
    replacement = DataReplacement(replacements=(DataReplacementGroup(fragment_id=1, new_file=FILE),))
    assert replacement.name == "DataReplacement"


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        (MapUpdate(entries={}), {"a": "1", "b": "2"}),
        (MapUpdate(entries={"a": "9"}), {"a": "9", "b": "2"}),
        (MapUpdate(entries={"a": None, "c": None}), {"b": "2"}),
        (MapUpdate(entries={"c": "3"}, replace=True), {"c": "3"}),
    ],
)
def test_map_updates(update: MapUpdate, expected: dict[str, str]) -> None:
    assert update.applied({"a": "1", "b": "2"}) == expected
