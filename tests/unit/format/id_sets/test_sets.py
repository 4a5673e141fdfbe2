"""Columns of sets of ids: the layouts that readers of the format know, for sets of every shape."""

from __future__ import annotations

import array
import struct

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from tablewright.format.id_sets import ADDRESS_MAP, TREEMAP, Form, count_sets, decode_sets, encode_sets, unite_sets
from tablewright.format.id_sets.sets import sorted_sets

FORMS = pytest.mark.parametrize("form", [ADDRESS_MAP, TREEMAP], ids=lambda form: form.name)
HIGHS = [0, 1, 7, 2**32 - 1]
RNG = np.random.default_rng(7)
DENSE = RNG.choice(65536, 9000, replace=False) + (5 << 32) + (3 << 16)

ids = st.builds(
    lambda high, low: high << 32 | low,
    st.sampled_from(HIGHS),
    st.one_of(st.integers(0, 2**32 - 1), st.integers(0, 10), st.integers(65530, 65545)),
)
columns = st.lists(st.sets(ids, max_size=12), max_size=8)


def bytes_of(members: npt.NDArray[np.uint64], form: Form, *, runs: bool = False) -> bytes:
    """One set as pyroaring lays it out, with containers of runs if wanted."""
    highs = np.unique(members >> np.uint64(32)).tolist()
    parts = [struct.pack("<I" if form is ADDRESS_MAP else "<Q", len(highs))]
    for high in highs:
        lows = members[members >> np.uint64(32) == high].astype(np.uint32)
        bitmap = BitMap(array.array("I", lows[0::2].tobytes())) | BitMap(array.array("I", lows[1::2].tobytes()))
        if runs:
            bitmap.run_optimize()
        body = bytes(bitmap.serialize())
        length = struct.pack("<I", len(body)) if form is ADDRESS_MAP else b""
        parts += [struct.pack("<I", high), length, body]
    return b"".join(parts)


def members_of(sets: list[set[int]]) -> list[npt.NDArray[np.uint64]]:
    return [np.array(sorted(each), np.uint64) for each in sets]


def encoded(sets: list[npt.NDArray[np.uint64]], form: Form) -> pa.Array:
    everything = np.concatenate([*sets, np.zeros(0, np.uint64)])
    return encode_sets(everything, np.array([len(each) for each in sets], np.int64), form)


def decoded(column: pa.Array, form: Form) -> list[list[int]]:
    found, counts = decode_sets(column, form)
    return [part.tolist() for part in np.split(found, np.cumsum(counts)[:-1])] if len(counts) else []


@FORMS
@given(columns)
@example([set(DENSE.tolist()), {1}, set(), {1 << 40}])
@example([set(range(0, 140000, 2)), {65535, 65536}])
@example([{high << 32 for high in range(100)}, {5}])
def test_bytes_are_those_of_pyroaring_and_read_back(form: Form, sets: list[set[int]]) -> None:
    members = members_of(sets)
    column = encoded(members, form)
    assert column.to_pylist() == [bytes_of(each, form) for each in members]
    assert decoded(column, form) == [each.tolist() for each in members]
    assert count_sets(column, form).tolist() == [len(each) for each in members]


@given(columns)
def test_pyroaring_reads_our_treemaps_and_we_read_its(sets: list[set[int]]) -> None:
    laid_out = pa.array([bytes(BitMap64(each).serialize()) for each in sets], pa.binary())
    assert decoded(laid_out, TREEMAP) == [sorted(each) for each in sets]
    assert [set(BitMap64.deserialize(each)) for each in encoded(members_of(sets), TREEMAP).to_pylist()] == sets


@FORMS
@given(st.lists(st.tuples(ids, st.integers(1, 300)), max_size=5))
@example([(0, 65536 * 3)])
@example([(0, 5), (1 << 32, 5)])
def test_containers_of_runs_are_read(form: Form, stretches: list[tuple[int, int]]) -> None:
    members = np.unique(
        np.concatenate(
            [np.zeros(0, np.uint64), *(np.arange(a, min(a + n, 2**64 - 1), dtype=np.uint64) for a, n in stretches)]
        )
    )
    column = pa.array([bytes_of(members, form, runs=True), bytes_of(members[:1], form)], pa.binary())
    assert decoded(column, form) == [members.tolist(), members[:1].tolist()]
    assert count_sets(column, form).tolist() == [len(members), len(members[:1])]


@FORMS
@given(st.lists(st.tuples(st.sets(ids, max_size=9), st.integers(0, 4)), max_size=9))
@example([(set(DENSE.tolist()), 0), ({1}, 1), ({1 << 40, 5 << 32}, 0), ({1, 2}, 1)])
@example([(set(range(0, 90000, 2)), 3), ({7}, 1), (set(range(1, 90000, 2)), 3), ({7, 9}, 1)])
def test_the_union_of_groups_has_the_bytes_of_a_set_that_was_one_from_the_start(
    form: Form, sets: list[tuple[set[int], int]]
) -> None:
    column = encoded(members_of([each for each, _ in sets]), form)
    groups = np.array([group for _, group in sets], np.int64)
    united = unite_sets(column, groups, 5, form)
    whole: list[set[int]] = [set() for _ in range(5)]
    for each, group in sets:
        whole[group] |= each
    assert united.to_pylist() == encoded(members_of(whole), form).to_pylist()


@FORMS
def test_a_slice_of_a_column_is_a_column(form: Form) -> None:
    column = encoded(members_of([{1}, {2, 3}, {1 << 33}]), form)
    assert decoded(column[1:], form) == [[2, 3], [1 << 33]]
    odd = pa.concat_arrays([pa.array([b"x"], pa.large_binary()), column])[1:]
    assert decoded(odd, form) == [[1], [2, 3], [1 << 33]]


def test_ids_are_sorted_into_groups_each_once() -> None:
    found, counts = sorted_sets(np.array([5, 1, 5, 9], np.uint64), np.array([1, 0, 1, 1]), 3)
    assert (found.tolist(), counts.tolist()) == ([1, 5, 9], [1, 2, 0])


SAMPLES = [encoded(members_of([{1, 2, 70000, 1 << 33}, {5}]), form).to_pylist()[0] for form in (ADDRESS_MAP, TREEMAP)]


@pytest.mark.parametrize(("form", "data"), list(zip((ADDRESS_MAP, TREEMAP), SAMPLES, strict=True)))
def test_bytes_that_end_early_are_refused(form: Form, data: bytes) -> None:
    for size in range(len(data)):
        with pytest.raises(ValueError, match=r"roaring|map"):
            decode_sets(pa.array([SAMPLES[form is TREEMAP], data[:size]]), form)
    for extra in (b"\0", b"\0\0", b"\0\0\0\0"):
        with pytest.raises(ValueError, match="bytes"):
            decode_sets(pa.array([data + extra]), form)


@pytest.mark.parametrize(("form", "data"), list(zip((ADDRESS_MAP, TREEMAP), SAMPLES, strict=True)))
@given(changes=st.lists(st.tuples(st.integers(0, 61), st.integers(0, 255)), min_size=1, max_size=4))
def test_changed_bytes_are_read_as_ascending_ids_or_refused(
    form: Form, data: bytes, changes: list[tuple[int, int]]
) -> None:
    damaged = bytearray(data)
    for place, value in changes:
        damaged[place % len(data)] = value
    try:
        found, counts = decode_sets(pa.array([bytes(damaged)]), form, 1 << 20)
    except ValueError:
        return
    assert counts.sum() == len(found)
    assert np.all(found[1:] > found[:-1])


def test_high_words_out_of_order_null_sets_and_too_many_values_are_refused() -> None:
    one = bytes_of(np.array([3], np.uint64), ADDRESS_MAP)[4:]
    with pytest.raises(ValueError, match="order"):
        decode_sets(pa.array([struct.pack("<I", 2) + one + one]), ADDRESS_MAP)
    with pytest.raises(ValueError, match="null"):
        decode_sets(pa.array([None], pa.binary()), ADDRESS_MAP)
    with pytest.raises(ValueError, match="all rows of fragment 4"):
        decode_sets(pa.array([struct.pack("<III", 1, 4, 0)]), ADDRESS_MAP)
    whole = bytes_of(np.arange(65536, dtype=np.uint64), ADDRESS_MAP, runs=True)
    with pytest.raises(ValueError, match="at most 100"):
        decode_sets(pa.array([whole + b""]), ADDRESS_MAP, 100)
    with pytest.raises(ValueError, match="at most 1"):
        decode_sets(encoded(members_of([{1, 2}]), ADDRESS_MAP), ADDRESS_MAP, 1)


def test_ids_that_leave_no_room_for_a_group_are_sorted_too() -> None:
    wide = np.array([2**64 - 1, 1, 2**64 - 1], np.uint64)
    found, counts = sorted_sets(wide, np.array([1, 1, 0]), 2)
    assert (found.tolist(), counts.tolist()) == ([2**64 - 1, 1, 2**64 - 1], [1, 2])


@FORMS
def test_a_union_refuses_damaged_bitmaps_small_or_large(form: Form) -> None:
    for members in ({1, 2}, set(range(0, 300000, 30))):
        good = encoded(members_of([members]), form)[0].as_py()
        damaged = good[:-4] + good[-2:] + good[-4:-2]  # the last two values change places
        with pytest.raises(ValueError, match="roaring"):
            unite_sets(pa.array([good, damaged]), np.array([0, 0]), 1, form)
