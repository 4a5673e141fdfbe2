"""Segments: the fewest bytes of all shapes, and cut, joined and picked as lists are, whatever they span."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tablewright.errors import CorruptTable
from tablewright.format import row_versions
from tablewright.format.row_ids import RowIdSequence, decode_row_ids, encode_row_ids
from tablewright.format.row_set import RowSet
from tablewright.format.row_versions import VersionSequence, decode_versions, encode_versions
from tablewright.format.segment_choice import _SEGMENT_COST, _cost, _shaped, _ways, segments_of
from tablewright.format.segments import (
    Array,
    NumberArray,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    Segment,
    SortedArray,
    runs_of,
)

TOP = 2**64 - 1


@st.composite
def ids(draw: st.DrawFn, *, ascending: bool = False) -> list[int]:
    """Clusters of ids, dense and sparse, near and far from each other, also at both ends of what a number can be."""
    found: set[int] = set()
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.one_of(st.integers(0, 400), st.integers(0, 2**34), st.integers(0, TOP), st.just(TOP - 60)))
        step = draw(st.sampled_from([1, 1, 2, 3, 17, 70, 3000, 70_000]))
        size = draw(st.integers(1, 60))
        gone = draw(st.sets(st.integers(1, size), max_size=6))
        found |= {start + step * i for i in range(size) if i not in gone and start + step * i <= TOP}
    numbers = sorted(found)
    if ascending or draw(st.booleans()):
        return numbers
    cut = draw(st.integers(0, len(numbers)))
    return draw(st.sampled_from([numbers[cut:] + numbers[:cut], numbers[::-1], sorted(numbers, key=lambda n: n % 7)]))


def _array(numbers: list[int]) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(numbers, np.uint64)


def _size(*segments: Segment) -> int:
    return len(encode_row_ids(RowIdSequence(segments)))


def _all_shapes(numbers: list[int]) -> list[Segment]:
    """Every shape that can hold these numbers as one segment."""
    shapes: list[Segment] = [Array(NumberArray.of(_array(numbers)))]
    start, end = numbers[0], numbers[-1] + 1
    if any(after <= before for before, after in itertools.pairwise(numbers)):
        return shapes
    shapes.append(SortedArray(NumberArray.of(_array(numbers))))
    if end - start == len(numbers) and end <= TOP:
        return [Range(start, end)]
    if end - start < 1 << 20 and end <= TOP:
        present = np.zeros(end - start, np.uint8)
        present[[number - start for number in numbers]] = 1
        holes = [start + int(hole) for hole in np.flatnonzero(present == 0)]
        shapes.append(RangeWithHoles(start, end, NumberArray.of(_array(holes))))
        shapes.append(RangeWithBitmap(start, end, np.packbits(present, bitorder="little").tobytes()))
    return shapes


@given(ids())
@example([0, TOP])
@example([TOP])
@example([5, TOP - 1, TOP, 3])
@example([7, 70000, 3])
def test_no_shape_is_smaller(numbers: list[int]) -> None:
    firsts, lasts = runs_of(_array(numbers))
    if np.all(firsts[1:] > lasts[:-1]):
        chosen = next(_shaped(firsts, lasts, np.zeros(len(firsts) - 1, np.bool_)))
    else:
        chosen = Array(NumberArray.of(_array(numbers)))
    assert chosen.values().tolist() == numbers
    assert _size(chosen) == min(map(_size, _all_shapes(numbers)))
    several = segments_of(_array(numbers))
    assert [number for part in several for number in part.values().tolist()] == numbers
    assert _size(*several) <= _size(chosen)
    assert decode_row_ids(encode_row_ids(RowIdSequence(several)), "p", len(numbers)).to_numpy().tolist() == numbers


def _cost_of(sequence: RowIdSequence) -> int:
    return _size(*sequence.segments) + _SEGMENT_COST * len(sequence.segments)


def _parts(draw: st.DataObject, numbers: list[int]) -> list[list[int]]:
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(numbers)), max_size=8)))
    return [numbers[low:high] for low, high in itertools.pairwise([0, *cuts, len(numbers)])]


@given(ids(), st.data())
def test_joined_sequences_are_the_list_of_their_ids_in_no_more_bytes(numbers: list[int], data: st.DataObject) -> None:
    parts = [RowIdSequence.from_values(_array(each)) for each in _parts(data, numbers)]
    joined, one_by_one = RowIdSequence.join(parts), RowIdSequence()
    for part in parts:
        one_by_one = one_by_one.concat(part)
    assert joined.to_numpy().tolist() == numbers
    assert decode_row_ids(encode_row_ids(joined), "p", len(numbers)) == joined
    assert _cost_of(joined) <= _cost_of(one_by_one)
    assert _cost_of(joined) <= _cost_of(RowIdSequence.from_values(_array(numbers)))
    gone = data.draw(st.sets(st.integers(0, len(numbers) - 1))) if numbers else set()
    live = [number for offset, number in enumerate(numbers) if offset not in gone]
    left = RowIdSequence.join(parts, RowSet.of(gone))
    assert left.to_numpy().tolist() == live
    assert left == RowIdSequence.join(parts, np.array(sorted(gone, reverse=True), np.int64))
    if gone:
        assert _cost_of(left) <= _cost_of(RowIdSequence.from_values(_array(live)))


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=8), max_size=6), st.data())
def test_joined_versions_are_the_list_of_their_rows(parts: list[list[tuple[int, int]]], data: st.DataObject) -> None:
    sequences = [VersionSequence.from_runs(runs) for runs in parts]
    values = [version for runs in parts for count, version in runs for _ in range(count)]
    joined = VersionSequence.join(sequences)
    assert joined == VersionSequence.from_values(_array(values)) and len(joined) == len(values)
    low, high = data.draw(st.integers(-2, len(values) + 2)), data.draw(st.integers(-2, len(values) + 2))
    assert joined.slice(low, high).to_numpy().tolist() == values[max(low, 0) : max(high, 0)]
    gone = data.draw(st.sets(st.integers(0, len(values) - 1))) if values else set()
    live = [version for offset, version in enumerate(values) if offset not in gone]
    assert joined.without(RowSet.of(gone)) == VersionSequence.from_values(_array(live))
    assert joined.without(np.array(sorted(gone, reverse=True), np.int64)) == joined.without(RowSet.of(gone))


@given(ids())
@example([number for number in range(2**20, 2**20 + 70_000) if number not in (2**21 - 2**20, 2**20 + 69_000)])
@example([number for number in range(100, 300) if number not in (130, 140)])
def test_what_is_weighed_is_what_is_written(numbers: list[int]) -> None:
    firsts, lasts = runs_of(_array(numbers))
    for way in _ways(firsts, lasts, np.zeros(len(firsts) - 1, np.bool_)):
        segments = tuple(_shaped(firsts, lasts, way))
        assert len(segments) == int(way.sum()) + 1
        assert _cost(firsts, lasts, way) == _size(*segments) + _SEGMENT_COST * len(segments)


@given(ids(), st.data())
def test_sequences_lose_rows_as_lists_do(numbers: list[int], data: st.DataObject) -> None:
    sequence = RowIdSequence.from_values(_array(numbers))
    gone = data.draw(st.lists(st.integers(0, len(numbers) - 1), max_size=30))
    left = [number for offset, number in enumerate(numbers) if offset not in set(gone)]
    assert sequence.without(np.array(gone, np.int64)).to_numpy().tolist() == left
    assert sequence.without(RowSet.of(gone)) == sequence.without(np.array(gone, np.int64))
    low, high = sorted((data.draw(st.integers(0, len(numbers))), data.draw(st.integers(0, len(numbers)))))
    part = sequence.slice(low, high)
    assert part.to_numpy().tolist() == numbers[low:high]
    whole = part.concat(sequence.slice(high, len(numbers)))
    assert whole.to_numpy().tolist() == numbers[low:]
    asked = [*data.draw(st.lists(st.sampled_from(numbers), max_size=10)), 0, 1, TOP]
    assert whole.position_of(_array(asked)).tolist() == [
        numbers.index(number) - low if number in numbers[low:] else -1 for number in asked
    ]
    scattered = RowIdSequence(tuple(part for number in numbers for part in segments_of(_array([number]))))
    assert scattered.position_of(_array(asked)).tolist() == sequence.position_of(_array(asked)).tolist()


@given(st.lists(st.integers(0, 2**39), min_size=1, max_size=20), st.integers(0, 2**30))
def test_ranges_are_never_spread_out(gone: list[int], start: int) -> None:
    """Half a trillion ids: any array of them would not fit in memory."""
    rows = 2**39
    whole = RowIdSequence.from_range(start, start + rows)
    removed = sorted({min(offset, rows - 1) for offset in gone})
    holed = whole.without(np.array(gone, np.int64).clip(max=rows - 1))
    assert len(holed) == rows - len(removed)
    assert _size(*holed.segments) < 30 * (len(removed) + 2)
    asked = _array([start, start + rows - 1, start + removed[0]])
    expected = [-1 if int(number) - start in removed else int(number) - start for number in asked]
    assert holed.position_of(asked).tolist() == [
        place if place < 0 else place - sum(offset < place for offset in removed) for place in expected
    ]
    half = holed.slice(len(holed) // 2, len(holed) // 2 + 5)
    assert len(half) == 5 and (half.bounds or (0, 0))[0] >= start + rows // 2 - 1
    picked = holed.select(np.array([0, len(holed) - 1, len(holed) // 3]))
    assert holed.position_of(picked.to_numpy()).tolist() == [0, len(holed) - 1, len(holed) // 3]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), max_size=20), st.data())
def test_versions_are_found_by_offset(runs: list[tuple[int, int]], data: st.DataObject) -> None:
    sequence = VersionSequence.from_runs(runs)
    values = [version for count, version in runs for _ in range(count)]
    offsets = data.draw(st.lists(st.integers(0, len(values) - 1), max_size=20)) if values else []
    assert sequence.at(np.array(offsets, np.int64)).tolist() == [values[offset] for offset in offsets]
    mask = np.array([version == 1 for version in values], np.bool_)
    assert sequence.select(mask).to_numpy().tolist() == [1] * values.count(1)


def _slowly(stored: bytes) -> tuple[list[int], list[int]] | None:
    try:
        counts, versions = row_versions._decode_runs(stored, "p")
    except (CorruptTable, ValueError):
        return None
    return list(counts), versions.tolist()


@given(st.integers(0, 2**32), st.sampled_from([3, 127, 200, 20_000]), st.sampled_from([2, 90, 300, 70_000]))
def test_very_many_versions_are_short_and_read_at_once(seed: int, version_max: int, count_max: int) -> None:
    chance = np.random.default_rng(seed)
    size = int(chance.integers(65, 600))
    counts, versions = chance.integers(1, count_max, size), chance.integers(1, version_max, size)
    sequence = VersionSequence.from_runs(zip(counts.tolist(), versions.tolist(), strict=True))
    stored = encode_versions(sequence)
    decoded = decode_versions(stored, "p", len(sequence))
    assert decoded == sequence
    assert _slowly(stored) == (sequence.counts.tolist(), sequence.versions.tolist())
    if count_max <= 127 and version_max <= 127:
        assert len(stored) <= 10 * size
    assert encode_versions(decoded) == stored
    for places in ((3, 5), (1, 3, 5)):  # lengths that agree with each other, and with nothing else
        longer = bytearray(stored)
        for place in places:
            longer[place] += 4
        found = row_versions._decode_many(bytes(longer))
        assert found is None or (found[0].tolist(), found[1].tolist()) == _slowly(bytes(longer))
    damaged = bytearray(stored)
    for place in chance.integers(0, len(stored), int(chance.integers(1, 4))).tolist():
        damaged[place] = int(chance.integers(0, 256))
    found, slow = row_versions._decode_many(bytes(damaged)), _slowly(bytes(damaged))
    assert found is None or (found[0].tolist(), found[1].tolist()) == slow
