from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.format.samples import DELETION, FILE, fragment, stable_fragment

from tablewright.format.fragment import (
    TOMBSTONE,
    problems_of_fragment,
)


class TestValue:
    def test_rows(self) -> None:
        whole = fragment()
        assert (whole.live_rows, whole.deleted_rows) == (10, 0)
        assert whole.with_deletion(DELETION).live_rows == 6
        assert whole.with_deletion(DELETION).with_deletion(None) == whole

    def test_live_fields(self) -> None:
        old = replace(FILE, fields=(0, TOMBSTONE))
        new = replace(FILE, path="g.lance", fields=(1,), column_indices=(0,))
        assert fragment(files=(old, new)).live_fields == {0, 1}
        assert old.live_fields == (0,)
        assert FILE.version == "2.2"

    @pytest.mark.parametrize(
        ("changes", "problem"),
        [
            ({"id": 1 << 32}, "does not fit 32 bits"),
            ({"id": -1}, "does not fit 32 bits"),
            ({"physical_rows": (1 << 32) + 1}, "do not fit 32 bits of offsets"),
            ({"deletion": replace(DELETION, num_deleted_rows=11)}, "11 of 10 rows are deleted"),
            ({"deletion": replace(DELETION, num_deleted_rows=-1)}, "negative number"),
            ({"files": (FILE, replace(FILE, path="g"))}, "in another of its files"),
            ({"files": (replace(FILE, path=""),)}, "does not stay inside"),
            ({"files": (replace(FILE, path="/etc/passwd"),)}, "does not stay inside"),
            ({"files": (replace(FILE, path="../x"),)}, "does not stay inside"),
            ({"files": (replace(FILE, column_indices=()),)}, "2 fields but 0 column indices"),
            ({"files": (replace(FILE, fields=(0, -1)),)}, r"reserved field ids \[-1\]"),
            ({"files": (replace(FILE, fields=(0, -3)),)}, r"reserved field ids \[-3\]"),
            ({"files": (replace(FILE, fields=(0, 0)),)}, "lists a field twice"),
            ({"files": (replace(FILE, column_indices=(0, -2)),)}, "negative column index"),
        ],
    )
    def test_problems(self, changes: dict[str, Any], problem: str) -> None:
        broken = replace(fragment(7), **changes)
        assert len(problems_of_fragment(broken)) == 1
        with pytest.raises(AssertionError, match=problem):
            raise AssertionError(problems_of_fragment(broken)[0])

    def test_sound_ones_have_no_problems(self) -> None:
        first_generation = replace(FILE, file_major_version=0, column_indices=())
        for sound in (fragment(), stable_fragment(), fragment(files=()), fragment(files=(first_generation,))):
            assert problems_of_fragment(sound) == ()


@pytest.mark.parametrize(
    "change",
    [{"base_id": -1}, {"file_size_bytes": 1 << 64}, {"file_major_version": 1 << 32}, {"fields": (1 << 31,)}],
    ids=str,
)
def test_numbers_out_of_range(change: dict[str, Any]) -> None:
    assert problems_of_fragment(fragment(files=(replace(FILE, **change),)))
