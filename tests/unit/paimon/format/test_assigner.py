"""The bucket assigner: golden traces, rules and limits, and what batches may not change."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.unit.paimon.format.bucket_model import slow_owner

from tablewright.errors import InvalidRequest
from tablewright.paimon.format.assigner import BucketAssigner, PartitionAssigner, RandomBuckets, owner_channels
from tablewright.paimon.format.binary_row import encode_row
from tablewright.paimon.format.bucket_index import BucketOptions, Channels
from tablewright.paimon.format.murmur import hash_row

TRACE = json.loads((Path(__file__).parents[3] / "golden" / "paimon" / "golden.json").read_text())["assigner_trace"]
EMPTY = encode_row((), ())


def numbers(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def test_golden_trace() -> None:
    channels = Channels(TRACE["num_channels"], TRACE["num_assigners"])
    options = BucketOptions(target_rows=TRACE["target_row_num"], max_buckets=TRACE["max_buckets"])
    rows = TRACE["rows_hash_assigner_bucket"]
    assigners = [BucketAssigner(options, channel, channels) for channel in range(channels.channels)]
    hashes = numbers(*(hash for hash, _, _ in rows))
    assert owner_channels(hash_row(EMPTY), hashes, channels).tolist() == [channel for _, channel, _ in rows]
    for channel, assigner in enumerate(assigners):
        own = [(hash, bucket) for hash, owner, bucket in rows if owner == channel]
        assert assigner.assign(EMPTY, [hash for hash, _ in own]).tolist() == [bucket for _, bucket in own]
    one_by_one = [BucketAssigner(options, channel, channels) for channel in range(channels.channels)]
    assert [int(one_by_one[owner].assign(EMPTY, [hash])[0]) for hash, owner, _ in rows] == [b for _, _, b in rows]


def test_golden_reload() -> None:
    reload = TRACE["reload"]
    existing = {EMPTY: {int(bucket): hashes for bucket, hashes in reload["existing"].items()}}
    assigner = BucketAssigner(BucketOptions(target_rows=reload["target_row_num"]), existing=existing)
    given = assigner.assign(EMPTY, [hash for hash, _ in reload["assign"]])
    assert given.tolist() == [bucket for _, bucket in reload["assign"]]
    added = assigner.added()
    assert {bucket: hashes.tolist() for bucket, hashes in added[EMPTY].items()} == {1: [40, 41], 2: [42, 43, 44]}
    changed = assigner.changed()
    assert {bucket: hashes.tolist() for bucket, hashes in changed[EMPTY].items()} == {1: [11, 40, 41], 2: [42, 43, 44]}


def test_each_partition_has_a_limit_of_its_own() -> None:
    case = TRACE["divergence"]
    options = BucketOptions(target_rows=case["target_row_num"], max_buckets=case["max_buckets"])
    assigner = BucketAssigner(options)
    import pyarrow as pa

    for name, expected in case["java_deterministic"].items():
        row = encode_row((name,), (pa.string(),))
        given = assigner.assign(row, case["hashes_per_partition"]).tolist()
        assert given[:4] == expected and set(given[4:]) <= {0, 1}


def test_random_buckets_are_even_and_depend_on_hash_and_seed_only() -> None:
    options, hashes = BucketOptions(target_rows=1, max_buckets=4), np.arange(10_000, dtype=np.int32)
    whole = PartitionAssigner(options).assign(hashes)
    again, pieces = PartitionAssigner(options), np.array_split(hashes, 7)
    assert np.concatenate([again.assign(piece) for piece in pieces]).tolist() == whole.tolist()
    other_order = PartitionAssigner(options)
    other_order.assign(hashes[:4])
    assert other_order.assign(hashes[::-1])[::-1].tolist() == whole.tolist()
    assert np.bincount(whole).min() > 2300
    assert PartitionAssigner(options, pick=RandomBuckets(1)).assign(hashes).tolist() != whole.tolist()
    last = PartitionAssigner(options, pick=lambda hashes, count: np.full(len(hashes), count - 1)).assign(hashes)
    assert last[4:].tolist() == [3] * 9_996


def test_owners_as_java_computes_them() -> None:
    edges = [-(2**31), -(2**31) + 1, -7, -1, 0, 1, 7, 2**31 - 1]
    for channels, assigners in ((1, 1), (4, 2), (5, 3), (7, 7)):
        for partition_hash in edges:
            expected = [slow_owner(partition_hash, hash, channels, assigners) for hash in edges]
            assert owner_channels(partition_hash, numbers(*edges), Channels(channels, assigners)).tolist() == expected


def test_a_channel_refuses_what_it_does_not_own() -> None:
    with pytest.raises(InvalidRequest, match="The hash -6 belongs to channel 3, and this is 0"):
        BucketAssigner(BucketOptions(), 0, Channels(4, 2)).assign(EMPTY, [-13, -6])
    with pytest.raises(InvalidRequest, match="channel"):
        BucketAssigner(BucketOptions(), 4, Channels(4, 2))
    with pytest.raises(InvalidRequest, match="assigners"):
        Channels(2, 3)


def test_a_channel_without_a_bucket() -> None:
    options, channels = BucketOptions(max_buckets=1), Channels(4, 2)
    own = [hash for hash in range(8) if slow_owner(hash_row(EMPTY), hash, 4, 2) == 3]
    with pytest.raises(InvalidRequest, match="may create no bucket"):
        BucketAssigner(options, 3, channels).assign(EMPTY, own)


def test_no_more_buckets_than_there_can_be() -> None:
    assigner = PartitionAssigner(BucketOptions(target_rows=1))
    assert assigner.assign(np.arange(32_767, dtype=np.int32)).max() == 32_766
    with pytest.raises(InvalidRequest, match=r"up to 32766 .*target-row-num"):
        assigner.assign(numbers(-1))
    most = PartitionAssigner(BucketOptions(target_rows=1, max_buckets=32_768))
    assert most.assign(np.arange(32_768, dtype=np.int32)).max() == 32_767


def test_empty_files_and_foreign_buckets() -> None:
    # Bucket 0 is there but empty: it is as if it were not. Bucket 9 lies beyond the limit, and is filled nevertheless.
    existing = {EMPTY: {0: [], 9: [1, 2]}}
    assigner = BucketAssigner(BucketOptions(target_rows=3, max_buckets=2), existing=existing)
    assert assigner.assign(EMPTY, [3, 4, 5, 6, 7]).tolist() == [9, 0, 0, 0, 1]
    assert assigner.assign(EMPTY, []).tolist() == []
    # A hash that two files hold is in the later one.
    twice = BucketAssigner(BucketOptions(), existing={EMPTY: {1: [5], 0: [5]}})
    assert twice.assign(EMPTY, [5]).tolist() == [0]
