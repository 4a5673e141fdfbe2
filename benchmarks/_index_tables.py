"""What the workload of indices shares: tables made batch by batch, and both libraries run in turns on copies of one.

Keys are a permutation of the numbers below the number of rows, so a key is anywhere, and comes once. A run changes a
copy of its own (hard links), opened before the clock starts. Neither library waits for the disk. A link is a change of
the file, and we cache nothing of a file that changed this very moment; so a run begins a little later, as if the table
had been there before.
"""

from __future__ import annotations

import gc
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from benchmarks._beside import copied, open_ours

from tablewright.cache import process_cache
from tablewright.data.idle import process_readers
from tablewright.data.mapped import mappings
from tablewright.storage.identity import SETTLED_NS

__all__ = [
    "Both",
    "Taken",
    "emptied",
    "index_bytes",
    "key_table",
    "line",
    "table_of_texts",
    "table_of_vectors",
    "turns",
]

ROWS_PER_BATCH = 1_000_000
TEXT_BYTES = 20
STEP = 2_654_435_761  # a prime, so that its multiples are a permutation

Act = Callable[[Any], Any]


@dataclass
class Taken:
    """The runs of one library: seconds, seconds of the processors, and the bytes of index files that were written."""

    seconds: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    index_bytes: int = 0
    answer: Any = None

    def add(self, seconds: float, busy: float) -> None:
        """Count a run."""
        self.seconds.append(seconds)
        self.busy.append(busy)


Both = tuple[Taken, Taken]


# -------------------------------------------------------------------------------------------------------------- tables
def _batches(rows: int, values: int | None) -> Iterator[pa.RecordBatch]:
    for start in range(0, rows, ROWS_PER_BATCH):
        numbers = np.arange(start, min(rows, start + ROWS_PER_BATCH), dtype=np.uint64)
        keys = (numbers * np.uint64(STEP) % np.uint64(rows)).astype(np.int64)
        yield pa.record_batch({"key": keys, "v": keys % values if values else numbers.astype(np.int64)})


def key_table(place: Path, rows: int, fragments: int | None = None, values: int | None = None, **options: Any) -> Path:
    """``key`` and ``v``, both int64, in fragments of 1M rows unless told; ``v`` has this many values, or all differ."""
    schema = pa.schema({"key": pa.int64(), "v": pa.int64()})
    per_file = -(-rows // fragments) if fragments else ROWS_PER_BATCH
    lance.write_dataset(_batches(rows, values), place, schema=schema, max_rows_per_file=per_file, **options)
    return place


def table_of_texts(place: Path, rows: int, fragments: int) -> Path:
    """``key``: random texts of 20 letters."""
    letters = np.random.default_rng(0).integers(97, 123, (rows, TEXT_BYTES), dtype=np.uint8)
    offsets = np.arange(rows + 1, dtype=np.int32) * TEXT_BYTES
    texts = pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
    lance.write_dataset(pa.table({"key": texts}), place, max_rows_per_file=-(-rows // fragments))
    return place


def table_of_vectors(place: Path, rows: int, fragments: int, dimensions: int = 32) -> Path:
    """``key``, ``v`` and ``vector`` with stable row ids, a BTREE on the keys and an IVF_PQ on the vectors."""
    (batch,) = pa.Table.from_batches(_batches(rows, None)).combine_chunks().to_batches()
    values = np.random.default_rng(0).random(rows * dimensions, np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(values, dimensions)
    table = pa.Table.from_batches([batch]).append_column("vector", vectors)
    lance.write_dataset(table, place, max_rows_per_file=-(-rows // fragments), enable_stable_row_ids=True)
    open_ours(place).create_scalar_index("key", "BTREE")  # pylance's has addresses, also where there are row ids
    lance.dataset(place).create_index("vector", "IVF_PQ", num_partitions=4, num_sub_vectors=8)
    return place


# ----------------------------------------------------------------------------------------------------------- measuring
def emptied() -> None:
    """Forget what this process has cached: pylance's caches belong to a dataset, ours to the process."""
    process_cache().clear()
    process_readers.clear()
    mappings.clear()


def index_bytes(place: Path) -> dict[str, int]:
    """The files of indices and their sizes."""
    return {str(path.relative_to(place)): path.stat().st_size for path in place.glob("_indices/*/*") if path.is_file()}


def turns(
    base: Path,
    directory: Path,
    act: Act,
    runs: int,
    *,
    ready: Act | None = None,
    ours_only: bool = False,
    uncounted: int = 1,
) -> Both:
    """Run both in turns on copies of the base, at first ``uncounted`` times. Both have to give the same answer.

    ``ready`` is done with the dataset before the clock starts. Garbage is collected after a run: a collection goes
    through all objects of Python, and what comes next finds none of its own in the processor's caches.
    """
    both = Taken(), Taken()
    for number in range(uncounted + runs):
        order = list(zip(both, (open_ours, lance.dataset), ("ours", "theirs"), strict=True))[: 1 if ours_only else 2]
        for taken, opened, name in order if number % 2 else reversed(order):
            place = copied(base, directory / name)
            before = index_bytes(place)
            time.sleep(2 * SETTLED_NS / 1e9)
            dataset = opened(place)
            if ready is not None:
                ready(dataset)
            started = time.perf_counter(), time.process_time()
            taken.answer = act(dataset)
            seconds = time.perf_counter() - started[0], time.process_time() - started[1]
            if number >= uncounted:
                taken.add(*seconds)
            taken.index_bytes = sum(size for path, size in index_bytes(place).items() if path not in before)
            del dataset
            gc.collect()
            shutil.rmtree(place)
        if not ours_only and both[0].answer != both[1].answer:
            raise AssertionError(f"We answered {both[0].answer}, pylance {both[1].answer}.")
    return both


def line(name: str, both: Both, promised: float | None) -> bool:
    """Print a row of the table, and say whether it keeps what is promised."""
    ours, theirs = both
    ratio, busy = (median(getattr(theirs, what)) / median(getattr(ours, what)) for what in ("seconds", "busy"))
    good = promised is None or ratio >= promised
    print(
        f"   {name:<42} ours {median(ours.seconds) * 1e3:9.2f} ms  pylance {median(theirs.seconds) * 1e3:9.2f} ms  "
        f"{ratio:6.2f}x{'' if promised is None else f' (promised {promised})'}{'' if good else '  BROKEN'}"
        f"   processors {median(ours.busy) * 1e3:.1f} : {median(theirs.busy) * 1e3:.1f} ms, {busy:.2f}x",
        flush=True,
    )
    return good
