"""A session of their own serves all these tests (``own_process.py``): in it a task is tried twice.

Workers die amid a task, also in every stage of a merge: the task runs again, and what keeps dying ends with our error
and changes nothing. In the end Ctrl-C cancels a job, and only that.
"""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from tests.concurrency.leftovers import unreferenced
from tests.spark.own_process import OwnProcess

import tablewright as tw

pytestmark = pytest.mark.timeout(1200)
SCRIPT = """
import dataclasses
import os
import time
from pathlib import Path

import lance, pyarrow as pa, tablewright as tw
from tablewright.engine import Workload, choose_engine
from tablewright.engine.spark.session import MASTER, embedded_session
from tablewright.errors import TablewrightError, WorkerLost
from tablewright.storage import open_store
from tablewright.world import World

folder = os.environ["FOLDER"]
spark = embedded_session(MASTER.replace(",4]", ",2]"), brief=True)  # a task is tried twice
engine, world = choose_engine(Workload(), spark).engine, World(open_store(folder + "/world"))
absolute = lambda task, world: abs(task)

def die_once(number, world):
    import os, signal
    try:
        open(folder + f"/died-{number}", "x")
    except FileExistsError:
        return number * 10
    os.kill(os.getpid(), signal.SIGKILL)

print(engine.map(die_once, range(2), world))

def write(batches, world):
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

names = engine.gather_frame(spark.range(0, 100, 1, 4), write, world, pa.schema({"id": pa.int64()}), bytes_max=0).results
rows = [row for name in names for row in pa.ipc.open_file(name).read_all()["id"].to_pylist()]
print(rows == list(range(100)), len(names), len(list(Path(folder).glob("*.arrow"))))

def die(number, world):
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)

try:
    engine.map(die, [1], world, describe="Compacting")
except WorkerLost as error:
    print(error)

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

from tablewright.jobs.merge import job as merge_job
from tablewright.operations.merge_insert.limits import MatchLimits, MergeLimits

limits = MatchLimits(shuffle_partition_rows=20, shuffle_task_rows=10)
real = {name: getattr(merge_job, name) for name in ("run_pairing_task", "run_merge_write", "produce_keys", "JoinKeys")}

def dies(name, always, paths=()):
    import os, signal
    try:
        with open(folder + f"/dead-{name}", "a" if always else "x") as file:
            file.writelines(path + chr(10) for path in paths)
        os.kill(os.getpid(), signal.SIGKILL)
    except FileExistsError:
        pass

def mortal_task(name, function, always=False):
    def run(*task):  # its files are written, and nobody hears of them
        result = function(*task)
        dies(name, always, getattr(result, "paths", ()))
        return result
    return run

def mortal_stream(name, function):
    def run(*task):
        for batch in function(*task):
            yield batch
            dies(name, False)
    return run

def mortal_join(name, function, always=False):
    def made(*arguments):
        join = function(*arguments)
        def run(batches):
            result = join(batches)
            dies(name, always)
            return result
        return run
    return made

def merge(uri, **mortal):
    for name in real:
        setattr(merge_job, name, mortal.get(name, real[name]))
    ids = [*range(0, 40, 3), *range(100, 106)]
    source = pa.table({"id": pa.array(ids, pa.int64()), "a": pa.array([-i for i in ids], pa.int64())})
    builder = tw.dataset(uri, engine=spark).merge_insert("id")._with(limits=MergeLimits(match=limits))
    builder = builder.when_matched_update_all().write_mode("rewrite_rows")
    try:
        result = builder.when_not_matched_insert_all().execute(source)
        return [result[f"num_{kind}_rows"] for kind in ("inserted", "updated", "deleted")]
    except TablewrightError as error:
        return type(error).__name__

match, write, produce, join = (real[name] for name in real)
pairing, writing = mortal_task("match", match), mortal_task("write", write)
print(merge(table("broadcast"), run_pairing_task=pairing, run_merge_write=writing))
print(merge(table("broadcast-in-vain"), run_merge_write=mortal_task("write-in-vain", write, always=True)))
limits = dataclasses.replace(limits, keys_per_worker=0)  # everything is shuffled
print(merge(table("shuffle"), produce_keys=mortal_stream("produce", produce), JoinKeys=mortal_join("join", join),
            run_merge_write=mortal_task("write-shuffled", write)))
print(merge(table("shuffle-in-vain"), JoinKeys=mortal_join("join-in-vain", join, always=True)))

from tablewright.engine.spark import marks
marks.QUIET_SECONDS = 2.0  # the machine may be slow
uri = table("repeated")
spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
bad = "if(id = 39999, raise_error('the last row is bad'), id) AS id"
frame = spark.range(0, 40_000, 1, 2).selectExpr(bad, "id AS a")
try:
    tw.write_dataset(frame, uri, mode="append", max_rows_per_file=2000, engine="spark")
except tw.errors.InvalidRequest as error:
    print("the last row is bad" in str(error))
spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")

def sleep(number, world):
    import time
    open(folder + f"/asleep-{number}", "x")
    time.sleep(60)

began = time.monotonic()
try:
    engine.map(sleep, range(4), world)
except KeyboardInterrupt:
    print("interrupted", len(list(Path(folder).glob("asleep-*"))) < 4)
tracker = spark.sparkContext.statusTracker()  # it learns of the end a moment later
while tracker.getActiveJobsIds() and time.monotonic() - began < 30:
    time.sleep(0.05)
print("active", tracker.getActiveJobsIds())
print(engine.map(absolute, [-7], world))
"""


@pytest.fixture(scope="module")
def folder(own_process: OwnProcess) -> Path:
    """Where the script makes its tables."""
    return own_process.folder


@pytest.fixture(scope="module")
def printed(own_process: OwnProcess) -> list[str]:
    """What the script printed; it was interrupted when its last job was under way."""
    return own_process.printed[1]


def test_a_killed_worker_is_replaced_and_its_task_runs_again(printed: list[str]) -> None:
    assert printed[0:2] == ["[0, 10]", "True 4 5"]


def test_a_worker_that_keeps_dying_ends_with_our_error(printed: list[str]) -> None:
    assert printed[2].startswith("Compacting: the Python worker of a task died")
    assert "Run it again" in printed[2]


def test_a_killed_worker_changes_nothing_twice(printed: list[str]) -> None:
    """A worker dies amid its task: the task runs again. If it keeps dying, nobody sees any of the change."""
    assert printed[3] == "2 True"
    assert printed[4] == "WorkerLost"
    assert printed[5] == "1 ['id', 'a']"


def _died(folder: Path, name: str) -> list[str]:
    """The files that workers had written when they died there."""
    return (folder / f"dead-{name}").read_text().splitlines()


def _orphans(folder: Path, name: str) -> set[str]:
    place = folder / f"{name}.lance"
    paths = [str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()]
    return unreferenced(tw.dataset(place), paths)


def _rows(folder: Path, name: str) -> tuple[int, dict[int, int], int]:
    """The version, the rows and how many there are, as pylance finds them."""
    dataset = lance.dataset(str(folder / f"{name}.lance"))
    dataset.validate()
    rows = dataset.to_table().to_pydict()
    return int(dataset.version), dict(zip(rows["id"], rows["a"], strict=True)), len(rows["id"])


BEFORE = {i: i for i in range(40)}
MERGED = BEFORE | {i: -i for i in (*range(0, 40, 3), *range(100, 106))}


@pytest.mark.parametrize(
    ("number", "name", "stages", "writing"),
    [(6, "broadcast", ["match"], "write"), (8, "shuffle", ["produce", "join"], "write-shuffled")],
)
def test_a_merge_survives_its_workers(
    printed: list[str], folder: Path, number: int, name: str, stages: list[str], writing: str
) -> None:
    """One worker dies in each stage of a merge, when it has done its work: that is done again, and counts once."""
    assert all(_died(folder, stage) == [] for stage in stages)
    assert printed[number] == "[6, 14, 0]"
    assert _rows(folder, name) == (2, MERGED, 46)
    assert _orphans(folder, name) == set(_died(folder, writing)) != set()


@pytest.mark.parametrize(("number", "name"), [(7, "broadcast-in-vain"), (9, "shuffle-in-vain")])
def test_a_merge_whose_workers_keep_dying_changes_nothing(
    printed: list[str], folder: Path, number: int, name: str
) -> None:
    """It ends with our error. Files that dead workers had written are all that is left, and no version has them."""
    assert printed[number] == "WorkerLost"
    assert _rows(folder, name) == (1, BEFORE, 40)
    written = {"broadcast-in-vain": "write-in-vain", "shuffle-in-vain": "join-in-vain"}[name]
    assert _orphans(folder, name) <= set(_died(folder, written))


def test_attempts_that_spark_repeats_leave_nothing(printed: list[str], folder: Path) -> None:
    """Each attempt at the bad partition writes files, and fails after the other partition has succeeded."""
    assert printed[10] == "True"
    assert _rows(folder, "repeated") == (1, BEFORE, 40)
    assert _orphans(folder, "repeated") == set()


def test_ctrl_c_cancels_the_job(printed: list[str]) -> None:
    assert printed[11:] == ["interrupted True", "active []", "[7]"]
