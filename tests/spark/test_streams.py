"""Streams out of tables and into tables: nothing is lost or doubled, whatever crashes; pylance reads the result.

The streams here are fed by a table whose every version is a micro-batch. The long form kills the driver's process.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from tests.depth import DEPTH, deep

import tablewright as tw

pytestmark = pytest.mark.timeout(300)

KEYS, STARTS_MAX, SLOW_START = 40, 10, "failed to connect back"


def source(path: Path, batches: int) -> str:
    """A table of so many versions, the rows of each with some keys in common with others."""
    for batch in range(batches):
        tw.write_dataset(rows_of(batch), path, mode="append", enable_stable_row_ids=True)
    return str(path)


def rows_of(batch: int) -> pa.Table:
    ids = [(batch * 7 + step) % KEYS for step in range(5)]
    return pa.table({"id": pa.array(ids, pa.int64()), "n": pa.array([batch] * 5, pa.int64())})


def model(batches: int) -> dict[int, int]:
    return {id: batch for batch in range(batches) for id in rows_of(batch)["id"].to_pylist()}


def rows(table: str) -> dict[int, int]:
    """What pylance reads: every key once."""
    found = lance.dataset(table).to_table()
    assert len(set(found["id"].to_pylist())) == found.num_rows
    return dict(zip(found["id"].to_pylist(), found["n"].to_pylist(), strict=True))


def read_stream(spark: Any, table: str, **options: str) -> Any:
    return spark.readStream.format("tablewright").options(**options).load(table)


def run(writer: Any, checkpoint: Path) -> None:
    """Run a stream until it has read what is there.

    Spark gives the Python process of a stream's reader ten seconds to start. On a machine that is busy with other
    things that may be too little; then the stream is started again.
    """
    prepared = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    for _ in range(STARTS_MAX):
        query = prepared.start()
        try:
            query.awaitTermination()
            return
        except StreamingQueryException as error:
            if SLOW_START not in str(error):
                raise
        finally:
            query.stop()
    pytest.fail(f"Spark's Python process did not start, {STARTS_MAX} times")


def collected(spark: Any, table: str, checkpoint: Path, **options: str) -> list[list[dict[str, Any]]]:
    """The rows of each batch."""
    batches: list[list[dict[str, Any]]] = []
    keep: Callable[[Any, int], None] = lambda frame, batch: batches.append(frame.toArrow().to_pylist())  # noqa: E731
    run(read_stream(spark, table, **options).writeStream.foreachBatch(keep), checkpoint)
    return batches


def test_appended_rows(spark: Any, tmp_path: Path) -> None:
    table = source(tmp_path / "t.lance", 3)
    first = collected(spark, table, tmp_path / "c")
    assert [len(batch) for batch in first] == [15]  # the whole table
    tw.dataset(table).optimize.compact_files()
    for batch in (3, 4):
        tw.write_dataset(rows_of(batch), table, mode="append")
    later = collected(spark, table, tmp_path / "c", max_versions_per_trigger="1")
    assert [row["n"] for batch in later for row in batch] == [3] * 5 + [4] * 5
    assert len(later) >= 2
    tw.dataset(table).delete("n = 0")
    with pytest.raises(Exception, match="changed rows that were there before"):
        collected(spark, table, tmp_path / "c")


def test_changes(spark: Any, tmp_path: Path) -> None:
    table = source(tmp_path / "t.lance", 1)
    ds = tw.dataset(table)
    ds.update({"n": "100"}, where="id = 3")
    ds.delete("id = 4")
    (batch,) = collected(spark, table, tmp_path / "c", changes="true", start_version="2")
    found = [(row["id"], row["n"], row["_change_type"], row["_commit_version"]) for row in batch]
    assert sorted(found) == [(3, 0, "update_preimage", 2), (3, 100, "update_postimage", 2), (4, 0, "delete", 3)]


def test_a_stream_that_is_written_has_each_batch_once(spark: Any, tmp_path: Path) -> None:
    """Its last batch is run again, as after a crash between the commit and Spark's note of it."""
    table, sink, checkpoint = source(tmp_path / "t.lance", 3), str(tmp_path / "sink.lance"), tmp_path / "c"

    def stream() -> None:
        writer = read_stream(spark, table, start_version="1", max_versions_per_trigger="1").writeStream
        run(writer.format("tablewright").option("path", sink), checkpoint)

    def values() -> list[int]:
        return sorted(lance.dataset(sink).to_table()["n"].to_pylist())

    stream()
    assert values() == [0] * 5 + [1] * 5 + [2] * 5
    assert lance.dataset(sink).version == 3
    lance.dataset(sink).optimize.compact_files()  # another writer, in whose versions the number is kept
    files = {path.name for path in Path(sink, "data").glob("*.lance")}
    forget_last_commit(checkpoint)
    stream()
    assert values() == [0] * 5 + [1] * 5 + [2] * 5
    assert {path.name for path in Path(sink, "data").glob("*.lance")} == files
    tw.write_dataset(rows_of(3), table, mode="append")
    stream()
    assert values() == [0] * 5 + [1] * 5 + [2] * 5 + [3] * 5


def forget_last_commit(checkpoint: Path) -> None:
    last = max(
        (path for path in (checkpoint / "commits").glob("*") if path.name.isdecimal()), key=lambda p: int(p.name)
    )
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)


class Crash(Exception):
    """The driver dies."""


def test_upserts_that_crash_before_and_after_their_commit(spark: Any, tmp_path: Path) -> None:
    """Without a name the stream is known by the id of its query, which survives the crashes."""
    batches, chance = deep(6, 40), random.Random(7)
    table = source(tmp_path / "t.lance", batches)
    sink = tw.write_dataset(rows_of(0).slice(0, 0), tmp_path / "sink.lance").uri
    upsert = tw.stream_upsert(sink, on="id", optimize="auto")
    crashes = dict(zip(chance.sample(range(1, batches), 2), ("before", "after"), strict=True))

    def batch(frame: Any, number: int) -> None:
        when = crashes.pop(number, None)
        if when == "before":
            raise Crash
        upsert(frame, number)
        if when == "after":
            raise Crash
        if number == 2:  # pylance writes in between
            lance.dataset(sink).insert(pa.table({"id": pa.array([1000], pa.int64()), "n": pa.array([0], pa.int64())}))

    runs = 0
    while True:
        runs += 1
        stream = read_stream(spark, table, start_version="1", max_versions_per_trigger="1").writeStream
        expected = len(crashes)
        with contextlib.suppress(StreamingQueryException):
            run(stream.foreachBatch(batch), tmp_path / "c")
            break
        assert len(crashes) == expected - 1  # it ended because it crashed, and for no other reason
    assert (runs, crashes) == (3, {})
    assert rows(sink) == {**model(batches), 1000: 0}
    (key,) = (key for key in lance.dataset(sink).config() if key.startswith("tablewright.stream."))
    assert json.loads((tmp_path / "c" / "metadata").read_text())["id"] == key.removeprefix("tablewright.stream.")
    assert lance.dataset(sink).config()[key] == str(batches - 1)


def test_pylance_keeps_the_number_of_a_batch(tmp_path: Path) -> None:
    """Whatever it commits on top: the number stays, and the batch does not come twice. Both are in one manifest."""
    sink = tw.write_dataset(rows_of(0), tmp_path / "sink.lance").uri
    upsert = tw.stream_upsert(sink, on="id", name="s")
    batch = [{"id": 1, "n": 77}]
    upsert(batch, 0)
    key = {"tablewright.stream.s": "0"}
    after = lance.dataset(sink)
    assert (after.version, after.config()) == (2, key)
    assert type(after.read_transaction(2).operation).__name__ == "Update"
    assert lance.dataset(sink, version=1).config() == {}
    one = pa.table({"id": pa.array([500], pa.int64()), "n": pa.array([0], pa.int64())})
    stale = lance.dataset(sink, version=1)  # planned before ours: pylance judges our transaction
    stale.insert(one)
    theirs = lance.dataset(sink)
    theirs.delete("id = 500")
    theirs.update({"n": "n + 1"}, where="id = 1")
    theirs.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(one)
    theirs.create_scalar_index("id", "BTREE")
    theirs.optimize.compact_files()
    theirs.update_config({"other": "x"})
    theirs.add_columns({"m": "n"})
    assert lance.dataset(sink).config() == {**key, "other": "x"}
    before = lance.dataset(sink).version
    upsert(batch, 0)
    assert lance.dataset(sink).version == before
    assert lance.dataset(sink).to_table(filter="id = 1")["n"].to_pylist() == [78]


# ---------------------------------------------------------------------------------------------------------- long form
DRIVER = """
    import json, sys, time
    import tablewright as tw
    from tablewright.engine.spark.session import embedded_session

    table, sink, checkpoint, log = sys.argv[1:]
    spark = embedded_session("local[2]", {"spark.sql.shuffle.partitions": "2"}, brief=True)
    upsert = tw.stream_upsert(sink, on="id", optimize="auto")

    def batch(frame, number):
        began = time.perf_counter()
        upsert(frame, number)
        with open(log, "a") as out:
            print(json.dumps([number, time.perf_counter() - began]), file=out)

    stream = spark.readStream.format("tablewright").option("start_version", 1).option("max_versions_per_trigger", 1)
    query = stream.load(table).writeStream.foreachBatch(batch).option("checkpointLocation", checkpoint)
    query.trigger(availableNow=True).start().awaitTermination()
"""


@pytest.mark.timeout(3600)
@pytest.mark.skipif(DEPTH < 40, reason="200 micro-batches and five killed drivers take ten minutes: full depth only")
def test_200_batches_with_a_driver_that_is_killed_five_times(tmp_path: Path) -> None:
    batches, kills = 200, 5
    table = source(tmp_path / "t.lance", batches)
    sink = tw.write_dataset(rows_of(0).slice(0, 0), tmp_path / "sink.lance").uri
    log, chance = tmp_path / "log", random.Random(11)
    log.touch()

    def done() -> list[tuple[int, float]]:
        return [tuple(json.loads(line)) for line in log.read_text().splitlines()]

    killed, errors = 0, tmp_path / "errors"
    while True:
        with errors.open("w") as out:
            arguments = [table, sink, str(tmp_path / "c"), str(log)]
            driver = subprocess.Popen(
                [sys.executable, "-c", textwrap.dedent(DRIVER), *arguments], stderr=out, start_new_session=True
            )
        try:
            until = len(done()) + batches // (kills + 2)
            while driver.poll() is None and (killed == kills or len(done()) < until):
                time.sleep(0.05)
            if driver.poll() is None:
                time.sleep(chance.random())  # anywhere within a batch
        finally:
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)
                driver.wait()
                killed += 1
        if driver.returncode == 0:
            break
        assert driver.returncode == -signal.SIGKILL or SLOW_START in errors.read_text(), errors.read_text()[-3000:]
    assert killed == kills
    assert rows(sink) == model(batches)
    config = lance.dataset(sink).config()
    assert [value for key, value in config.items() if key.startswith("tablewright.stream.")] == [str(batches - 1)]
    seconds = [took for _, took in done()]
    print(f"\nfirst ten batches {sum(seconds[1:11]):.2f} s, last ten {sum(seconds[-10:]):.2f} s, {len(seconds)} merges")
