"""Spark's daemon of Python workers, which has imported what tasks need before it forks: a new worker is a fork away.

Spark asks a *daemon* for Python workers, and stops those that were idle for a minute. PySpark's own daemon imports
nothing: each new worker imports pyarrow, pandas, the codec and our modules again, which takes seconds. This one imports
them once (``spark.python.daemon.module``), then is PySpark's.

A process that has *used* a library with threads of its own must not fork (:mod:`tablewright.storage.libraries`); one
that has imported it may. So nothing is opened, parsed or computed here. What forks would share by mistake is drawn
again in each worker: the state of numpy's global random numbers. Garbage collection leaves alone what is loaded
(``gc.freeze``), which keeps its memory shared, and makes the collection after every task cheap.

Only embedded sessions on Linux have it (:mod:`.session`). For a session of your own, set
``spark.python.daemon.module=tablewright.engine.spark.daemon`` before it starts, where its workers have this package.

Tests: tests/spark/test_daemon.py
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["PRELOADED", "main", "preload"]

# By name: this package does not depend on what runs in it. The first ones are what tasks import last.
PRELOADED = (
    "pyspark.worker",
    "pandas",
    "pyarrow.compute",
    "pyarrow.dataset",
    "pyarrow.parquet",
    "obstore.store",
    "datafusion",
    "tablewright.engine.spark.worker",
    "tablewright.api.dataset",
    "tablewright.spark.reader",
    "tablewright.spark.writer",
)


def preload() -> None:
    """Import what tasks need, and prepare for forks. What can't be imported is left to the worker that needs it."""
    for name in PRELOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    with contextlib.suppress(ImportError):
        # Here, since a daemon that can't import it starts all the same: the task that needs it says what is missing.
        from tablewright.data.encoder import load_codec

        load_codec()
    os.register_at_fork(after_in_child=_draw_again)
    gc.collect()
    gc.freeze()


def _draw_again() -> None:
    """Workers must not share a sequence of random numbers; Python's own generator sees to that by itself."""
    random = sys.modules.get("numpy.random")
    if random is not None:
        random.seed()


def main() -> None:
    """Be the daemon that Spark has started. Spark reads its standard output, so imports must not print there."""
    from pyspark import daemon

    with contextlib.redirect_stdout(sys.stderr):
        preload()
    daemon.worker = partial(_quiet, daemon.worker)
    daemon.manager()


def _quiet(worker: Callable[..., int], *arguments: Any) -> int:
    """PySpark's worker, without its traceback where Spark has closed the connection, as after a minute of idling."""
    try:
        return worker(*arguments)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    main()
