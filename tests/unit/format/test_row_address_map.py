"""Row-address maps: the bytes of one set."""

from __future__ import annotations

import numpy as np
import pytest

from tablewright.format.row_address_map import decode_row_address_map, encode_row_address_map

BYTES = bytes.fromhex(
    "02000000"
    "00000000" "14000000" "3a3000000100000000000100" "10000000" "01000200"
    "03000000" "12000000" "3a3000000100000000000000" "10000000" "0500"
)  # fmt: skip


def test_the_layout_has_the_length_of_each_bitmap() -> None:
    ids = np.array([2, (3 << 32) + 5, 1, 2], np.uint64)
    assert encode_row_address_map(ids) == BYTES
    assert decode_row_address_map(BYTES).tolist() == [1, 2, (3 << 32) + 5]
    assert encode_row_address_map(np.zeros(0, np.uint64)) == bytes(4)


def test_other_bytes_are_refused() -> None:
    with pytest.raises(ValueError, match="too early"):
        decode_row_address_map(b"")
    with pytest.raises(ValueError, match="at most 2"):
        decode_row_address_map(BYTES, 2)
