"""Hash files: golden bytes, sets in any order, and files that end within a number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.paimon.format.hash_file import decode_hashes, encode_hashes
from tablewright.paimon.format.key_hash import hash_keys

GOLDEN = Path(__file__).parents[3] / "golden" / "paimon"


def test_golden_files_hold_the_same_set() -> None:
    import pyarrow as pa

    keys = hash_keys({"id": pa.array([1, 2, 3, 4, 5, 6, 7, 100, -1], pa.int32())})
    java, python = ((GOLDEN / f"hash-index-{name}.bin").read_bytes() for name in ("java", "pypaimon"))
    assert java != python
    assert decode_hashes(java, "java").tolist() == decode_hashes(python, "python").tolist() == sorted(keys.tolist())
    assert encode_hashes(decode_hashes(java, "java")) == encode_hashes(keys) == python


def test_edges() -> None:
    assert decode_hashes(b"", "p").tolist() == [] and encode_hashes([]) == b""
    edges = [2**31 - 1, -(2**31), 0, 0]
    assert encode_hashes(edges).hex() == "80000000" + "00000000" + "7fffffff"
    assert decode_hashes(bytes.fromhex("0000000500000005"), "p").tolist() == [5]
    assert encode_hashes(np.array([3, 1], np.int64)).hex() == "0000000100000003"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 35])
def test_a_file_that_ends_within_a_number(size: int) -> None:
    with pytest.raises(CorruptTable, match=f"{size} bytes") as caught:
        decode_hashes(bytes(size), "index/index-1")
    assert caught.value.path == "index/index-1"


@pytest.mark.parametrize("hashes", [[2**31], [-(2**31) - 1], [1.5], ["a"]])
def test_what_is_no_hash(hashes: list[object]) -> None:
    with pytest.raises(InvalidRequest, match="whole numbers"):
        encode_hashes(hashes)  # type: ignore[arg-type]
