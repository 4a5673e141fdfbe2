"""Facts about fragments: read from values they are those that are read from bytes."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@given(st.data())
def test_few_are_read_as_many_are(data: st.DataObject) -> None:
    """A few fragments are read one by one, many by columns; damage is found by both."""
    raw = bytearray(encode_fragment(data.draw(st.sampled_from([PLAIN, FULL, EMPTY]))))
    for _ in range(data.draw(st.integers(0, 2))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw += data.draw(st.sampled_from([b"", b"\x1a\x02\x20\x07", b"\x5a\x00", b"\x42\x01x", b"\x08"]))
    few, many = facts_of([bytes(raw)]), facts_of([bytes(raw)] * 40)
    assert bool(few.broken[0]) is bool(many.broken[0])
    if few.broken[0]:
        return
    first = many.take(np.array([0]))
    for field in fields(FragmentFacts):
        theirs, ours = getattr(first, field.name), getattr(few, field.name)
        assert ours.dtype == theirs.dtype, field.name
        assert ours.tolist() == theirs.tolist(), field.name
