"""assign_buckets over Arrow tables: equal to the plain model in the order of hashes, whatever the order of rows."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.paimon.format.bucket_model import SlowAssigner, slow_hash, slow_owner, slow_row

from tablewright.errors import InvalidRequest, WrongType
from tablewright.paimon import assign
from tablewright.paimon.assign import assign_buckets
from tablewright.paimon.format.assigner import RandomBuckets
from tablewright.paimon.format.bucket_index import BucketIndex, BucketOptions

KINDS = {"id": pa.int64(), "name": pa.string(), "day": pa.date32(), "area": pa.string()}
KEY, PARTITION = ["id", "name"], ["day", "area"]


def rows(count: int, seed: int) -> pa.Table:
    chance = np.random.default_rng(seed)
    days = [dt.date(2024, 1, 1), None]
    areas = ["eu", "a long name of an area", ""]
    return pa.table(
        {
            "id": pa.array(chance.integers(0, count // 2, count)),
            "name": pa.array([f"name {number}" for number in chance.integers(0, 2, count)]),
            "day": pa.array([days[number] for number in chance.integers(0, 2, count)], pa.date32()),
            "area": pa.array([areas[number] for number in chance.integers(0, 3, count)]),
            "v": pa.array(chance.random(count)),
        }
    )


def slow_buckets(table: pa.Table, index: BucketIndex, parallelism: int, seed: int) -> dict[tuple[Any, ...], int]:
    """The bucket of every key and partition, hash by hash."""
    options = index.options
    channels = options.channels(parallelism)
    pick = RandomBuckets(seed)
    keys = {row: slow_hash(slow_row(row[:2], [KINDS[n] for n in KEY])) for row in key_rows(table)}
    existing = index.to_sets()
    assigners: dict[tuple[Any, ...], SlowAssigner] = {}
    found = {}
    for row, key_hash in sorted(keys.items(), key=lambda item: item[1]):
        partition_hash = slow_hash(slow_row(row[2:], [KINDS[name] for name in PARTITION]))
        channel = slow_owner(partition_hash, key_hash, channels.channels, channels.assigners)
        if (channel, row[2:]) not in assigners:
            buckets = {bucket: list(hashes) for bucket, hashes in existing.get(row[2:], {}).items()}
            assigners[channel, row[2:]] = SlowAssigner(
                buckets, channel, channels.channels, channels.assigners, options.target_rows, options.max_buckets,
                partition_hash, lambda hash, own: own[int(pick(np.array([hash], np.int32), len(own))[0])],
            )  # fmt: skip
        found[row] = assigners[channel, row[2:]].assign(key_hash)
    return found


def key_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in KEY + PARTITION), strict=True))


@pytest.mark.parametrize(
    "options",
    [
        {"target_rows": 10},
        {"target_rows": 10, "initial_buckets": 2, "assigner_parallelism": 5},
        {"target_rows": 3, "max_buckets": 6},
    ],
)
def test_two_writes_equal_the_model(options: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assign, "_HASHES_PER_MESSAGE", 7)
    index = BucketIndex.of({}, BucketOptions(**options))  # type: ignore[arg-type]
    for seed in (1, 2):
        table = rows(300, seed)
        expected = slow_buckets(table, index, 3, seed=9)
        shuffled = np.random.default_rng(3).permutation(len(table))
        for given in (table, pa.concat_tables([table.slice(200), table.slice(0, 200)]), table.take(shuffled)):
            done = assign_buckets(given, KEY + PARTITION, index, partition_by=PARTITION, parallelism=3, seed=9)
            assert done.frame.drop_columns(["_bucket"]).equals(given)
            assert done.frame["_bucket"].to_pylist() == [expected[row] for row in key_rows(given)]
        files = done.hash_files()
        assert all(file.hashes.tolist() == sorted(set(file.hashes.tolist())) for file in files)
        after = index.updated(files)
        sets: dict[tuple[Any, ...], dict[int, set[int]]] = index.to_sets()
        for row, bucket in expected.items():
            key_hash = slow_hash(slow_row(row[:2], [KINDS[name] for name in KEY]))
            sets.setdefault(row[2:], {}).setdefault(bucket, set()).add(key_hash)
        assert after.to_sets() == sets
        changed = {(file.partition, file.bucket) for file in files}
        before = index.to_sets()
        assert changed == {(p, b) for p in sets for b in sets[p] if before.get(p, {}).get(b) != sets[p][b]}
        index = after
    assert not assign_buckets(table, KEY, index, partition_by=PARTITION, parallelism=3).hash_files()


def test_types_of_the_table() -> None:
    moments = pa.table({"t": pa.array([1_000_001, 1_000_999], pa.timestamp("us"))})
    schema = pa.schema([("t", pa.timestamp("ms"))])
    assert len(assign_buckets(moments, ["t"]).hash_files()[0].hashes) == 2
    for given in ({"schema": schema}, {"index": BucketIndex.of({}, schema=schema).updated([])}):
        [file] = assign_buckets(moments, ["t"], **given).hash_files()  # type: ignore[arg-type]
        assert file.hashes.tolist() == [slow_hash(bytes(8) + (1000).to_bytes(8, "little"))]


def test_partitions_have_the_types_of_the_table() -> None:
    moments = pa.array([1_000_001, 1_000_999], pa.timestamp("us"))
    rows = pa.table({"id": pa.array([1, 1], pa.int32()), "t": moments})
    schema = pa.schema([("t", pa.timestamp("ms"))])
    second = dt.datetime(1970, 1, 1, 0, 0, 1)
    index = BucketIndex.of({(second,): {5: [1465514398]}}, schema=schema)
    done = assign_buckets(rows, ["id"], index, partition_by=["t"])
    assert done.frame["_bucket"].to_pylist() == [5, 5] and done.hash_files() == ()
    [file] = assign_buckets(rows, ["id"], partition_by=["t"], schema=schema).hash_files()
    assert (file.partition, file.hashes.tolist()) == ((second,), [1465514398])


def test_a_bucket_that_is_full_of_others_hashes() -> None:
    # Of two channels the one that may create bucket 0 owns odd hashes, and this has even ones only.
    index = BucketIndex.of({(): {0: [2, 4, 6]}}, BucketOptions(target_rows=3))
    table = pa.table({"id": pa.array([3], pa.int32())})
    assert slow_hash(slow_row([3], [pa.int32()])) % 2 == 1
    assert assign_buckets(table, ["id"], index, parallelism=2).frame["_bucket"].to_pylist() == [2]


def test_no_rows() -> None:
    nothing = rows(10, 1).slice(0, 0)
    for table in (nothing, pa.table({name: pa.array([], kind) for name, kind in KINDS.items()})):
        done = assign_buckets(table, KEY, {(dt.date(2024, 1, 1), "eu"): {0: [1]}}, partition_by=PARTITION)
        assert done.frame.num_rows == 0 and done.frame.schema.field("_bucket").type == pa.int32()
        assert done.hash_files() == ()


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"keys": ["nobody"]}, "'nobody' is not there"),
        ({"keys": ["id", "id"]}, "'id' is given twice"),
        ({"keys": ["day"]}, "at least one column"),
        ({"keys": []}, "at least one column"),
        ({"keys": "id"}, "keys must be a list"),
        ({"keys": ["v", "tags"]}, "'tags' of type list"),
        ({"rows": rows(10, 1).append_column("_bucket", pa.array([0] * 10))}, "_bucket"),
        ({"rows": [1]}, "Spark DataFrame or an Arrow table, got list"),
        ({"index": [1]}, "got list"),
        ({"index": {(): {0: [1]}}}, "2 fields has 0 values"),
        ({"parallelism": 0}, "parallelism"),
        ({"schema": pa.schema([("id", pa.uint8())])}, "'id' of type uint8"),
    ],
    ids=str,
)
def test_what_is_refused(change: dict[str, Any], problem: str) -> None:
    table = rows(10, 1).append_column("tags", pa.array([["a"]] * 10))
    call = {"rows": table, "keys": ["id"], "partition_by": PARTITION} | change
    with pytest.raises((InvalidRequest, WrongType), match=problem):
        assign_buckets(**call)
