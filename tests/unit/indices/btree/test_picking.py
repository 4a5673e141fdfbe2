"""Values in another order, whatever their type and lengths."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablewright.indices.btree.picking import Picker

KINDS = [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(
    lengths=st.one_of(
        st.tuples(st.integers(0, 40), st.integers(1, 9)).map(lambda pair: [pair[0]] * pair[1]),
        st.lists(st.integers(0, 5), min_size=1, max_size=9),
        st.just([300, 300]),
    ),
    cut=st.integers(0, 3),
    seed=st.integers(0, 9),
)
def test_texts_of_one_length_and_of_several(kind: pa.DataType, lengths: list[int], cut: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    texts = [bytes(chance.integers(97, 123, length, dtype=np.uint8)) for length in lengths]
    values = pa.array(texts, pa.binary()).cast(kind).slice(min(cut, len(texts) - 1))
    rows = chance.integers(0, len(values), 12)
    picked = Picker(values).pick(rows)
    picked.validate(full=True)
    assert picked.type == kind
    assert picked.to_pylist() == [values[int(row)].as_py() for row in rows]
    assert Picker(values).pick(rows[:0]).to_pylist() == []


@pytest.mark.parametrize("values", [pa.array([3, 1, 2]), pa.array([b"ab", b"cd", b"ef"], pa.binary(2))], ids=str)
def test_other_types(values: pa.Array) -> None:
    assert Picker(values).pick(np.array([2, 0, 2])).equals(values.take(pa.array([2, 0, 2])))


def test_nothing_to_pick_from() -> None:
    assert Picker(pa.array([], pa.string())).pick(np.zeros(0, np.int64)).to_pylist() == []
