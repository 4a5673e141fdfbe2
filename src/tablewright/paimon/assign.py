"""Bucket assignment for the rows of a table with dynamic buckets: of a Spark DataFrame, or of an Arrow table.

1. Every row gets the hash of its key and of its partition, and the *channel* that owns the hash.
2. Rows are shuffled by channel, sorted by partition and hash: a channel is one task. The hashes of the channel that the
   table has already are sent along.
3. There the assigner of the channel (:mod:`tablewright.paimon.format.assigner`) assigns buckets, in the order of the
   hashes.

The order in which rows come to a Spark task is not deterministic, so new keys are assigned by ascending hash. That
makes the result a function of the *set* of keys, the index and the options; a task that runs twice, or a DataFrame that
is computed again, gives the same one. Java assigns in the order of arrival, so it may put a new key into another bucket
than we do; both are valid, and the hash files record what was done.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.checks import listed
from tablewright.engine import frame_engine
from tablewright.engine.detect import is_spark_frame
from tablewright.engine.frames import frame_schema
from tablewright.engine.groups import MESSAGE, ROW, SORTED, Finished, Message, add_values, finish_values
from tablewright.errors import InvalidRequest, WrongType
from tablewright.paimon.format.assigner import (
    LoadedBuckets,
    PartitionAssigner,
    RandomBuckets,
    flattened,
    owner_channels,
)
from tablewright.paimon.format.binary_row import decode_row, encode_row, encode_rows
from tablewright.paimon.format.bucket_index import BucketIndex, BucketOptions, Channels, HashFile
from tablewright.paimon.format.hash_file import distinct_hashes
from tablewright.paimon.format.key_hash import hash_rows
from tablewright.paimon.format.murmur import hash_row

__all__ = ["BUCKET", "BucketAssignment", "assign_buckets"]

BUCKET = "_bucket"
_HASHES_PER_MESSAGE = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class BucketAssignment:
    """Rows with their buckets, and the hash files that have to be committed with them.

    ``frame`` is what was given, a DataFrame or a table, with the column ``_bucket``. A DataFrame is computed when
    its rows are read, and :meth:`hash_files` reads its keys once more: if it takes long, or is not the same
    each time it is computed, ``cache()`` what you give.
    """

    frame: Any
    _finish: Callable[[], list[Finished]] = field(repr=False)
    _index: BucketIndex = field(repr=False)
    _partition_types: tuple[pa.DataType, ...] = field(repr=False)

    def hash_files(self) -> tuple[HashFile, ...]:
        """The new files: for every bucket that got new keys, its whole set. Nothing is written."""
        added: dict[tuple[bytes, int], list[npt.NDArray[np.int32]]] = {}
        for _, row, buckets in self._finish():
            for bucket, hashes in buckets.items():
                added.setdefault((row, bucket), []).append(hashes)
        known = _by_row(self._index, self._partition_types)
        files = []
        for row, bucket in sorted(added):
            partition = known[row] if row in known else decode_row(row, self._partition_types)
            before = self._index.partitions.get(partition, {}).get(bucket, np.zeros(0, np.int32))
            hashes = distinct_hashes(np.concatenate([before, *added[row, bucket]]))
            files.append(HashFile(partition, bucket, hashes))
        return tuple(files)


def assign_buckets(
    rows: Any,
    keys: Sequence[str],
    index: BucketIndex | Mapping[tuple[Any, ...], Mapping[int, Iterable[int]]] | None = None,
    *,
    partition_by: Sequence[str] = (),
    schema: pa.Schema | None = None,
    parallelism: int | None = None,
    seed: int = 0,
) -> BucketAssignment:
    """The rows with the column ``_bucket``.

    ``rows`` is a Spark DataFrame or an Arrow table; ``keys`` its primary key, where partition fields may be left out;
    ``index`` what a table's ``buckets()`` gives, with the table's options, or plain hashes by partition and bucket.
    ``schema`` gives the types that key and partition columns have in the table, if the index does not know them: a
    ``TIMESTAMP(3)`` is microseconds in Spark, and an ``INT`` is no ``BIGINT``.

    There are as many assigners as the option ``dynamic-bucket.assigner-parallelism`` says, else ``parallelism``, else
    the session's shuffle partitions on Spark and one for an Arrow table. The number is part of the answer, so say it
    where two runs are compared. ``seed`` decides where keys go when ``max-buckets`` are full.

    >>> table = pa.table({"id": pa.array([1, 2, 3], pa.int32()), "v": ["a", "b", "c"]})
    >>> options = BucketOptions(target_rows=2)
    >>> given = assign_buckets(table, ["id"], BucketIndex.of({(): {0: [1465514398]}}, options))
    >>> given.frame["_bucket"].to_pylist()
    [0, 1, 0]
    >>> [(file.bucket, file.hashes.tolist()) for file in given.hash_files()]
    [(0, [-771300025, 1465514398]), (1, [1340390384])]
    """
    is_spark = is_spark_frame(rows)
    if not is_spark and not isinstance(rows, pa.Table):
        raise WrongType(f"Rows are a Spark DataFrame or an Arrow table, got {type(rows).__name__}.")
    own = frame_schema(rows) if is_spark else rows.schema
    known = _as_index(index)
    plan = _plan(own, keys, partition_by, known.schema if schema is None else schema)
    channels = known.options.channels(_default(rows, is_spark) if parallelism is None else parallelism)
    messages = _messages(known, plan.partition_types, channels)
    place = _Place(plan, channels)
    open_group = _OpenBuckets(known.options, channels, seed)
    run = _on_spark if is_spark else _on_arrow
    frame, finish = run(rows, plan.columns, place, open_group, channels.channels, messages)
    return BucketAssignment(frame, finish, known, plan.partition_types)


# ---------------------------------------------------------------------------------------------------------------- plan
@dataclass(frozen=True, slots=True)
class _KeyPlan:
    """The columns that decide, keys first, and their types in the table."""

    keys: tuple[str, ...]
    partition_by: tuple[str, ...]
    types: tuple[pa.DataType, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.keys + self.partition_by

    @property
    def partition_types(self) -> tuple[pa.DataType, ...]:
        return self.types[len(self.keys) :]


def _plan(own: pa.Schema, keys: Sequence[str], partition_by: Sequence[str], schema: pa.Schema | None) -> _KeyPlan:
    partitions = tuple(listed(partition_by, "partition_by"))
    trimmed = tuple(name for name in listed(keys, "keys") if name not in partitions)
    columns = trimmed + partitions
    if not trimmed:
        raise InvalidRequest("A key needs at least one column that is no partition field.")
    for name in columns:
        if own.get_field_index(name) < 0 or columns.count(name) > 1:
            there = "is given twice" if columns.count(name) > 1 else f"is not there, among {', '.join(own.names)}"
            raise InvalidRequest(f"The key column {name!r} {there}.")
    if BUCKET in own.names:
        raise InvalidRequest(f"The rows have a column {BUCKET!r} already: leave it out.")
    wanted = {} if schema is None else {field.name: field.type for field in schema}
    types = tuple(wanted.get(name, own.field(name).type) for name in columns)
    nothing = pa.RecordBatch.from_arrays([pa.nulls(0, own.field(name).type) for name in columns], list(columns))
    encode_rows(nothing, types)  # refuses types that can't be keys before anything runs
    return _KeyPlan(trimmed, partitions, types)


def _as_index(index: Any) -> BucketIndex:
    if index is None:
        return BucketIndex()
    if isinstance(index, BucketIndex):
        return index
    if isinstance(index, Mapping):
        return BucketIndex.of(index)
    raise WrongType(f"An index is a BucketIndex or a mapping from partitions to buckets, got {type(index).__name__}.")


def _by_row(index: BucketIndex, types: Sequence[pa.DataType]) -> dict[bytes, tuple[Any, ...]]:
    """The partitions of an index by their rows, as the place of a row names them."""
    return {encode_row(partition, types): partition for partition in index.partitions}


def _messages(index: BucketIndex, types: Sequence[pa.DataType], channels: Channels) -> list[Message]:
    """What each channel has to know of each partition: where its hashes are, and how full its buckets."""
    messages = []
    for row, partition in _by_row(index, types).items():
        buckets = index.partitions[partition]
        hashes, places = flattened(buckets)
        owners = owner_channels(hash_row(row), hashes, channels)
        order = np.argsort(owners, kind="stable")
        edges = np.searchsorted(owners[order], np.arange(channels.channels + 1))
        for channel in range(channels.channels):
            counts = LoadedBuckets.counted(buckets, channel, channels)
            begin, end = int(edges[channel]), int(edges[channel + 1])
            for at in range(begin, max(end, begin + 1) if counts else end, _HASHES_PER_MESSAGE):
                some = order[at : min(end, at + _HASHES_PER_MESSAGE)]
                content = pickle.dumps((hashes[some], places[some].astype(np.int16), counts))
                messages.append(Message(channel, row, content))
    return messages


# --------------------------------------------------------------------------------------------------------- in a worker
@dataclass(frozen=True, slots=True)
class _Place:
    """The destination of rows: the channel, the row of the partition, the hash of the key."""

    plan: _KeyPlan
    channels: Channels

    def __call__(self, columns: Sequence[pa.Array]) -> pa.StructArray:
        count, plan = len(self.plan.keys), self.plan
        keys = pa.RecordBatch.from_arrays(list(columns[:count]), list(plan.keys))
        hashes = hash_rows(encode_rows(keys, plan.types[:count]))
        if plan.partition_by:
            values = pa.RecordBatch.from_arrays(list(columns[count:]), list(plan.partition_by))
            encoded = encode_rows(values, plan.partition_types)
            partitions = encoded.to_arrow().cast(pa.binary())
            owners = owner_channels(hash_rows(encoded), hashes, self.channels)
        else:
            nothing = encode_row((), ())
            partitions = pa.repeat(pa.scalar(nothing, pa.binary()), len(hashes))
            owners = owner_channels(hash_row(nothing), hashes, self.channels)
        return pa.StructArray.from_arrays(
            [pa.array(owners, pa.int32()), partitions, pa.array(hashes, pa.int32())], ["partition", "group", "position"]
        )


@dataclass(frozen=True, slots=True)
class _OpenBuckets:
    """Opens the buckets of a partition for a channel."""

    options: BucketOptions
    channels: Channels
    seed: int

    def __call__(self, channel: int, partition: bytes, messages: list[bytes]) -> _Buckets:
        parts = [pickle.loads(message) for message in messages]
        loaded = None
        if parts:
            hashes = np.concatenate([hashes for hashes, _, _ in parts])
            places = np.concatenate([places for _, places, _ in parts]).astype(np.int32)
            loaded = LoadedBuckets(hashes, places, parts[0][2])
        pick = RandomBuckets(self.seed)
        return _Buckets(PartitionAssigner(self.options, channel, self.channels, loaded, pick))


class _Buckets:
    """The work of a group: hashes become buckets."""

    def __init__(self, assigner: PartitionAssigner) -> None:
        self._assigner = assigner

    def add(self, positions: pa.Array) -> pa.Array:
        return pa.array(self._assigner.assign(positions.to_numpy()), pa.int32())

    def finish(self) -> dict[int, npt.NDArray[np.int32]]:
        return self._assigner.added()


# -------------------------------------------------------------------------------------------------------------- engines
def _default(rows: Any, is_spark: bool) -> int:
    return frame_engine(frame=rows).shuffle_partitions if is_spark else 1


def _on_spark(
    frame: Any,
    columns: Sequence[str],
    place: _Place,
    open_group: _OpenBuckets,
    partitions: int,
    messages: list[Message],
) -> tuple[Any, Callable[[], list[Finished]]]:
    engine = frame_engine(frame=frame)

    def finish() -> list[Finished]:
        return engine.finish_groups(
            frame, columns, place, open_group, partitions=partitions, messages=messages, describe="Assigning buckets"
        )

    placed = engine.add_group_column(
        frame, columns, place, open_group, BUCKET, pa.int32(), partitions=partitions, messages=messages
    )
    return placed, finish


def _on_arrow(
    table: pa.Table, columns: Sequence[str], place: _Place, open_group: _OpenBuckets, _: int, messages: list[Message]
) -> tuple[Any, Callable[[], list[Finished]]]:
    placed = [place(batch.columns) for batch in table.select(list(columns)).to_batches()]
    batches = _in_order(placed, messages)
    valued = pa.Table.from_batches(add_values(open_group, iter(batches), BUCKET, first=len(_SENT) - 1), _VALUED)
    order = np.argsort(valued["row"].to_numpy())
    frame = table.append_column(pa.field(BUCKET, pa.int32(), nullable=False), valued[BUCKET].take(pa.array(order)))
    return frame, lambda: finish_values(open_group, iter(batches))


_SENT = pa.schema(
    [
        ("partition", pa.int32()),
        ("group", pa.binary()),
        ("side", pa.int32()),
        ("position", pa.int32()),
        ("message", pa.binary()),
        ("row", pa.int64()),
    ]
)
_VALUED = pa.schema([("row", pa.int64()), (BUCKET, pa.int32())])


def _in_order(placed: Sequence[pa.StructArray], messages: Sequence[Message]) -> list[pa.RecordBatch]:
    """Messages and the places of rows, sorted, as Spark would send them."""
    sent = [
        pa.Table.from_pydict(
            {
                "partition": [message.partition for message in messages],
                "group": [message.group for message in messages],
                "side": [MESSAGE] * len(messages),
                "position": range(len(messages)),
                "message": [message.content for message in messages],
                "row": [None] * len(messages),
            },
            _SENT,
        )
    ]
    begin = 0
    for places in placed:
        count = len(places)
        partitions, groups, positions = places.flatten()
        sides, rows = pa.array(np.full(count, ROW, np.int32)), pa.array(np.arange(begin, begin + count))
        arrays = [partitions, groups, sides, positions, pa.nulls(count, pa.binary()), rows]
        sent.append(pa.Table.from_arrays(arrays, schema=_SENT))
        begin += count
    return pa.concat_tables(sent).sort_by([(name, "ascending") for name in SORTED]).to_batches()
