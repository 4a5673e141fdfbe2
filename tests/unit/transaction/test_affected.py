from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64, FrozenBitMap

from tablewright.format.row_address import RowAddress
from tablewright.format.row_set import RowSet
from tablewright.transaction.affected import AffectedRows

ADDRESSES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2**32 - 1)), max_size=30)


@given(ADDRESSES)
def test_every_form_of_addresses_gives_the_same_rows(pairs: list[tuple[int, int]]) -> None:
    addresses = [(fragment << 32) | offset for fragment, offset in pairs]
    expected = {fragment: {o for f, o in pairs if f == fragment} for fragment, _ in pairs}
    forms = [
        addresses,
        np.array(addresses, np.uint64),
        pa.array(addresses, pa.uint64()),
        pa.chunked_array([pa.array(addresses, pa.uint64())]),
        BitMap64(addresses),
    ]
    for form in forms:
        rows = AffectedRows.of_addresses(form)
        assert {fragment: set(offsets) for fragment, offsets in rows.offsets.items()} == expected
        assert len(rows) == len(set(addresses))


@given(ADDRESSES, ADDRESSES)
def test_union_is_what_both_touch(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    def rows(pairs: list[tuple[int, int]]) -> AffectedRows:
        return AffectedRows.of_addresses([(fragment << 32) | offset for fragment, offset in pairs])

    assert rows(left).union(rows(right)) == rows(left + right)


def test_offsets_in_any_form() -> None:
    given = AffectedRows({0: FrozenBitMap([1, 2]), 7: RowSet.of([3])})
    assert given == AffectedRows.of_addresses([1, 2, RowAddress.of(7, 3)])
    assert given.of(0) == RowSet.of([1, 2]) and given.of(5) == RowSet() and len(given) == 3


def test_addresses_must_be_numbers() -> None:
    with pytest.raises(ValueError, match=r"invalid literal|could not"):
        AffectedRows.of_addresses(["x"])  # type: ignore[list-item]
