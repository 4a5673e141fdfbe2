"""One address and many: split and joined alike."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tablewright.format.row_address import RowAddress

U32 = st.integers(0, 2**32 - 1)


@given(st.lists(st.tuples(U32, U32), max_size=30))
@example([(2**32 - 1, 2**32 - 1), (0, 0)])
def test_arrays_and_single_addresses_agree(places: list[tuple[int, int]]) -> None:
    ids, offsets = (np.array([place[at] for place in places], np.uint64) for at in (0, 1))
    joined = RowAddress.join(ids, offsets.astype(np.int64))
    assert joined.dtype == np.uint64 and joined.tolist() == [id * 2**32 + offset for id, offset in places]
    assert joined.tolist() == [RowAddress.of(id, offset) for id, offset in places]
    owners, found = RowAddress.split(joined)
    assert found.dtype == np.int64 and list(zip(owners.tolist(), found.tolist(), strict=True)) == places
    assert [(each.fragment_id, each.offset) for each in map(RowAddress, joined.tolist())] == places


@given(U32, st.lists(U32, max_size=10))
def test_rows_of_one_fragment(fragment_id: int, offsets: list[int]) -> None:
    given = np.array(offsets, np.uint32)
    assert RowAddress.join(fragment_id, given).tolist() == [RowAddress.of(fragment_id, each) for each in offsets]
    assert given.tolist() == offsets


def test_an_address_is_a_number() -> None:
    address = RowAddress.of(7)
    assert address == 7 * 2**32 and hash(address) == hash(7 * 2**32) and f"{address}" == "30064771072"
    assert pickle.loads(pickle.dumps(address)).fragment_id == 7
