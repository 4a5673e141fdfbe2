"""Which process died, where a Spark job failed for that reason, from Spark's own words.

Pure: the message of a failed job, and what the caller is told of it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["Death", "what_died"]


class Death(NamedTuple):
    """What died, and what helps."""

    what: str
    remedy: str


_AGAIN = "Run it again"
_MEMORY = f"{_AGAIN}; if it dies again, it may lack memory"
_PYTHON = re.compile(r"Python worker exited unexpectedly(?: \(crashed\): (?P<why>Fatal Python error: [^\n]*))?")
_EXECUTOR = re.compile(
    r"ExecutorLostFailure \(executor (?P<id>\S+) (?:exited|lost)[^)]*\)(?: Reason: (?P<why>[^\n]*))?"
)
_HEAP = re.compile(r"java\.lang\.OutOfMemoryError: (?P<why>[^\n]*)")
_SHUFFLE = re.compile(r"FetchFailed|MetadataFetchFailedException|Missing an output location for shuffle")


def what_died(text: str) -> Death | None:
    """The process that died, in the message of a failed Spark job; ``None`` if none did.

    >>> what_died("... SparkException: Python worker exited unexpectedly (crashed)").what
    'the Python worker of a task died'
    >>> what_died("ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: code 137").what
    'executor 3 was lost (code 137)'
    >>> what_died("ZeroDivisionError") is None
    True
    """
    if found := _EXECUTOR.search(text):
        remedy = f"{_MEMORY} (spark.executor.memory, spark.executor.memoryOverhead)."
        return Death(f"executor {found['id']} was lost{_because(found['why'])}", remedy)
    if found := _HEAP.search(text):
        remedy = f"{_AGAIN} with more memory for the JVM (spark.executor.memory; spark.driver.memory in local mode)."
        return Death(f"a JVM of Spark ran out of memory{_because(found['why'])}", remedy)
    if found := _PYTHON.search(text):
        remedy = f"{_MEMORY} (spark.executor.memoryOverhead, or fewer cores for each executor)."
        return Death(f"the Python worker of a task died{_because(found['why'])}", remedy)
    if _SHUFFLE.search(text):
        return Death(
            "files of a shuffle were lost, as often as Spark wrote them", f"{_AGAIN}; look for lost executors."
        )
    return None


def _because(why: str | None) -> str:
    return f" ({why.strip().rstrip('.')})" if why and why.strip() else ""
