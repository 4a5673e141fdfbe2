"""The hash of a key: Murmur over its BinaryRow, for whole Arrow tables at once.

Rows are hashed in pieces that fit the cache of a core, so memory does not grow with the table. Partitions are hashed
the same way. A table with a fixed number of buckets finds a row's bucket from the hash alone: :func:`fixed_buckets`.

Format: ``docs/format/paimon.md#key-hash``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.checks import whole_number
from tablewright.errors import InvalidRequest
from tablewright.paimon.format.binary_row import BinaryRows, encode_rows
from tablewright.paimon.format.murmur import RowHashes

__all__ = ["fixed_buckets", "hash_keys", "hash_rows", "java_remainder"]

Columns = Any  # a table, a batch, or arrays: by name or one after the other
Hashes = npt.NDArray[np.int32]

_ROWS_PER_PIECE = 1 << 14
_BYTES_PER_PIECE = 1 << 20
_BUCKETS_MAX = 2**31 - 1


def hash_keys(columns: Columns, types: Sequence[pa.DataType] | None = None) -> Hashes:
    """The hash of every row, all columns being the key, in their order.

    ``columns`` is an Arrow table or batch, a mapping from names to Arrow arrays, or a list of arrays, chunked or not.
    ``types`` are the types of these columns in the table, where they may differ (see
    :func:`~tablewright.paimon.format.binary_row.encode_rows`).

    >>> hash_keys({"id": pa.array([1, 42, -1], pa.int32())}).tolist()
    [1465514398, 907821237, 1133687267]
    >>> hash_keys([pa.array([1]), pa.array([["a"]])])
    Traceback (most recent call last):
    tablewright.errors.InvalidRequest: Column 'column 1' of type list<item: string> can't be part of a Paimon key: ...
    """
    table = _as_table(columns)
    hashes = np.empty(table.num_rows, np.int32)
    begin = 0
    for piece in _pieces(table):
        hashes[begin : begin + piece.num_rows] = hash_rows(encode_rows(piece, types))
        begin += piece.num_rows
    if not begin:
        encode_rows(pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in table.schema], table.column_names), types)
    return hashes


def hash_rows(rows: BinaryRows) -> Hashes:
    """The hashes of encoded rows."""
    hashes = RowHashes(rows.count)
    leading = True
    for word in (*rows.nulls, *rows.slots):
        if word is not None:
            hashes.mix(word)
            leading = False
        elif leading:
            hashes.mix_same(0)
        else:
            hashes.mix(np.zeros(rows.count, np.uint64))
    for tail in rows.tails:
        for some, word in tail.walk():
            hashes.mix(word, some)
    return hashes.finish(rows.lengths)


def fixed_buckets(hashes: Hashes, num_buckets: int) -> Hashes:
    """The buckets of rows in a table with a fixed number of them (``bucket = n``).

    >>> fixed_buckets(np.array([7, -7, 8], np.int32), 4).tolist()
    [3, 3, 0]
    """
    buckets = whole_number(num_buckets, "num_buckets", minimum=1, maximum=_BUCKETS_MAX)
    return java_remainder(hashes, buckets)


def java_remainder(values: Hashes, divisor: int) -> Hashes:
    """``abs(value % divisor)`` as in Java: the remainder truncates towards zero.

    >>> java_remainder(np.array([-7, -(2**31)], np.int32), 5).tolist()
    [2, 3]
    """
    return (np.abs(values.astype(np.int64)) % divisor).astype(np.int32)


def _as_table(columns: Columns) -> pa.Table:
    if isinstance(columns, pa.Table):
        return columns
    if isinstance(columns, pa.RecordBatch):
        return pa.Table.from_batches([columns])
    if isinstance(columns, Mapping):
        names, arrays = list(columns), list(columns.values())
    else:
        arrays = list(columns)
        names = [f"column {number}" for number in range(len(arrays))]
    if not arrays:
        raise InvalidRequest("A key has at least one column.")
    try:
        return pa.Table.from_arrays(arrays, names)
    except (pa.ArrowInvalid, TypeError) as error:
        raise InvalidRequest(f"The columns of a key are Arrow arrays of one length: {error}.") from error


def _pieces(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """The rows of a table in batches that fit a core's cache."""
    if table.num_rows:
        per_row = max(1, table.nbytes // table.num_rows)
        yield from table.to_batches(max(1, min(_ROWS_PER_PIECE, _BYTES_PER_PIECE // per_row)))
