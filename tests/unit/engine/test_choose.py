"""engine/choose.py and engine/detect.py: who runs the work, and why. No JVM starts here."""

from __future__ import annotations

import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

import tablewright as tw
from tablewright.engine import choose
from tablewright.engine.choose import choose_engine, frame_engine, why_not
from tablewright.engine.costs import Costs, Workload
from tablewright.engine.detect import is_connect, is_spark_frame, is_spark_session
from tablewright.engine.local import LocalEngine
from tablewright.engine.spark.engine import SparkEngine
from tablewright.engine.spark.session import session_cores
from tablewright.errors import InvalidRequest
from tablewright.storage.base import Location

GIB = 1 << 30


def pyspark_like(name: str, module: str = "pyspark.sql.classic.dataframe") -> Any:
    return type(name, (), {"__module__": module})()


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads, 8 GiB of memory, Java, no session; one that is made up has as many cores as it says."""
    monkeypatch.setattr(choose, "default_threads", lambda: 2)
    monkeypatch.setattr(choose, "available_bytes", lambda: 8 * GIB)
    monkeypatch.setattr(choose, "_missing_java", lambda: None)
    monkeypatch.setattr(choose, "active_session", lambda: None)
    monkeypatch.setattr(choose, "session_cores", lambda session: session.cores)


def session_with(cores: int) -> Any:
    session = pyspark_like("SparkSession", "pyspark.sql.session")
    session.cores = cores
    return session


LARGE = Workload(bytes_read=1 << 50)
COSTS = Costs(
    read_bytes_per_second=10**9,
    row_seconds=30e-9,
    start_seconds=8,
    job_seconds=0.2,
    task_seconds=0.02,
    spark_factor=1.1,
    shipped_bytes_per_second=250 * 10**6,
    shuffled_row_seconds=2e-6,
)  # those of this test, so that a new measurement changes no line here
SECONDS = 2 * 10**9  # this many bytes are read in one second by two threads
WORK = {
    "nothing": Workload(),
    "a point delete": Workload(bytes_read=10_000, rows=1000, files=1, tasks=1, uses_threads=True),
    "half a second": Workload(bytes_read=SECONDS // 2, tasks=8),
    "two seconds": Workload(bytes_read=2 * SECONDS, tasks=8),
    "two seconds, one task": Workload(bytes_read=SECONDS, tasks=1),
    "two seconds, rows to ship": Workload(bytes_read=2 * SECONDS, tasks=8, shipped_bytes=SECONDS // 4),
    "two seconds, 1000 tasks": Workload(bytes_read=2 * SECONDS, tasks=1000),
    "one thread": Workload(bytes_read=5 * SECONDS, tasks=100, threads_max=1),
    "an hour": Workload(bytes_read=3600 * SECONDS, tasks=10_000),
    "a shuffle": Workload(bytes_read=SECONDS // 100, rows=10**7, shuffled_rows=10**7, uses_threads=True, turns=2),
    "many turns": Workload(bytes_read=SECONDS, rows=10**8, shuffled_rows=2 * 10**8, uses_threads=True, turns=25),
    "much to hold": Workload(bytes_read=1000, held_bytes=5 * GIB),
    "some to hold": Workload(bytes_read=1000, held_bytes=3 * GIB),
}
CHOSEN = {  # without a session, with one on two cores of this machine, with a cluster of 32 cores
    "nothing": "local local local",
    "a point delete": "local local local",
    "half a second": "local local spark",
    "two seconds": "local spark spark",
    "two seconds, one task": "local spark spark",
    "two seconds, rows to ship": "local local local",
    "two seconds, 1000 tasks": "local local spark",
    "one thread": "local spark spark",
    "an hour": "local spark spark",
    "a shuffle": "local local local",
    "many turns": "local local spark",
    "much to hold": "spark spark spark",
    "some to hold": "local local local",
}


@pytest.mark.parametrize("name", WORK)
def test_the_engine_by_time_and_memory(name: str) -> None:
    sessions = (None, session_with(2), session_with(32))
    chosen = [choose_engine(WORK[name], spark=session, costs=COSTS) for session in sessions]
    assert " ".join(choice.engine.name for choice in chosen) == CHOSEN[name], [choice.why for choice in chosen]
    for choice, session in zip(chosen, sessions, strict=True):
        assert choice.engine.in_process or choice.engine._session is session  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("work", "chosen"),
    [
        (Workload(bytes_read=8 * 10**8, rows=10**8, files=100, tasks=13, uses_threads=True), "local local spark"),
        (Workload(bytes_read=8 * 10**9, rows=10**9, files=1000, tasks=130, uses_threads=True), "local spark spark"),
        (Workload(bytes_read=10**8, bytes_written=10**8, rows=10**6, tasks=8), "local local local"),
        (
            Workload(bytes_read=2 * 10**8, bytes_written=2 * 10**8, tasks=4, shipped_bytes=2 * 10**8),
            "local local local",
        ),
        (Workload(bytes_read=10**11, bytes_written=10**11, rows=10**9, tasks=1500), "local spark spark"),
        (Workload(bytes_read=10**12), "local spark spark"),
    ],
    ids=[
        "filter, 100M rows",
        "filter, 1G rows",
        "update of 1M rows",
        "upsert of 100 MB",
        "compaction of 100 GB",
        "read of 1 TB",
    ],
)
def test_the_measured_constants(work: Workload, chosen: str) -> None:
    sessions = (None, session_with(2), session_with(32))
    assert " ".join(choose_engine(work, spark=session).engine.name for session in sessions) == chosen


def test_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "is_running", lambda: False)  # other tests of this process may have a session

    def why(name: str, session: Any = None) -> str:
        return choose_engine(WORK[name], spark=session, costs=COSTS).why

    assert why("nothing") == "about 1 ms of work, and a Spark session takes 8 s to start"
    assert why("nothing", session_with(2)) == "about 1 ms of work, and a Spark job takes 0.2 s before it begins"
    assert why("two seconds") == "about 2 s on 2 threads here, 10 s on 2 cores of Spark, its start counted"
    assert why("two seconds", session_with(2)) == (
        "bulk work, about 2 s on 2 threads here, 2.5 s on 2 cores of Spark: there it can be watched, limited and "
        "cancelled"
    )
    assert why("two seconds", session_with(32)) == "about 0.77 s on 32 cores of Spark; 2 s on 2 threads here"
    assert why("two seconds, rows to ship", session_with(2)) == (
        "about 2 s on 2 threads here, 4.5 s on 2 cores of Spark, which is more than 1.3 times as long"
    )
    assert why("half a second", session_with(2)) == "about 0.5 s on 2 threads here, 0.83 s on 2 cores of Spark"
    assert why("much to hold") == "it holds about 5 GiB at once, of 4 GiB that this process may take for it"


def test_small_work_does_not_ask_for_the_active_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """The JVM's answer takes 2 ms, more than opening a table does."""
    monkeypatch.setattr(choose, "active_session", lambda: pytest.fail("it was asked for"))
    monkeypatch.setattr(choose, "is_running", lambda: True)
    assert choose_engine(Workload()).why == "about 1 ms of work, and a Spark job takes 0.2 s before it begins"
    tw.write_dataset({"id": [1]}, "memory://no-session-asked-for").count_rows()


def test_the_active_session_is_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    active = session_with(2)
    monkeypatch.setattr(choose, "active_session", lambda: active)
    engine = choose_engine(WORK["an hour"]).engine
    assert engine._session is active  # type: ignore[attr-defined]


def test_small_work_does_not_ask_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "session_cores", lambda session: pytest.fail("a call to the JVM"))
    monkeypatch.setattr(choose, "available_bytes", lambda: pytest.fail("files of the system are read"))
    assert choose_engine(WORK["a point delete"], spark=session_with(2)).engine.name == "local"


def test_costs_can_be_given() -> None:
    assert choose_engine(WORK["an hour"], costs=Costs(start_seconds=-10_000)).engine.name == "spark"


def test_where_memory_is_unknown_nothing_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "available_bytes", lambda: None)
    assert choose_engine(WORK["much to hold"]).engine.name == "local"


def test_asked_for_is_asked_for() -> None:
    assert choose_engine(LARGE, "local").engine.name == "local"
    engine, why = choose_engine(Workload(), "spark")
    assert engine.name == "spark"
    assert why == 'engine="spark" was asked for'
    session = pyspark_like("SparkSession", "pyspark.sql.session")
    engine, why = choose_engine(Workload(), session)
    assert engine.name == "spark"
    assert "session was given" in why
    mine = LocalEngine(threads=1)
    assert choose_engine(LARGE, mine).engine is mine


def test_the_session_of_an_input_is_the_one_that_is_used() -> None:
    session = session_with(32)
    assert choose_engine(Workload(), "spark", spark=session).engine.session is session  # type: ignore[attr-defined]
    assert choose_engine(LARGE, "local", spark=session).engine.name == "local"


def test_some_work_stays_in_this_process() -> None:
    session = pyspark_like("SparkSession", "pyspark.sql.session")
    engine, why = choose_engine(LARGE, session, spark=session, location=Location("memory://table"))
    assert engine.in_process
    assert why == "the table lives in this process"
    engine, why = choose_engine(LARGE, "spark", stays_here="the values come from a stream")
    assert engine.in_process
    assert why == "the values come from a stream"
    assert not choose_engine(Workload(), "spark", location=Location("/tmp/table")).engine.in_process


def test_frames_go_to_the_session_that_is_meant() -> None:
    one, two = (pyspark_like("SparkSession", "pyspark.sql.session") for _ in range(2))
    frame = pyspark_like("DataFrame")
    frame.sparkSession = one
    assert frame_engine(two, two, frame).session is one
    assert frame_engine(one, two).session is one
    assert frame_engine("spark", two).session is two
    given = SparkEngine(one)
    assert frame_engine(given) is given
    assert frame_engine(given, two).session is two
    assert "not started" in repr(frame_engine("local"))


def test_what_can_not_be_sent_has_a_reason() -> None:
    assert why_not(len) is None
    assert "A task must be picklable and free of open files" in str(why_not(threading.Lock()))


def test_without_java_large_work_stays_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "_missing_java", lambda: "no Java 17 or newer was found")
    engine, why = choose_engine(WORK["much to hold"])
    assert engine.name == "local"
    assert why.startswith("it would go to Spark, but no Java 17 or newer was found: it holds about 5 GiB at once")
    assert choose_engine(WORK["much to hold"], spark=session_with(2)).engine.name == "spark"


@pytest.mark.parametrize("engine", ["Spark", "ray", 3, True, object()])
def test_nonsense_is_refused(engine: Any) -> None:
    with pytest.raises(InvalidRequest, match="engine must be None"):
        choose_engine(Workload(), engine)


def test_spark_values_are_known_by_their_class() -> None:
    classic = pyspark_like("DataFrame", "pyspark.sql.classic.dataframe")
    connect = pyspark_like("DataFrame", "pyspark.sql.connect.dataframe")
    pandas = pyspark_like("DataFrame", "pandas.core.frame")
    assert is_spark_frame(classic)
    assert is_spark_frame(connect)
    assert is_spark_frame(type("Mine", (type(classic),), {})())
    assert not is_spark_frame(pandas)
    assert not is_spark_frame(None)
    assert is_connect(connect)
    assert not is_connect(classic)
    assert is_spark_session(pyspark_like("SparkSession", "pyspark.sql.connect.session"))
    assert not is_spark_session(classic)


def test_choosing_small_work_does_not_import_pyspark() -> None:
    script = (
        "import sys; from tablewright.engine import Workload, choose_engine, is_spark_frame\n"
        "assert choose_engine(Workload(bytes_read=10**9)).engine.name == 'local' and not is_spark_frame([])\n"
        "print([name for name in sys.modules if name.startswith(('pyspark', 'py4j', 'rich'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("master", "parallelism", "settings", "cores"),
    [
        ("local[2]", 2, {}, 2),
        ("local[*]", 1, {}, 1),
        ("local[64]", 64, {}, 4),
        ("spark://host:7077", 12, {}, 12),
        ("yarn", 2, {"spark.dynamicAllocation.enabled": "true"}, 2),
        ("yarn", 2, {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "9"}, 9),
    ],
)
def test_cores_of_a_session(
    monkeypatch: pytest.MonkeyPatch, master: str, parallelism: int, settings: dict[str, str], cores: int
) -> None:
    monkeypatch.setattr("tablewright.engine.spark.session.default_threads", lambda: 4)
    session = pyspark_like("SparkSession", "pyspark.sql.session")
    session.sparkContext = SimpleNamespace(master=master, defaultParallelism=parallelism, getConf=lambda: settings)
    assert session_cores(session) == cores
    assert session_cores(pyspark_like("SparkSession", "pyspark.sql.connect.session")) == 4
