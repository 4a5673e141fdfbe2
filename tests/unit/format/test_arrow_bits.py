"""Bitmaps of Arrow's and bools of numpy's say the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tablewright.format.arrow_bits import bools_of, mask_of, valid_bools


@given(st.lists(st.none() | st.booleans(), max_size=70), st.integers(0, 20), st.integers(0, 70))
def test_bools_are_those_of_the_mask(values: list[bool | None], start: int, count: int) -> None:
    mask = pa.array(values, pa.bool_()).slice(start, count)
    bools, valid = bools_of(mask), valid_bools(mask)
    assert bools.tolist() == [value is True for value in mask.to_pylist()]
    assert mask_of(bools).to_pylist() == bools.tolist()
    known = [value is not None for value in mask.to_pylist()]
    assert all(known) if valid is None else valid.tolist() == known


def test_masks_without_bits() -> None:
    assert bools_of(pa.nulls(3, pa.bool_())).tolist() == [False] * 3
    assert bools_of(pa.array([], pa.bool_())).tolist() == []
    assert mask_of(np.zeros(0, np.bool_)).to_pylist() == []
