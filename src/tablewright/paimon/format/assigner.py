"""Which bucket a key goes to, in a table with dynamic buckets. This is Java's rule.

Several assigners (*channels*) may share the work. Every hash of a partition has one that owns it, and a bucket may be
*created* by channels of its residue only, so they need no coordination:

- owner of a hash = (abs(hash of the partition % channels) + abs(hash % assigners)) % channels;
- channel *c* may create bucket *b* if *b* and *c* have the same remainder by ``assigners``.

Remainders are Java's. For each hash, in the order of the rows:

1. A hash that the partition has already stays in its bucket, whichever channel owns that.
2. A new one goes to the first of the channel's buckets with fewer than ``target_rows`` hashes. Those that the table
   had come first, by number.
3. If all are full, the channel creates the smallest bucket that it may and that is not there; a partition has
   ``max_buckets`` at most.
4. If it may create none, one of its buckets is picked at random, and from then on all grow beyond the target.

Whole arrays are assigned at once: known hashes are looked up, and new ones, in the order of their first row, are cut
into runs by the free capacity of buckets. Rule 4 picks by a hash of the hash and a seed. So a task that runs again,
even with its rows in another order, picks the same buckets.

Differences from others: Java goes through the buckets it loaded in the order of a ``HashMap``, which is by number as
long as one assigner owns all. pypaimon takes the highest bucket of *any* partition for the limit of rule 3; and it
gives bucket 32767, which Java only does with ``max-buckets`` 32768.

Format: ``docs/format/paimon.md#bucket-assignment``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablewright.checks import whole_number
from tablewright.errors import InvalidRequest
from tablewright.paimon.format.bucket_index import BUCKETS_MAX, BucketOptions, Channels
from tablewright.paimon.format.hash_file import as_hashes, distinct_hashes
from tablewright.paimon.format.key_hash import java_remainder
from tablewright.paimon.format.murmur import RowHashes, hash_row

__all__ = ["BucketAssigner", "LoadedBuckets", "PartitionAssigner", "RandomBuckets", "owner_channels"]

Hashes = npt.NDArray[np.int32]
Buckets = npt.NDArray[np.int32]

_NEW = -1


def owner_channels(partition_hashes: int | Hashes, hashes: Hashes, channels: Channels) -> npt.NDArray[np.int32]:
    """The channel that owns each hash of a partition.

    >>> owner_channels(-1670924195, np.array([-13, -6, 1], np.int32), Channels(4, 2)).tolist()
    [0, 3, 0]
    """
    starts = java_remainder(np.asarray(partition_hashes, np.int64), channels.channels)
    return (starts + java_remainder(hashes, channels.assigners)) % channels.channels


@dataclass(frozen=True, slots=True)
class RandomBuckets:
    """Picks one of ``count`` buckets for each hash: evenly, but the same for the same hash and seed."""

    seed: int = 0

    def __call__(self, hashes: Hashes, count: int) -> npt.NDArray[np.integer]:
        """Positions from 0 up to ``count``."""
        rows = RowHashes(len(hashes))
        rows.mix_same(self.seed & 0xFFFFFFFFFFFFFFFF)
        rows.mix(hashes.astype(np.uint64))
        return rows.finish(16).view(np.uint32) % np.uint32(count)


Pick = Callable[[Hashes, int], npt.NDArray[np.integer]]


@dataclass(frozen=True, slots=True, eq=False)
class LoadedBuckets:
    """What a channel has to know of a partition that the table has already.

    ``hashes`` (ascending) and ``buckets``: where each hash that it owns is. ``counts``: the size of every bucket that
    it may create, all hashes counted.
    """

    hashes: Hashes
    buckets: Buckets
    counts: Mapping[int, int]

    @classmethod
    def of(cls, partition_hash: int, buckets: Mapping[int, Hashes], channel: int, channels: Channels) -> LoadedBuckets:
        """Out of all hashes of a partition, by bucket. Of a hash in two buckets the later counts."""
        hashes, places = flattened(buckets)
        owned = owner_channels(partition_hash, hashes, channels) == channel
        return cls(hashes[owned], places[owned], cls.counted(buckets, channel, channels))

    @staticmethod
    def counted(buckets: Mapping[int, Hashes], channel: int, channels: Channels) -> dict[int, int]:
        """The sizes of the buckets that a channel may create; one without hashes is not there yet."""
        residue = channel % channels.assigners
        return {
            bucket: len(hashes)
            for bucket, hashes in buckets.items()
            if bucket % channels.assigners == residue and len(hashes)
        }


def flattened(buckets: Mapping[int, Hashes]) -> tuple[Hashes, Buckets]:
    """All hashes of a partition, ascending and each once, and their buckets."""
    hashes = np.concatenate([np.zeros(0, np.int32), *buckets.values()])
    places = np.repeat(np.array(list(buckets), np.int32), [len(each) for each in buckets.values()])
    order = np.argsort(hashes, kind="stable")
    hashes, places = hashes[order], places[order]
    is_last = np.append(hashes[1:] != hashes[:-1], True)[: len(hashes)]
    return hashes[is_last], places[is_last]


class PartitionAssigner:
    """The assigner of one channel at work in one partition. Precondition: the channel owns the hashes it is given.

    >>> assigner = PartitionAssigner(BucketOptions(target_rows=2))
    >>> assigner.assign(np.array([5, 6, 5, 7], np.int32)).tolist()
    [0, 0, 0, 1]
    >>> {bucket: hashes.tolist() for bucket, hashes in assigner.added().items()}
    {0: [5, 6], 1: [7]}
    """

    def __init__(
        self,
        options: BucketOptions,
        channel: int = 0,
        channels: Channels | None = None,
        loaded: LoadedBuckets | None = None,
        pick: Pick | None = None,
    ) -> None:
        self._target, self._max = options.target_rows, options.max_buckets
        self._pick = pick or RandomBuckets()
        self._step = (channels or Channels()).assigners
        self._next = channel % self._step
        self._known = _Places()
        counts: Mapping[int, int] = {}
        if loaded is not None:
            self._known.add(loaded.hashes, loaded.buckets)
            counts = loaded.counts
        self._own = sorted(counts)
        self._open = [(bucket, counts[bucket]) for bucket in self._own if counts[bucket] < self._target]
        self._taken = frozenset(self._own)
        self._added: list[tuple[Hashes, Buckets]] = []

    def assign(self, hashes: Hashes) -> Buckets:
        """The bucket of every hash, as if they came one by one."""
        distinct, first, positions = np.unique(hashes, return_index=True, return_inverse=True)
        buckets = self._known.find(distinct)
        new = np.flatnonzero(buckets == _NEW)
        if len(new):
            in_order = new[np.argsort(first[new])]
            buckets[in_order] = self._placed(distinct[in_order])
            self._known.add(distinct[new], buckets[new])
            self._added.append((distinct[new], buckets[new]))
        return buckets[positions]

    def added(self) -> dict[int, Hashes]:
        """The hashes that came new, ascending, by bucket."""
        hashes = np.concatenate([np.zeros(0, np.int32), *(hashes for hashes, _ in self._added)])
        places = np.concatenate([np.zeros(0, np.int32), *(places for _, places in self._added)])
        order = np.lexsort((hashes, places))
        hashes, places = hashes[order], places[order]
        changed, begins = np.unique(places, return_index=True)
        return dict(zip(changed.tolist(), np.split(hashes, begins[1:]), strict=True)) if len(changed) else {}

    def _placed(self, hashes: Hashes) -> Buckets:
        """Buckets for new hashes in this order: rules 2, 3 and 4."""
        runs: list[Buckets] = []
        left = len(hashes)
        while left:
            if not self._open and not self._create():
                runs.append(self._at_random(hashes[len(hashes) - left :]))
                break
            bucket, size = self._open[0]
            taken = min(left, self._target - size)
            runs.append(np.full(taken, bucket, np.int32))
            left -= taken
            if size + taken < self._target:
                self._open[0] = bucket, size + taken
            else:
                del self._open[0]
        return np.concatenate(runs)

    def _create(self) -> bool:
        """Open the smallest bucket that this channel may create; whether there was one."""
        limit = BUCKETS_MAX - 1 if self._max == -1 else self._max
        while self._next < limit and self._next in self._taken:
            self._next += self._step
        if self._next < limit:
            self._open.append((self._next, 0))
            self._own.append(self._next)
            self._next += self._step
            return True
        if self._max == -1:
            raise InvalidRequest(
                f"All buckets up to {limit - 1} of a partition are full, and there can be no more: raise "
                f"dynamic-bucket.target-row-num ({self._target})."
            )
        if not self._own:
            raise InvalidRequest(
                f"This assigner may create no bucket below dynamic-bucket.max-buckets ({self._max}): use fewer "
                "assigners or allow more buckets."
            )
        return False

    def _at_random(self, hashes: Hashes) -> Buckets:
        return np.array(self._own, np.int32)[self._pick(hashes, len(self._own))]


class BucketAssigner:
    """One channel's assigner for all partitions, which are named by their BinaryRow bytes (without arity).

    ``existing`` holds the hashes of the table by partition and bucket; what a partition has is loaded when its first
    row comes.

    >>> assigner = BucketAssigner(BucketOptions(target_rows=3), existing={bytes(8): {0: [10, 20, 30], 1: [11]}})
    >>> assigner.assign(bytes(8), [20, 11, 40, 41, 42, 43, 44]).tolist()
    [0, 1, 1, 1, 2, 2, 2]
    """

    def __init__(
        self,
        options: BucketOptions,
        channel: int = 0,
        channels: Channels | None = None,
        *,
        existing: Mapping[bytes, Mapping[int, Sequence[int] | Hashes]] | None = None,
        pick: Pick | None = None,
    ) -> None:
        self._options, self._pick, self._existing = options, pick, existing or {}
        self._channels = channels or Channels()
        self._channel = whole_number(channel, "channel", maximum=self._channels.channels - 1)
        self._partitions: dict[bytes, tuple[int, PartitionAssigner]] = {}

    def assign(self, partition: bytes, hashes: Sequence[int] | Hashes) -> Buckets:
        """The buckets of these keys of a partition. All have to be this channel's own."""
        values = np.asarray(hashes, np.int32)
        partition_hash, assigner = self._assigner(partition)
        owners = owner_channels(partition_hash, values, self._channels)
        if np.any(owners != self._channel):
            foreign = int(np.flatnonzero(owners != self._channel)[0])
            raise InvalidRequest(
                f"The hash {values[foreign]} belongs to channel {owners[foreign]}, and this is {self._channel}."
            )
        return assigner.assign(values)

    def added(self) -> dict[bytes, dict[int, Hashes]]:
        """The hashes that came new, by partition and bucket."""
        found = {partition: assigner.added() for partition, (_, assigner) in self._partitions.items()}
        return {partition: buckets for partition, buckets in found.items() if buckets}

    def changed(self) -> dict[bytes, dict[int, Hashes]]:
        """The whole sets of the buckets that changed, as their new hash files hold them."""
        return {
            partition: {
                bucket: distinct_hashes(np.append(hashes, as_hashes(self._existing.get(partition, {}).get(bucket, ()))))
                for bucket, hashes in buckets.items()
            }
            for partition, buckets in self.added().items()
        }

    def _assigner(self, partition: bytes) -> tuple[int, PartitionAssigner]:
        if partition not in self._partitions:
            partition_hash = hash_row(partition)
            existing = {bucket: as_hashes(hashes) for bucket, hashes in self._existing.get(partition, {}).items()}
            loaded = LoadedBuckets.of(partition_hash, existing, self._channel, self._channels)
            assigner = PartitionAssigner(self._options, self._channel, self._channels, loaded, self._pick)
            self._partitions[partition] = partition_hash, assigner
        return self._partitions[partition]


class _Places:
    """An append-only map from hash to bucket: a log-structured merge of sorted runs, each more than twice the next."""

    def __init__(self) -> None:
        self._runs: list[tuple[Hashes, Buckets]] = []

    def add(self, hashes: Hashes, buckets: Buckets) -> None:
        """Add hashes, ascending, that are not there yet."""
        run = hashes, buckets
        while self._runs and len(self._runs[-1][0]) <= 2 * len(run[0]):
            run = _merged(self._runs.pop(), run)
        self._runs.append(run)

    def find(self, hashes: Hashes) -> Buckets:
        """The bucket of every hash, -1 where there is none."""
        found = np.full(len(hashes), _NEW, np.int32)
        for known, buckets in self._runs:
            if len(known):
                places = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
                hits = known[places] == hashes
                found[hits] = buckets[places[hits]]
        return found


def _merged(left: tuple[Hashes, Buckets], right: tuple[Hashes, Buckets]) -> tuple[Hashes, Buckets]:
    hashes = np.concatenate([left[0], right[0]])
    order = np.argsort(hashes, kind="stable")
    return hashes[order], np.concatenate([left[1], right[1]])[order]
