"""Row-address maps by fragment: what they hold, and what they refuse."""

from __future__ import annotations

import pytest
from pyroaring import BitMap

from tablewright.format.fragment_rows import addresses_of, decode_fragment_rows, encode_fragment_rows


def test_round_trip_in_the_order_of_fragments() -> None:
    runs = BitMap()
    runs.add_range(0, 50_000)
    rows = {9: BitMap([1, 70_000]), 2: runs, 5: BitMap()}
    data = encode_fragment_rows(rows)
    assert data[12:14] == b"\x3a\x30"  # no run containers
    assert decode_fragment_rows(data) == {2: runs, 9: BitMap([1, 70_000])}
    assert addresses_of(rows)[-1] == (9 << 32) + 70_000
    assert len(addresses_of({})) == 0


def test_length_0_is_every_row() -> None:
    assert decode_fragment_rows(bytes.fromhex("010000000700000000000000")) == {7: None}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("", "too early"),
        ("01000000", "too early"),
        ("0100000000000000ff000000", "too early"),
        ("0000000000", "5 bytes where 4"),
        ("0200000007000000000000000700000000000000", "not in order"),
        ("010000000000000004000000ffffffff", "roaring"),
    ],
)
def test_damage_is_named(data: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        decode_fragment_rows(bytes.fromhex(data))
