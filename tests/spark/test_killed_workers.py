"""Workers that die amid a task: the task runs again, and what keeps dying ends with our error and leaves nothing.

One process with a session of its own, in which a task is tried twice, serves all these tests.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.helpers import run

SCRIPT = """
import os
from pathlib import Path

import lance, pyarrow as pa, tablewright as tw
from tablewright.engine.spark.frames import write_frame
from tablewright.engine.spark.session import embedded_session
from tablewright.engine.spark.tasks import run_tasks
from tablewright.errors import InternalError, TablewrightError

folder = os.environ["FOLDER"]
spark = embedded_session("local[2,2]", brief=True)  # a task is tried twice

def die_once(number):
    import os, signal
    try:
        open(folder + f"/died-{number}", "x")
    except FileExistsError:
        return number * 10
    os.kill(os.getpid(), signal.SIGKILL)

print(run_tasks(spark, die_once, range(3)))

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
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder: Path = tmp_path_factory.mktemp("killed")
    return run(SCRIPT, FOLDER=str(folder)).splitlines()


def test_a_killed_worker_is_replaced_and_its_task_runs_again(printed: list[str]) -> None:
    assert printed[:2] == ["[0, 10, 20]", "True 4 5"]


def test_a_worker_that_keeps_dying_ends_with_our_error(printed: list[str]) -> None:
    assert printed[2].startswith("Compacting failed on a Spark worker")


def test_a_killed_worker_changes_nothing_twice(printed: list[str]) -> None:
    """A worker dies amid its task: the task runs again. If it keeps dying, nobody sees any of the change."""
    assert printed[3] == "2 True"
    assert printed[4] in ("InternalError", "InvalidColumns")
    assert printed[5] == "1 ['id', 'a']"
