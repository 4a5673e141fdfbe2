"""Hashing the keys of Paimon tables: how many keys a second on one core, beside row by row.

The promises: at least 5 million int64 keys and 1 million strings of 20 bytes a second. Seconds are those of the
processor, all threads counted, so that what else the machine does is not counted, and a second thread would be. The
rival builds each row with ``struct`` and hashes it with ``mmh3``, which is written in C: pypaimon does the same, only
with a hash written in Python.

Also, without a promise: buckets for keys of which half are known, in batches as they come from Spark.
"""

from __future__ import annotations

import datetime
import struct
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import mmh3
import numpy as np
import pyarrow as pa

from tablewright.paimon.format.assigner import LoadedBuckets, PartitionAssigner
from tablewright.paimon.format.bucket_index import BucketOptions, Channels
from tablewright.paimon.format.key_hash import hash_keys

__all__ = ["run"]

ROWS = 2_000_000
RIVAL_ROWS = 100_000
BATCH_ROWS = 10_000
RUNS = 5
_EPOCH = datetime.date(1970, 1, 1).toordinal()
PROMISED = {"int64": 5e6, "string, 20 bytes": 1e6}


def _rate(work: Callable[[], object], rows: int, runs: int = RUNS) -> float:
    """Rows per second of the processor: the median of some runs, after one to warm up."""
    seconds = []
    for _ in range(runs + 1):
        started = time.process_time()
        work()
        seconds.append(time.process_time() - started)
    return rows / median(seconds[1:])


def _keys(rows: int) -> dict[str, tuple[list[pa.Array], Callable[..., bytes]]]:
    """Columns, and the row of one key as a person would write it."""
    chance = np.random.default_rng(1)
    numbers = pa.array(chance.integers(-(2**62), 2**62, rows))
    texts = pa.array(np.char.mod("%020d", chance.integers(0, 2**62, rows)))
    mixed = pa.array(np.char.mod("%d", chance.integers(0, 2**62, rows) >> chance.integers(0, 60, rows)))
    days = pa.array(chance.integers(0, 20_000, rows).astype(np.int32), pa.date32())
    return {
        "int64": ([numbers], lambda number: struct.pack("<qq", 0, number)),
        "string, 20 bytes": ([texts], lambda text: struct.pack("<qii24s", 0, 20, 16, text.encode())),
        "string, 1 to 19 bytes": ([mixed], lambda text: bytes(8) + b"".join(_text(text.encode(), 16))),
        "int64 + date + string": (
            [numbers, days, texts],
            lambda number, day, text: struct.pack(
                "<qqqii24s", 0, number, day.toordinal() - _EPOCH, 20, 32, text.encode()
            ),
        ),
    }


def _text(data: bytes, offset: int) -> tuple[bytes, bytes]:
    if len(data) <= 7:
        return data.ljust(7, b"\0") + bytes([0x80 + len(data)]), b""
    return struct.pack("<ii", len(data), offset), data.ljust(-(-len(data) // 8) * 8, b"\0")


def _row_by_row(columns: list[list[Any]], row_of: Callable[..., bytes]) -> list[int]:
    return [mmh3.hash(row_of(*values), 42) for values in zip(*columns, strict=True)]


def _hashing(rows: int) -> bool:
    kept = True
    for name, (columns, row_of) in _keys(rows).items():
        few = [column.slice(0, min(rows, RIVAL_ROWS)) for column in columns]
        if hash_keys(few).tolist() != _row_by_row([column.to_pylist() for column in few], row_of):
            raise AssertionError(f"The hashes of {name} differ from mmh3's.")
        ours = _rate(lambda columns=columns: hash_keys(columns), rows)
        theirs = _rate(
            lambda few=few, row_of=row_of: _row_by_row([column.to_pylist() for column in few], row_of), len(few[0]), 3
        )
        promise = PROMISED.get(name)
        good = promise is None or ours >= promise
        kept = kept and good
        promised = "(no promise)" if promise is None else f"(promised {promise / 1e6:.0f})"
        print(
            f"   {name:<24} {ours / 1e6:7.1f} M keys/s {promised:<14} row by row {theirs / 1e6:5.2f}"
            f"   {ours / theirs:6.1f}x{'' if good else '  BROKEN'}",
            flush=True,
        )
    return kept


def _assigning(rows: int) -> None:
    hashes = np.random.default_rng(2).integers(-(2**31), 2**31, rows).astype(np.int32)
    known = dict(enumerate(np.array_split(np.unique(hashes[: rows // 2]), 4)))
    options = BucketOptions(target_rows=rows // 8)
    batches = np.array_split(np.sort(hashes), max(1, rows // BATCH_ROWS))

    def assign() -> None:
        assigner = PartitionAssigner(options, loaded=LoadedBuckets.of(0, known, 0, Channels()))
        for batch in batches:
            assigner.assign(batch)

    print(f"   {'buckets, half are known':<24} {_rate(assign, rows, 3) / 1e6:7.1f} M keys/s (no promise)", flush=True)


def run(rows: int = ROWS) -> bool:
    """Print the figures, and whether the promises are kept."""
    kept = _hashing(rows)
    _assigning(rows)
    return kept


if __name__ == "__main__":
    run()
