"""The bucket index and the options of dynamic buckets: what is read, refused, and handed on."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.paimon.format.bucket_index import BucketIndex, BucketOptions, Channels, HashFile


def test_options_of_a_table() -> None:
    assert BucketOptions.of_table({"bucket": "-1"}) == BucketOptions(target_rows=2_000_000, max_buckets=-1)
    options = {"target-row-num": "5", "max-buckets": "3", "initial-buckets": "2", "assigner-parallelism": "8"}
    assert BucketOptions.of_table({f"dynamic-bucket.{name}": text for name, text in options.items()}) == BucketOptions(
        target_rows=5, max_buckets=3, initial_buckets=2, assigner_parallelism=8
    )
    for name, text in [("target-row-num", "many"), ("target-row-num", "0"), ("max-buckets", "0"),
                       ("max-buckets", "32769"), ("initial-buckets", "0"), ("assigner-parallelism", "-1")]:  # fmt: skip
        with pytest.raises(InvalidRequest, match=name):
            BucketOptions.of_table({f"dynamic-bucket.{name}": text})


@pytest.mark.parametrize(
    ("options", "given", "expected"),
    [
        ({}, 5, (5, 5)),
        ({"initial_buckets": 2}, 5, (5, 2)),
        ({"initial_buckets": 9}, 5, (5, 5)),
        ({"assigner_parallelism": 3}, 5, (3, 3)),
        ({"max_buckets": 2}, 5, (2, 2)),
        ({"max_buckets": 2, "assigner_parallelism": 9, "initial_buckets": 1}, 5, (2, 1)),
    ],
)
def test_channels(options: dict[str, int], given: int, expected: tuple[int, int]) -> None:
    assert BucketOptions(**options).channels(given) == Channels(*expected)  # type: ignore[arg-type]


def test_an_index_out_of_files() -> None:
    options = BucketOptions(target_rows=9)
    one = (("eu",), 0, bytes.fromhex("0000000affffffff0000000a"), "index-1")
    index = BucketIndex.from_files([one, (("eu",), 2, b"", "index-2"), (("us",), 0, bytes(4), "index-3")], options)
    assert index.to_sets() == {("eu",): {0: {10, -1}, 2: set()}, ("us",): {0: {0}}}
    assert index.row_counts() == {("eu",): {0: 2, 2: 0}, ("us",): {0: 1}}
    assert index == BucketIndex.of({("eu",): {0: [10, -1], 2: []}, ("us",): {0: {0}}}, options)
    assert index != BucketIndex.of(index.partitions) and index != 7
    assert pickle.loads(pickle.dumps(index)) == index
    with pytest.raises(ValueError, match="read-only"):
        index.partitions[("eu",)][0][0] = 1  # type: ignore[index]
    for files, path, problem in (
        ([one, (("eu",), 0, b"", "index-9")], "index-9", "several hash files"),
        ([(("eu",), 32768, b"", "index-8")], "index-8", "can't be"),
        ([(("eu",), 1, b"123", "index-7")], "index-7", "3 bytes"),
    ):
        with pytest.raises(CorruptTable, match=problem) as caught:
            BucketIndex.from_files(files)
        assert caught.value.path == path


def test_new_files_take_the_place_of_old_ones() -> None:
    index = BucketIndex.of({(): {0: [1], 1: [2]}})
    files = [HashFile((), 1, np.array([2, 3], np.int32)), HashFile((7,), 0, np.array([4], np.int32))]
    assert index.updated(files).to_sets() == {(): {0: {1}, 1: {2, 3}}, (7,): {0: {4}}}
    assert index.to_sets() == {(): {0: {1}, 1: {2}}}
    assert files[0].data.hex() == "0000000200000003"


@pytest.mark.parametrize("partitions", [{"eu": {}}, {(): {-1: [1]}}, {(): {32768: [1]}}, {(): {0: [2**31]}}])
def test_what_is_no_index(partitions: dict) -> None:  # type: ignore[type-arg]
    with pytest.raises(InvalidRequest):
        BucketIndex.of(partitions)
