"""What died is read from messages as Spark 4.3 writes them."""

from __future__ import annotations

import pickle

import pytest

from tablewright.engine.spark.deaths import what_died
from tablewright.errors import WorkerLost

ABORTED = "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3 in "
ABORTED += "stage 3.0 (TID 9) (127.0.0.2 executor 1): "


@pytest.mark.parametrize(
    ("text", "what", "helps"),
    [
        (
            ABORTED + "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider setting "
            "'spark.sql.execution.pyspark.udf.faulthandler.enabled'\n\tat org.apache.spark.api.python",
            "the Python worker of a task died",
            "memoryOverhead",
        ),
        (
            ABORTED
            + "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed): Fatal Python error:"
            " Segmentation fault\n\nCurrent thread 0x00007f",
            "the Python worker of a task died (Fatal Python error: Segmentation fault)",
            "Run it again",
        ),
        (
            ABORTED
            + "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Command exited"
            " with code 137\nDriver stacktrace:",
            "executor 1 was lost (Command exited with code 137)",
            "spark.executor.memory",
        ),
        (
            ABORTED + "java.lang.OutOfMemoryError: Java heap space\n\tat",
            "ran out of memory (Java heap space)",
            "memory",
        ),
        (
            "ShuffleMapStage 5 has failed the maximum allowable number of times: 4. Most recent failure reason:\n"
            "org.apache.spark.shuffle.MetadataFetchFailedException: Missing an output location for shuffle 0",
            "files of a shuffle were lost",
            "Run it again",
        ),
    ],
    ids=["killed", "crashed", "executor", "heap", "shuffle"],
)
def test_what_died(text: str, what: str, helps: str) -> None:
    found = what_died(text)
    assert found is not None
    assert what in found.what and helps in found.remedy


def test_an_error_of_the_code_is_no_death() -> None:
    assert what_died(ABORTED + "Traceback (most recent call last):\nValueError: Python worker") is None


def test_the_error_survives_pickling() -> None:
    error = WorkerLost("Compacting", "executor 1 was lost", "Run it again.")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.what) == (WorkerLost, str(error), "executor 1 was lost")
