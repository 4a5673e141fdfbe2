"""Facts about fragments: read from values they are those that are read from bytes."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from tablewright.format.fragment import (
    DataFile,
    DeletionFile,
    DeletionFileType,
    Fragment,
    FragmentFacts,
    encode_fragment,
)
from tablewright.format.fragment.facts import facts_of, facts_of_values

FILE = DataFile(
    path="a.lance",
    fields=(0, 1, -2),
    column_indices=(0, 1, 2),
    file_major_version=2,
    file_minor_version=2,
    file_size_bytes=123,
)
ELSEWHERE = DataFile(
    path="b.lance", fields=(3,), column_indices=(0,), file_major_version=2, file_minor_version=0, base_id=0
)
DELETION = DeletionFile(file_type=DeletionFileType.BITMAP, read_version=3, id=2**63, num_deleted_rows=4, base_id=7)
PLAIN = Fragment(id=0, files=(FILE,), physical_rows=10)
FULL = Fragment(
    id=2**32 - 1,
    files=(FILE, ELSEWHERE),
    physical_rows=10,
    deletion=DELETION,
    row_ids=bytes.fromhex("0a040a02100a"),
)
EMPTY = Fragment(id=7, files=(), physical_rows=0)


@pytest.mark.parametrize("fragments", [[], [PLAIN], [FULL], [PLAIN, EMPTY, FULL]], ids=len)
def test_values_and_bytes_say_the_same(fragments: list[Fragment]) -> None:
    from_bytes, from_values = facts_of([encode_fragment(each) for each in fragments]), facts_of_values(fragments)
    for field in fields(FragmentFacts):
        theirs, ours = getattr(from_bytes, field.name), getattr(from_values, field.name)
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs), field.name
