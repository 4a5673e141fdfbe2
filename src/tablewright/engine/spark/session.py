"""The Spark session that work runs in: the user's if there is one, otherwise an embedded one, made when first needed.

We never stop a session that we did not make, and we change no setting of it. The embedded one is ``local[*]`` with
four tries for each task, small and quiet: no web UI, loopback only, UTC, Unix sockets to the Python workers, this very
Python for them, and a daemon that has imported what they need (:mod:`.daemon`).
Under ``spark-submit``, or where ``SPARK_REMOTE`` names a Connect server, the environment decides where the session is.

Tests: tests/spark/test_session.py, tests/spark/test_own_session.py
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tablewright._version import __version__
from tablewright.engine.detect import is_connect
from tablewright.engine.flow import default_threads
from tablewright.engine.progress import Progress
from tablewright.engine.spark.java import require_java
from tablewright.log import Log

__all__ = [
    "active_session",
    "embedded_environment",
    "embedded_session",
    "embedded_settings",
    "is_running",
    "session_cores",
]

MASTER = "local[*,4]"  # a task is tried four times, as on a cluster: workers may die
DAEMON = "tablewright.engine.spark.daemon"
STOP_SECONDS_MAX = 10.0  # how long another thread may take to stop its context before we start one
SOCKET_PATH_ROOM = 60  # a Unix socket's path has at most 104 characters, of which its file name takes 42
_making = threading.Lock()
_log = Log("engine")


def active_session() -> Any | None:
    """The session of this thread, or the one of this process, that is alive; ``None`` if there is none."""
    return _classic_session() or _connect_session()


def is_running() -> bool:
    """Whether this process has a Spark, as far as can be told without asking the JVM, which takes 2 ms."""
    return _live_context() is not None or _connect_session() is not None


def embedded_session(
    master: str | None = None, settings: Mapping[str, str] | None = None, *, brief: bool = False
) -> Any:
    """The active session, or a new embedded one. ``settings`` are added to :func:`embedded_settings`.

    ``brief`` is for sessions that live a minute: the JVM compiles less. That halves the processor time of start-up and
    first jobs, and doubles that of bulk work (measured).
    """
    with _making:
        session = active_session()
        if session is not None:
            return session
        from pyspark.sql import SparkSession

        _wait_for_stop()
        builder = SparkSession.builder.appName("tablewright")
        if "SPARK_REMOTE" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ:
            return builder.getOrCreate()
        with _environment(embedded_environment()), warnings.catch_warnings(), Progress("Starting Spark"):
            # The data-file codec warns about forks; this one only leads to the JVM's exec.
            warnings.filterwarnings("ignore", "lance is not fork-safe")
            for key, value in {**embedded_settings(brief=brief), **(settings or {})}.items():
                builder = builder.config(key, value)
            where = master or MASTER
            _log.info("session", "no Spark session is active: starting %(master)s in this process", master=where)
            return builder.master(where).getOrCreate()


def session_cores(session: Any) -> int:
    """How many tasks of a session run at once: no more than this machine's processors where it is ``local``.

    Where the session does not say (Spark Connect), it is taken to have as many as this process.
    """
    here = default_threads()
    if is_connect(session):
        return here
    context = session.sparkContext
    cores = max(1, int(context.defaultParallelism))
    return min(here, cores) if context.master.startswith("local") else max(cores, _cores_to_come(context.getConf()))


def _cores_to_come(settings: Any) -> int:
    """How many cores a session may get on demand, if that is bounded; otherwise 0."""
    if settings.get("spark.dynamicAllocation.enabled", "false") != "true":
        return 0
    executors = int(settings.get("spark.dynamicAllocation.maxExecutors", "0"))
    return executors * int(settings.get("spark.executor.cores", "1"))


def embedded_environment() -> dict[str, str]:
    """What the JVM and the workers of an embedded session inherit while it starts."""
    fixed = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return {"JAVA_HOME": str(require_java().home)} | {
        key: value for key, value in fixed.items() if key not in os.environ
    }


def embedded_settings(*, brief: bool = False) -> dict[str, str]:
    """The settings of an embedded session."""
    java_options = [f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"]
    if brief:
        java_options.append("-XX:TieredStopAtLevel=1")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": f"{_driver_memory_mib()}m",
        "spark.driver.extraJavaOptions": " ".join(java_options),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(max(4, os.cpu_count() or 1)),
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir(), "tablewright-warehouse")),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.python.worker.faulthandler.enabled": "true",
    }
    if os.name == "posix" and len(tempfile.gettempdir()) < SOCKET_PATH_ROOM:
        settings["spark.python.unix.domain.socket.enabled"] = "true"
    if sys.platform == "linux" and _workers_have_tablewright():
        settings["spark.python.daemon.module"] = DAEMON
    return settings


def _workers_have_tablewright() -> bool:
    """Whether the Python of the workers finds this package: a driver may have it on a ``sys.path`` of its own.

    Without it there would be no worker at all, also not for the user's own functions.
    """
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    question = f"import tablewright, sys; sys.exit(tablewright.__version__ != {__version__!r})"
    try:
        return subprocess.run([python, "-c", question], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def _driver_memory_mib() -> int:
    """A quarter of the machine, between 1 and 8 GiB. In an embedded session the driver is the executor too."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        machine = 8 << 30
    return min(max(machine // 4 >> 20, 1024), 8192)


def _live_context() -> Any | None:
    """The context of the classic API, unless it was stopped."""
    if "pyspark.core.context" not in sys.modules:
        return None
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return None if context is None or context._jsc is None else context


def _wait_for_stop() -> None:
    """Wait while another thread stops the context.

    PySpark forgets a context up to half a second after it was stopped. Until then ``getOrCreate`` returns the stopped
    one, and fails.
    """
    if "pyspark.core.context" not in sys.modules:
        return
    from pyspark import SparkContext

    deadline = time.monotonic() + STOP_SECONDS_MAX
    while (context := SparkContext._active_spark_context) is not None and context._jsc is None:
        if time.monotonic() > deadline:
            return
        time.sleep(0.01)


def _classic_session() -> Any | None:
    """The classic API's session, unless its context was stopped."""
    context = _live_context()
    if context is None:
        return None
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    # Beside a Connect server in this process there is a context too, but the session is not of its kind.
    return session if getattr(session, "_sc", None) is context else None


def _connect_session() -> Any | None:
    module = sys.modules.get("pyspark.sql.connect.session")
    if module is None:
        return None
    session = module.SparkSession.getActiveSession() or module.SparkSession._get_default_session()
    return None if session is None or session.is_stopped else session


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set variables for a while: the JVM inherits them, this process keeps its own."""
    before = {key: os.environ.get(key) for key in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                os.environ.pop(key, None)
            else:
                os.environ[key] = value
