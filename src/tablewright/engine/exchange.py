"""Rows of many tasks that meet by key: which partition a row goes to, and the parts in which rows travel.

1. A task *produces* batches of rows, each with a *rank* (:data:`Ranked`).
2. Batches of one rank are collected to blocks. The hash of a row's key names its partition, and a block is cut into one
   part for each partition (:func:`parts_of`). All of it works on whole columns: 20 ns for a row of two numbers.
3. A partition gets its parts by ascending rank, and within a rank in no order.

So a consumer that has to hold one side of a join gives it the lower rank, and sees the other side as a stream. Whoever
moves the parts never looks at a row: on two cores Spark matched 20 million rows of a key and a place in 7 s as parts,
and in 23 s as rows of its own.

Key columns hold 64-bit numbers or bytes, without nulls, and are equal by their bits. The hash is that of pandas, which
is the same in every process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc

__all__ = ["Part", "Ranked", "parts_of", "read_rows"]

_BLOCK_ROWS, _BLOCK_BYTES = 1 << 20, 32 << 20


Ranked: TypeAlias = tuple[int, pa.RecordBatch]
"""A rank, from 0 on, and rows that have it: a partition gets those of lower ranks first."""


class Part(NamedTuple):
    """Rows of one rank that go to one partition."""

    partition: int
    rank: int
    rows: pa.RecordBatch


def parts_of(produced: Iterable[Ranked], keys: Sequence[str], partitions: int) -> Iterator[Part]:
    """The rows in parts, none of them empty. Rows with equal keys are in one partition, and rows of a part in order.

    >>> rows = pa.record_batch({"k": [1, 3, 1, 2], "n": [0, 1, 2, 3]})
    >>> [(part.partition, part.rows["n"].to_pylist()) for part in parts_of([(0, rows)], ["k"], 2)]
    [(0, [0, 1, 2]), (1, [3])]
    """
    for rank, block in _blocks(produced):
        yield from _cut(rank, block, keys, partitions)


def _blocks(produced: Iterable[Ranked]) -> Iterator[Ranked]:
    """Small batches together: the fewer the parts, the less each row costs."""
    waiting: list[pa.RecordBatch] = []
    last, rows, nbytes = 0, 0, 0
    for rank, batch in produced:
        if waiting and (rank != last or rows >= _BLOCK_ROWS or nbytes >= _BLOCK_BYTES):
            yield last, pa.concat_batches(waiting)
            waiting, rows, nbytes = [], 0, 0
        if batch.num_rows:
            waiting.append(batch)
            last, rows, nbytes = rank, rows + batch.num_rows, nbytes + batch.nbytes
    if waiting:
        yield last, pa.concat_batches(waiting)


def _cut(rank: int, block: pa.RecordBatch, keys: Sequence[str], partitions: int) -> Iterator[Part]:
    numbers = _partitions([block.column(name) for name in keys], partitions)
    order = np.argsort(numbers, kind="stable")  # numbers of 16 bits are sorted without a comparison
    rows = block.take(pa.array(order))
    found, begins = np.unique(numbers[order], return_index=True)
    for number, (begin, end) in zip(found.tolist(), pairwise([*begins.tolist(), len(order)]), strict=True):
        yield Part(number, rank, rows.slice(begin, end - begin))


def _partitions(columns: Sequence[pa.Array], partitions: int) -> npt.NDArray[np.unsignedinteger]:
    """The partition of each key: the upper half of its hash, scaled."""
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes *= np.uint64(31)
        hashes += _hashes(column)
    scaled = (hashes >> np.uint64(32)) * np.uint64(partitions) >> np.uint64(32)
    return scaled.astype(np.uint16 if partitions <= 1 << 16 else np.uint32)


def _hashes(column: pa.Array) -> npt.NDArray[np.uint64]:
    import pandas as pd  # 0.3 s, which verbs without an exchange do not have to wait for

    assert not column.null_count, "a key without a value meets no other"
    numbers = pa.types.is_integer(column.type)
    values = column.to_numpy() if numbers else column.to_numpy(zero_copy_only=False)
    hashes: npt.NDArray[np.uint64] = pd.util.hash_array(values, categorize=False)
    return hashes


def read_rows(content: bytes | memoryview, schema: pa.Schema) -> pa.RecordBatch:
    """The rows of a part from ``rows.serialize()``, without a copy."""
    rows: pa.RecordBatch = cast(Any, ipc).read_record_batch(pa.py_buffer(content), schema)
    return rows
