"""Upsert of all rows of a 4 GB table on Spark, with 1 GB for every worker.

For its size it is not part of ``make bench``: run it with ``python -m benchmarks merge_memory``. It needs some 25 GB
below the directory for temporary files, and some minutes. The source is a Spark DataFrame with every key of the table,
in random order, and all its columns; the keys are too many for a worker and are shuffled. The JVM gets 1 GB of heap,
and no Python worker may have more than 1 GB of data (RLIMIT_DATA). Printed are the most that a worker, the driver's
Python and the JVM ever held.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from benchmarks import _limited_daemon
from benchmarks._limited_daemon import WORKER_BYTES_MAX

import tablewright
from tablewright.engine.spark.session import embedded_session

__all__ = ["BY_DEFAULT", "Peaks", "run"]

BY_DEFAULT = False
ROWS, DIMENSIONS, ROWS_PER_BATCH, FRAGMENTS = 2_000_000, 512, 8192, 8


def _batches(keys: np.ndarray, seed: int) -> Iterator[pa.RecordBatch]:
    chance = np.random.default_rng(seed)
    for start in range(0, len(keys), ROWS_PER_BATCH):
        ids = keys[start : start + ROWS_PER_BATCH]
        vectors = pa.FixedSizeListArray.from_arrays(chance.random(len(ids) * DIMENSIONS, np.float32), DIMENSIONS)
        yield pa.record_batch({"id": ids, "seed": np.full(len(ids), seed), "vector": vectors})


def _written(place: Path, keys: np.ndarray, seed: int) -> Any:
    return tablewright.write_dataset(
        _batches(keys, seed), str(place), max_rows_per_file=max(1, len(keys) // FRAGMENTS), engine="local"
    )


class Peaks:
    """The most memory that processes of this tree ever held, by what they are."""

    def __init__(self) -> None:
        self.worker = self.driver = self.jvm = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peaks:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.2):
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    command = (process / "cmdline").read_bytes().split(b"\0")
                    status = (process / "status").read_text()
                except OSError:
                    continue
                self._see(process.name, command, status)

    def _see(self, pid: str, command: list[bytes], status: str) -> None:
        held = next((int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0)
        if _limited_daemon.__name__.encode() in command:
            self.worker = max(self.worker, held)
        elif command[0].endswith(b"java") and any(b"SparkSubmit" in word for word in command):
            self.jvm = max(self.jvm, held)
        elif pid == str(os.getpid()):
            self.driver = max(self.driver, held)


def run(rows: int = ROWS) -> bool:
    """Print the peaks, and whether the merge was done within the limit."""
    directory = Path(tempfile.mkdtemp(prefix="tablewright-bench-"))
    settings = {"spark.driver.memory": "1g", "spark.python.daemon.module": _limited_daemon.__name__}
    spark = embedded_session(settings={**settings, "spark.local.dir": str(directory / "spark")})
    try:
        keys = np.arange(rows)
        table = _written(directory / "t.lance", keys, 1)
        size = sum(path.stat().st_size for path in (directory / "t.lance" / "data").iterdir())
        source = _written(directory / "s.lance", np.random.default_rng(0).permutation(keys), 2)
        print(f"   {rows} rows, {size / 1e9:.2f} GB in {FRAGMENTS} fragments", flush=True)
        merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        with Peaks() as peaks:
            started = time.perf_counter()
            result = merge.execute(source.to_spark(spark))
            seconds = time.perf_counter() - started
        good = result["num_updated_rows"] == rows and peaks.worker <= WORKER_BYTES_MAX
        good = good and table.count_rows("seed = 2") == table.count_rows() == rows
        print(
            f"   {result['num_updated_rows']} rows updated in {seconds:.0f} s   peak of a worker "
            f"{peaks.worker / 1e6:.0f} MB, of the driver {peaks.driver / 1e6:.0f} MB, of the JVM "
            f"{peaks.jvm / 1e6:.0f} MB{'' if good else '  BROKEN'}",
            flush=True,
        )
        return good
    finally:
        spark.stop()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    run()
