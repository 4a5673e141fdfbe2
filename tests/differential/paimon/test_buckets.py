"""Dynamic buckets equal pypaimon's: its assigner on generated hashes, and its tables after several commits."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
from tests.differential.paimon.keys import ask_pypaimon
from tests.differential.paimon.referee import Pypaimon
from tests.unit.paimon.format.bucket_model import slow_owner

import tablewright.paimon as paimon
from tablewright.errors import InvalidRequest
from tablewright.paimon.assign import assign_buckets
from tablewright.paimon.format.assigner import BucketAssigner
from tablewright.paimon.format.bucket_index import BucketIndex, BucketOptions, Channels
from tablewright.paimon.format.key_hash import hash_keys
from tablewright.paimon.format.murmur import hash_row

PARTITION = bytes(8)


def case(chance: random.Random) -> dict[str, Any]:
    channels = chance.randrange(1, 6)
    hashes = [chance.randrange(-(2**31), 2**31) for _ in range(chance.randrange(5, 60))]
    loaded = hashes[: chance.randrange(0, len(hashes) // 2)]
    existing = {str(bucket): loaded[bucket::3] for bucket in range(3)}
    return {
        "channels": channels,
        "assigners": chance.randrange(1, channels + 1),
        "target": chance.randrange(1, 12),
        "max_buckets": chance.choice([-1, -1, 2, 4]),
        "partition_hash": hash_row(PARTITION),
        "existing": existing,
        "hashes": chance.choices(hashes, k=2 * len(hashes)),
    }


def ours(case: dict[str, Any], channel: int) -> tuple[list[int], list[int]]:
    """Our buckets of a channel, and how many of them are not by chance: all, until some bucket has grown too large."""
    channels = Channels(case["channels"], case["assigners"])
    existing = {PARTITION: {int(bucket): hashes for bucket, hashes in case["existing"].items()}}
    options = BucketOptions(target_rows=case["target"], max_buckets=case["max_buckets"])
    assigner = BucketAssigner(options, channel, channels, existing=existing)
    own = [h for h in case["hashes"] if slow_owner(case["partition_hash"], h, *_pair(channels)) == channel]
    return assigner.assign(PARTITION, own).tolist(), own


def _pair(channels: Channels) -> tuple[int, int]:
    return channels.channels, channels.assigners


def by_rule(case: dict[str, Any], channel: int, hashes: list[int], buckets: list[int]) -> int:
    """How many rows come before the first that goes where there is no room."""
    sizes = {int(bucket): len(known) for bucket, known in case["existing"].items()}
    known = {hash for hashes in case["existing"].values() for hash in hashes}
    for count, (hash, bucket) in enumerate(zip(hashes, buckets, strict=True)):
        if hash not in known and sizes.get(bucket, 0) >= case["target"]:
            return count
        if hash not in known:
            sizes[bucket] = sizes.get(bucket, 0) + 1
            known.add(hash)
    return len(hashes)


def test_the_assigner() -> None:
    chance = random.Random(11)
    cases = [case(chance) for _ in range(150)]
    compared = 0
    for each, theirs in zip(cases, ask_pypaimon("assign", cases=cases), strict=True):
        # pypaimon takes the highest bucket of the table for the limit: it may stop creating before Java does.
        limited = each["max_buckets"] != -1
        for channel, expected in enumerate(theirs):
            if expected and isinstance(expected[0], str):
                try:
                    ours(each, channel)
                except InvalidRequest:
                    continue
                assert limited
                continue
            buckets, hashes = ours(each, channel)
            certain = min(by_rule(each, channel, hashes, given) for given in (buckets, expected))
            assert buckets[:certain] == expected[:certain]
            assert limited or certain == len(buckets)
            compared += certain
    assert compared > 3_000


def test_tables_of_several_commits(pypaimon: Pypaimon) -> None:
    """pypaimon runs one assigner in the order of rows; sorted by hash, its rows come as ours do."""
    fields = [pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string(), nullable=False)]
    schema = pa.schema([*fields, pa.field("area", pa.string(), nullable=False), ("v", pa.float64())])
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "25"}
    path = pypaimon.create(
        "buckets", schema, partition_keys=["area"], primary_keys=["area", "id", "name"], options=options
    )
    chance = np.random.default_rng(8)
    index = BucketIndex.of({}, BucketOptions.of_table(options))
    for _ in range(3):
        count = 120
        rows = pa.table(
            {
                "id": chance.integers(0, 150, count),
                "name": [f"a name of some length {number}" for number in chance.integers(0, 2, count)],
                "area": [("eu", "asia")[number] for number in chance.integers(0, 2, count)],
                "v": chance.random(count),
            },
            schema,
        )
        order = np.argsort(hash_keys(rows.select(["id", "name"])), kind="stable")
        pypaimon.append("buckets", rows.take(pa.array(order)))
        done = assign_buckets(rows, ["area", "id", "name"], index, partition_by=["area"])
        index = index.updated(done.hash_files())
        theirs = paimon.open(path).buckets()
        assert theirs == index
    assert len(theirs.partitions[("eu",)]) > 3
