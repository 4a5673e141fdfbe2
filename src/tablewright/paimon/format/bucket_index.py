"""The key index of a table with dynamic buckets: per partition and bucket the set of key hashes, and the options.

This is the content of all hash files of a snapshot as one value. Partitions are tuples of Python values in the order of
the partition fields, ``()`` where a table has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.checks import whole_number
from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.paimon.format.hash_file import as_hashes, decode_hashes, encode_hashes

__all__ = ["BUCKETS_MAX", "BucketIndex", "BucketOptions", "Channels", "HashFile"]

Hashes = npt.NDArray[np.int32]
Partition = tuple[Any, ...]

BUCKETS_MAX = 2**15
TARGET_ROWS = 2_000_000
_PREFIX = "dynamic-bucket."
_NAMES = {
    "target-row-num": "target_rows",
    "max-buckets": "max_buckets",
    "initial-buckets": "initial_buckets",
    "assigner-parallelism": "assigner_parallelism",
}


@dataclass(frozen=True, slots=True)
class Channels:
    """How many assigners work side by side, and how many of them share the buckets of one partition."""

    channels: int = 1
    assigners: int = 1

    def __post_init__(self) -> None:
        whole_number(self.channels, "channels", minimum=1)
        whole_number(self.assigners, "assigners", minimum=1, maximum=self.channels)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketOptions:
    """The options of a table that say how buckets fill.

    ``target_rows`` are the keys of a full bucket, ``max_buckets`` those of a partition (-1: as many as there can be),
    ``initial_buckets`` how many of a partition's buckets fill side by side, ``assigner_parallelism`` how many
    assigners there are.

    >>> BucketOptions.of_table({"bucket": "-1", "dynamic-bucket.target-row-num": "3"}).target_rows
    3
    """

    target_rows: int = TARGET_ROWS
    max_buckets: int = -1
    initial_buckets: int | None = None
    assigner_parallelism: int | None = None

    def __post_init__(self) -> None:
        whole_number(self.target_rows, _option("target_rows"), minimum=1)
        if self.max_buckets != -1:
            whole_number(self.max_buckets, _option("max_buckets"), minimum=1, maximum=BUCKETS_MAX)
        for name in ("initial_buckets", "assigner_parallelism"):
            if getattr(self, name) is not None:
                whole_number(getattr(self, name), _option(name), minimum=1)

    @classmethod
    def of_table(cls, options: Mapping[str, str]) -> BucketOptions:
        """The options out of a table's schema, where all are texts."""
        given: dict[str, int] = {}
        for name, field_name in _NAMES.items():
            text = options.get(_PREFIX + name)
            if text is not None:
                try:
                    given[field_name] = int(text)
                except (TypeError, ValueError):
                    raise InvalidRequest(f"The option {_PREFIX + name} must be a whole number, got {text!r}.") from None
        return cls(**given)

    def channels(self, parallelism: int = 1) -> Channels:
        """How many assigners work, ``parallelism`` where the table does not say.

        Never more than ``max_buckets``, as Paimon on Spark has it: each then has a bucket of its own.

        >>> BucketOptions(max_buckets=4, initial_buckets=2).channels(8)
        Channels(channels=4, assigners=2)
        """
        channels = self.assigner_parallelism or whole_number(parallelism, "parallelism", minimum=1)
        if self.max_buckets != -1:
            channels = min(channels, self.max_buckets)
        return Channels(channels, min(self.initial_buckets or channels, channels))


def _option(name: str) -> str:
    return _PREFIX + next(key for key, value in _NAMES.items() if value == name)


@dataclass(frozen=True, slots=True, eq=False)
class HashFile:
    """A hash file to write: the whole set of a bucket."""

    partition: Partition
    bucket: int
    hashes: Hashes

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return encode_hashes(self.hashes)


@dataclass(frozen=True, slots=True, eq=False)
class BucketIndex:
    """The hashes of every bucket, ascending, by partition and bucket.

    ``schema`` has the types of the table's columns, if they are known: rows that come from elsewhere are hashed as if
    they had these. Two indices are equal if their hashes and options are.

    >>> index = BucketIndex.of({(): {0: [10, 20, 30], 1: [11]}}, BucketOptions(target_rows=3))
    >>> index.row_counts()
    {(): {0: 3, 1: 1}}
    """

    partitions: Mapping[Partition, Mapping[int, Hashes]] = field(default_factory=dict)
    options: BucketOptions = field(default_factory=BucketOptions)
    schema: pa.Schema | None = None

    @classmethod
    def of(
        cls,
        partitions: Mapping[Partition, Mapping[int, Iterable[int] | npt.NDArray[np.integer]]],
        options: BucketOptions | None = None,
        schema: pa.Schema | None = None,
    ) -> BucketIndex:
        """An index of hashes in any form and order."""
        checked: dict[Partition, dict[int, Hashes]] = {}
        for partition, buckets in partitions.items():
            if not isinstance(partition, tuple):
                raise InvalidRequest(f"A partition is a tuple of its values, got {partition!r}.")
            checked[partition] = {_bucket(bucket): _frozen(as_hashes(buckets[bucket])) for bucket in buckets}
        return cls(checked, options or BucketOptions(), schema)

    @classmethod
    def from_files(
        cls,
        files: Iterable[tuple[Partition, int, bytes, str]],
        options: BucketOptions | None = None,
        schema: pa.Schema | None = None,
    ) -> BucketIndex:
        """The index in hash files, each given as partition, bucket, bytes and path.

        >>> BucketIndex.from_files([((2024,), 0, bytes.fromhex("0000000affffffff"), "index-1")]).to_sets()
        {(2024,): {0: {10, -1}}}
        """
        partitions: dict[Partition, dict[int, Hashes]] = {}
        for partition, bucket, data, path in files:
            buckets = partitions.setdefault(tuple(partition), {})
            if bucket in buckets or not 0 <= bucket < BUCKETS_MAX:
                problem = "has several hash files" if bucket in buckets else "can't be"
                raise CorruptTable(path, (f"bucket {bucket} of partition {tuple(partition)} {problem}",))
            buckets[bucket] = _frozen(decode_hashes(data, path))
        return cls(partitions, options or BucketOptions(), schema)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BucketIndex):
            return NotImplemented
        return self.options == other.options and self.to_sets() == other.to_sets()

    __hash__ = None  # type: ignore[assignment]

    def to_sets(self) -> dict[Partition, dict[int, set[int]]]:
        """All hashes as plain sets, for a human or a test."""
        return {
            partition: {bucket: set(hashes.tolist()) for bucket, hashes in buckets.items()}
            for partition, buckets in self.partitions.items()
        }

    def row_counts(self) -> dict[Partition, dict[int, int]]:
        """How many hashes each bucket has."""
        return {
            partition: {bucket: len(hashes) for bucket, hashes in buckets.items()}
            for partition, buckets in self.partitions.items()
        }

    def updated(self, files: Iterable[HashFile]) -> BucketIndex:
        """The index after some files were written in place of those of their buckets."""
        partitions = {partition: dict(buckets) for partition, buckets in self.partitions.items()}
        for file in files:
            partitions.setdefault(file.partition, {})[file.bucket] = file.hashes
        return BucketIndex(partitions, self.options, self.schema)


def _bucket(bucket: Any) -> int:
    return whole_number(bucket, "bucket", maximum=BUCKETS_MAX - 1)


def _frozen(hashes: Hashes) -> Hashes:
    hashes.flags.writeable = False
    return hashes
