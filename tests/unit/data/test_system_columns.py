"""Row ids, addresses, positions and versions of the rows of a fragment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.format.samples import fragment, stable_fragment

from tablewright.data.system_columns import SystemColumns
from tablewright.format.fragment import Fragment
from tablewright.format.row_ids import VersionSequence, decode_row_ids, encode_versions
from tablewright.format.row_set import RowSet

OFFSETS = np.array([0, 3, 9])


class Context:
    """The parts of a read context that system columns ask for."""

    def __init__(self, *deleted: int) -> None:
        self._deleted = deleted

    def deletion_vector(self, given: Fragment) -> RowSet | None:
        return RowSet.of(self._deleted) if self._deleted else None

    def row_ids(self, given: Fragment) -> Any:
        return None if given.row_ids is None else decode_row_ids(given.row_ids, "x")


def values(name: str, given: Fragment, *deleted: int, first_row: int = 0, live: Any = None) -> list[Any]:
    columns = SystemColumns(Context(*deleted), given, first_row)  # type: ignore[arg-type]
    return list(columns.column(name, OFFSETS, live).to_pylist())


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("_rowaddr", fragment(2), [2 << 32, 2 << 32 | 3, 2 << 32 | 9]),
        ("_rowid", fragment(2), [2 << 32, 2 << 32 | 3, 2 << 32 | 9]),
        ("_rowid", stable_fragment(5), [50, 53, 59]),
        ("_rowoffset", fragment(2), [0, 3, 9]),
        ("_row_created_at_version", fragment(2), [1, 1, 1]),
        (
            "_row_last_updated_at_version",
            stable_fragment(
                last_updated_at=encode_versions(VersionSequence.from_values(np.arange(10, dtype=np.uint64)))
            ),
            [0, 3, 9],
        ),
    ],
)
def test_columns(name: str, given: Fragment, expected: list[int]) -> None:
    assert values(name, given) == expected


def test_positions_count_live_rows_of_the_table() -> None:
    assert values("_rowoffset", fragment(), 1, 2, first_row=100) == [100, 101, 107]


def test_deleted_rows_have_no_identity_but_versions() -> None:
    live = np.array([True, False, True])
    for name in ("_rowid", "_rowaddr", "_rowoffset"):
        assert values(name, fragment(), 3, live=live)[1] is None
    assert values("_row_created_at_version", fragment(), 3, live=live) == [1, 1, 1]


def test_several_at_once() -> None:
    columns = SystemColumns(Context(), stable_fragment(1))  # type: ignore[arg-type]
    batch = columns.batch(["_rowid", "_rowaddr"], OFFSETS)
    assert batch.to_pydict() == {"_rowid": [10, 13, 19], "_rowaddr": [1 << 32, 1 << 32 | 3, 1 << 32 | 9]}
