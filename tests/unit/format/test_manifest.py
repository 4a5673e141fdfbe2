from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.format.samples import FILE, fragment, manifest

from tablewright.format.manifest import BasePath


@pytest.mark.parametrize(("changes", "expected"), [({}, 1), ({"max_allocated_field_id": 9}, 9)])
def test_new_fields_stay_above_all_old_ones(changes: dict[str, Any], expected: int) -> None:
    assert manifest(**changes).max_field_id == expected
    dropped = manifest(fragment(files=(replace(FILE, fields=(0, 6)),)), **changes)
    assert dropped.max_field_id == max(6, expected)


def test_base_paths_by_id() -> None:
    base = BasePath(id=4, path="x")
    assert manifest(base_paths=(base,)).base_path(4) == base
    with pytest.raises(KeyError):
        manifest().base_path(4)
