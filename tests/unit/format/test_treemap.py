"""64-bit Roaring bitmaps: bytes that readers of the format know, and refusal of all others."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tablewright.format.treemap import decode_treemap, encode_treemap

IDS = np.array([5, 1, 2, 1 << 32, (1 << 40) + 3], np.uint64)
BYTES = bytes.fromhex(
    "0300000000000000"  # three high words
    "00000000" "3a3000000100000000000200" "10000000" "010002000500"
    "01000000" "3a3000000100000000000000" "10000000" "0000"
    "00010000" "3a3000000100000000000000" "10000000" "0300"
)  # fmt: skip


def test_the_layout_is_counts_high_words_and_portable_bitmaps() -> None:
    assert encode_treemap(IDS) == BYTES
    assert decode_treemap(BYTES).tolist() == sorted(IDS.tolist())


def test_nothing_is_a_set_too() -> None:
    assert encode_treemap(np.zeros(0, np.uint64)) == bytes(8)
    assert decode_treemap(bytes(8)).tolist() == []


@pytest.mark.parametrize("size", range(len(BYTES)))
def test_bytes_that_end_early_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match=r"too early|expected"):
        decode_treemap(BYTES[:size])


def test_bytes_after_the_end_and_high_words_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="expected"):
        decode_treemap(BYTES + b"\0")
    one = encode_treemap(np.array([3], np.uint64))[8:]
    with pytest.raises(ValueError, match="order"):
        decode_treemap(struct.pack("<Q", 2) + one + one)


def test_a_count_that_the_bytes_can_not_hold_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="too early"):
        decode_treemap(struct.pack("<Q", 2**63))


def test_a_set_that_counts_too_much_is_refused_before_it_is_expanded() -> None:
    runs = bytes.fromhex("3b300000010000ffff0100" + "0000" + "ffff")
    data = struct.pack("<QI", 1, 0) + runs
    assert len(decode_treemap(data)) == 65536
    with pytest.raises(ValueError, match="at most 100"):
        decode_treemap(data, 100)
