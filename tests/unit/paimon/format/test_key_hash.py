"""Key hashes of whole tables: pieces, empty tables, and fixed buckets with Java's remainder."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.paimon.format.bucket_model import slow_hash, slow_row

from tablewright.errors import InvalidRequest
from tablewright.paimon.format import key_hash
from tablewright.paimon.format.key_hash import fixed_buckets, hash_keys


def test_pieces_of_any_size_give_the_same_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(5)
    texts = ["y" * int(size) for size in chance.integers(0, 40, 100)]
    columns = {"n": pa.array(chance.integers(-(2**63), 2**63 - 1, 100)), "t": pa.array(texts)}
    expected = [
        slow_hash(slow_row(row, [pa.int64(), pa.string()])) for row in zip(columns["n"].to_pylist(), texts, strict=True)
    ]
    for rows, size in ((1 << 14, 1 << 20), (7, 1 << 20), (1 << 14, 500), (1, 1)):
        monkeypatch.setattr(key_hash, "_ROWS_PER_PIECE", rows)
        monkeypatch.setattr(key_hash, "_BYTES_PER_PIECE", size)
        assert hash_keys(columns).tolist() == expected
        assert hash_keys(pa.table(columns)).tolist() == expected
        assert hash_keys(pa.record_batch(columns)).tolist() == expected
    assert hash_keys(columns).dtype == np.int32


def test_a_long_text_among_short_ones() -> None:
    texts = ["a", "b" * 5001, None, "c" * 9, "d" * 5000]
    assert hash_keys([pa.array(texts)]).tolist() == [slow_hash(slow_row([text], [pa.string()])) for text in texts]


def test_no_rows_and_no_columns() -> None:
    assert hash_keys({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())}).tolist() == []
    with pytest.raises(InvalidRequest, match="at least one column"):
        hash_keys([])
    with pytest.raises(InvalidRequest, match="of one length"):
        hash_keys([pa.array([1]), pa.array([1, 2])])


def test_fixed_buckets_take_javas_remainder() -> None:
    hashes = np.array([0, 1, -1, 7, -7, 2**31 - 1, -(2**31)], np.int32)
    for buckets in (1, 2, 3, 7, 2**31 - 1):
        quotients = [int(abs(int(h)) // buckets) * (1 if h >= 0 else -1) for h in hashes]
        expected = [abs(int(h) - q * buckets) for h, q in zip(hashes, quotients, strict=True)]
        assert fixed_buckets(hashes, buckets).tolist() == expected
    with pytest.raises(InvalidRequest, match="num_buckets"):
        fixed_buckets(hashes, 0)
