"""Keys of any types, rows and nulls: what the fast encoder gives equals the plain one; rows are read back; and buckets
that are given to whole arrays are those that hashes get one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.paimon.format.bucket_model import KINDS, SlowAssigner, slow_hash, slow_owner, slow_row, values_of

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.paimon.format.assigner import BucketAssigner, RandomBuckets
from tablewright.paimon.format.binary_row import decode_row, encode_rows
from tablewright.paimon.format.bucket_index import BucketIndex, BucketOptions, Channels
from tablewright.paimon.format.hash_file import decode_hashes, encode_hashes
from tablewright.paimon.format.key_hash import hash_keys

HASHES = st.integers(-(2**31), 2**31 - 1) | st.integers(-20, 20)


@st.composite
def keys(draw: st.DrawFn) -> tuple[list[pa.DataType], list[tuple[Any, ...]]]:
    kinds = draw(st.lists(st.sampled_from(list(KINDS.values())), min_size=1, max_size=5))
    row = st.tuples(*(st.none() | values_of(kind) for kind in kinds))
    return kinds, draw(st.lists(row, min_size=1, max_size=12))


@given(keys(), st.integers(0, 3), st.integers(1, 5))
def test_rows_and_hashes(drawn: tuple[list[pa.DataType], list[tuple[Any, ...]]], begin: int, step: int) -> None:
    kinds, rows = drawn
    expected = [slow_row(row, kinds) for row in rows]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, [f"c{number}" for number in range(len(kinds))])
    encoded = encode_rows(batch.slice(begin)).to_arrow().to_pylist()
    assert encoded == expected[begin:]
    chunks = [pa.chunked_array([c.slice(at, step) for at in range(0, len(c), step)], c.type) for c in columns]
    assert hash_keys(chunks).tolist() == [slow_hash(row) for row in expected]
    assert [decode_row(row, kinds) for row in encoded] == rows[begin:]


@given(keys(), st.data())
def test_damaged_rows_are_read_or_refused(drawn: tuple[list[pa.DataType], list[tuple[Any, ...]]], data: Any) -> None:
    kinds, rows = drawn
    damaged = bytearray(slow_row(rows[0], kinds))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    cut = damaged[: data.draw(st.integers(0, len(damaged)))] if data.draw(st.booleans()) else damaged
    try:
        values = decode_row(bytes(cut), kinds, "m")
    except CorruptTable:
        return
    assert len(values) == len(kinds)


@given(st.lists(HASHES))
def test_hash_files(hashes: list[int]) -> None:
    assert decode_hashes(encode_hashes(hashes), "p").tolist() == sorted(set(hashes))


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    channels = draw(st.integers(1, 5))
    existing = draw(st.dictionaries(st.integers(0, 6), st.lists(HASHES, unique=True, max_size=5), max_size=4))
    seen: set[int] = set()
    for bucket in existing:  # a hash is in one bucket only
        existing[bucket] = [hash for hash in existing[bucket] if hash not in seen]
        seen.update(existing[bucket])
    return {
        "existing": existing,
        "channels": Channels(channels, draw(st.integers(1, channels))),
        "options": BucketOptions(
            target_rows=draw(st.integers(1, 5)), max_buckets=draw(st.sampled_from([-1, 1, 2, 5, 9]))
        ),
        "partition": draw(st.binary(min_size=2, max_size=2)).ljust(8, b"\0"),
        "batches": draw(st.lists(st.lists(HASHES, max_size=20), max_size=5)),
    }


@given(tables())
def test_assigning_arrays_is_assigning_one_by_one(table: dict[str, Any]) -> None:
    options, channels, partition = table["options"], table["channels"], table["partition"]
    partition_hash, pick = slow_hash(partition), RandomBuckets(3)

    def slow_pick(hash: int, own: list[int]) -> int:
        return own[int(pick(np.array([hash], np.int32), len(own))[0])]

    final = {bucket: set(hashes) for bucket, hashes in table["existing"].items()}
    for channel in range(channels.channels):
        fast = BucketAssigner(options, channel, channels, existing={partition: table["existing"]}, pick=pick)
        slow = SlowAssigner(
            table["existing"], channel, channels.channels, channels.assigners, options.target_rows,
            options.max_buckets, partition_hash, slow_pick,
        )  # fmt: skip
        before = dict(slow.places)
        for batch in table["batches"]:
            own = [h for h in batch if slow_owner(partition_hash, h, channels.channels, channels.assigners) == channel]
            try:
                expected = [slow.assign(hash) for hash in own]
            except LookupError:
                try:
                    fast.assign(partition, own)
                except InvalidRequest:
                    return
                raise AssertionError("the fast assigner found a bucket where there is none") from None
            assert fast.assign(partition, own).tolist() == expected
        new: dict[int, set[int]] = {}
        for hash, bucket in slow.places.items():
            if hash not in before:
                new.setdefault(bucket, set()).add(hash)
        added = fast.added().get(partition, {})
        assert {bucket: set(hashes.tolist()) for bucket, hashes in added.items()} == new
        whole = fast.changed().get(partition, {})
        for bucket, hashes in whole.items():
            assert set(hashes.tolist()) == new[bucket] | set(table["existing"].get(bucket, ()))
            final[bucket] = final.get(bucket, set()) | set(hashes.tolist())
    stored = [((), bucket, encode_hashes(hashes), "p") for bucket, hashes in final.items()]
    assert BucketIndex.from_files(stored).to_sets() == ({(): final} if final else {})
