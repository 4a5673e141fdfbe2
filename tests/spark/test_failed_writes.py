"""A DataFrame whose write fails: our error, the table as it was, and no files of partitions that had succeeded."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.helpers import backwards, once_written

import tablewright as tw
from tablewright.engine.spark import marks
from tablewright.errors import InvalidRequest, JobCancelled, TablewrightError, WorkerLost

pytestmark = pytest.mark.timeout(300)
WAIT_SECONDS = 120.0


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine may be slow: a worker whose task was cancelled gets time to write what it had received.

    These DataFrames are small, and written by their executors all the same.
    """
    monkeypatch.setattr(marks, "QUIET_SECONDS", 2.0)
    monkeypatch.setattr("tablewright.api.write.COLLECTED_BYTES", 0)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[tw.LanceDataset]:
    """A table of one file, whose data directory is looked at before and after."""
    ds = tw.write_dataset(pa.table({"id": pa.array(range(3), pa.int64())}), tmp_path / "t.lance")
    before = _files(ds)
    yield ds
    assert _files(ds) == before
    assert tw.dataset(ds.uri).version == ds.version


def _files(ds: tw.LanceDataset) -> list[str]:
    """Data files, deletion files, and temporary ones of the codec."""
    return sorted(path.name for folder in ("data", "_deletions") for path in Path(ds.uri, folder).glob("*"))


def _when_written(ds: tw.LanceDataset, act: Callable[[], None]) -> threading.Thread:
    """Do something as soon as a file is there that the table does not have yet."""
    before = len(_files(ds))

    def wait() -> None:
        end = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < end:
            if len(_files(ds)) > before:
                act()
                return
            time.sleep(0.02)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(("then", "error"), [("raise", InvalidRequest), ("kill", WorkerLost)])
def test_a_late_failure_leaves_nothing(
    spark: Any, table: tw.LanceDataset, then: str, error: type[TablewrightError]
) -> None:
    """The other partitions have succeeded, and Spark does not return their answers."""
    frame = backwards(spark, 400, 4, once_written(f"{table.uri}/data", 1 + 3, then))
    with pytest.raises(error) as raised:
        table.insert(frame)
    assert ("row 0 is bad" if then == "raise" else "the Python worker of a task died") in str(raised.value)


def test_a_table_that_was_to_be_created_leaves_no_file(spark: Any, tmp_path: Path) -> None:
    place = tmp_path / "new.lance"
    (place / "data").mkdir(parents=True)
    with pytest.raises(InvalidRequest, match="row 0 is bad"):
        tw.write_dataset(backwards(spark, 400, 4, once_written(f"{place}/data", 3, "raise")), place)
    assert [path for path in place.rglob("*") if path.is_file()] == []


def test_partitions_that_are_under_way_leave_nothing(spark: Any, table: tw.LanceDataset) -> None:
    """Spark reports the failure while another partition still writes files."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
    try:
        frame = backwards(spark, 200_000, 2, once_written(f"{table.uri}/data", 1 + 3, "slowly"))
        with pytest.raises(InvalidRequest, match="row 0 is bad"):
            tw.write_dataset(frame, table, mode="append", max_rows_per_file=1000)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


@pytest.mark.parametrize("how", ["cancel", "interrupt"])
def test_a_cancelled_write_leaves_nothing(spark: Any, table: tw.LanceDataset, how: str) -> None:
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
    act = spark.sparkContext.cancelAllJobs if how == "cancel" else _thread.interrupt_main
    canceller = _when_written(table, act)
    expected: type[BaseException] = JobCancelled if how == "cancel" else KeyboardInterrupt
    try:
        frame = backwards(spark, 200_000, 2, once_written(f"{table.uri}/data", 0, "never"))
        with pytest.raises(expected) as raised:
            tw.write_dataset(frame, table, mode="append", max_rows_per_file=1000)
    finally:
        canceller.join()
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    if how == "cancel":
        assert f"Writing {table.uri}: the Spark job was cancelled" in str(raised.value)
    assert table.to_spark(spark).count() == 3
