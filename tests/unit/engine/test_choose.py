"""engine/choose.py and engine/detect.py: who runs the work, and why. No JVM starts here."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest

from tablewright.engine import choose
from tablewright.engine.choose import MIB, Thresholds, choose_engine, frame_engine, why_not
from tablewright.engine.detect import is_connect, is_spark_frame, is_spark_session
from tablewright.engine.local import LocalEngine
from tablewright.engine.spark.engine import SparkEngine
from tablewright.errors import InvalidRequest
from tablewright.storage.base import Location


def pyspark_like(name: str, module: str = "pyspark.sql.classic.dataframe") -> Any:
    return type(name, (), {"__module__": module})()


@pytest.fixture(autouse=True)
def _java_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "_missing_java", lambda: None)
    monkeypatch.setattr(choose, "active_session", lambda: None)


@pytest.fixture
def _active(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "active_session", lambda: pyspark_like("SparkSession", "pyspark.sql.session"))


@pytest.mark.parametrize(("size", "name"), [(0, "local"), (256 * MIB - 1, "local"), (256 * MIB, "spark")])
def test_by_bytes_where_a_session_would_have_to_start(size: int, name: str) -> None:
    engine, why = choose_engine(size)
    assert engine.name == name
    assert "256 MiB" in why
    assert "no Spark session is active" in why


@pytest.mark.usefixtures("_active")
@pytest.mark.parametrize(("size", "name"), [(0, "local"), (64 * MIB - 1, "local"), (64 * MIB, "spark")])
def test_by_bytes_where_a_session_is_active(size: int, name: str) -> None:
    engine, why = choose_engine(size)
    assert engine.name == name
    assert "64 MiB" in why
    assert "a Spark session is active" in why


def test_thresholds_can_be_set() -> None:
    assert choose_engine(10, thresholds=Thresholds(embedded_bytes=10)).engine.name == "spark"


def test_asked_for_is_asked_for() -> None:
    assert choose_engine(1 << 50, "local").engine.name == "local"
    engine, why = choose_engine(0, "spark")
    assert engine.name == "spark"
    assert why == 'engine="spark" was asked for'
    session = pyspark_like("SparkSession", "pyspark.sql.session")
    engine, why = choose_engine(0, session)
    assert engine.name == "spark"
    assert "session was given" in why
    mine = LocalEngine(threads=1)
    assert choose_engine(1 << 50, mine).engine is mine


def test_a_spark_input_stays_in_spark() -> None:
    session = pyspark_like("SparkSession", "pyspark.sql.connect.session")
    engine, why = choose_engine(0, spark=session)
    assert engine.name == "spark"
    assert engine.session is session  # type: ignore[attr-defined]
    assert why == "the input is a Spark DataFrame"
    assert choose_engine(0, "local", spark=session).engine.name == "local"


def test_some_work_stays_in_this_process() -> None:
    session = pyspark_like("SparkSession", "pyspark.sql.session")
    engine, why = choose_engine(1 << 50, session, spark=session, location=Location("memory://table"))
    assert engine.in_process
    assert why == "the table lives in this process"
    engine, why = choose_engine(1 << 50, "spark", stays_here="the values come from a stream")
    assert engine.in_process
    assert why == "the values come from a stream"
    assert not choose_engine(0, "spark", location=Location("/tmp/table")).engine.in_process


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
    engine, why = choose_engine(1 << 40)
    assert engine.name == "local"
    assert why == "about 1 TiB of work would go to Spark, but no Java 17 or newer was found"


@pytest.mark.parametrize("engine", ["Spark", "ray", 3, True, object()])
def test_nonsense_is_refused(engine: Any) -> None:
    with pytest.raises(InvalidRequest, match="engine must be None"):
        choose_engine(0, engine)


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
        "import sys; from tablewright.engine import choose_engine, is_spark_frame\n"
        "assert choose_engine(1000).engine.name == 'local' and not is_spark_frame([])\n"
        "print([name for name in sys.modules if name.startswith(('pyspark', 'py4j', 'rich'))])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_single_task_runs_here_unless_spark_is_asked_for() -> None:
    choice = choose_engine(10**12, tasks=1)
    assert (choice.engine.name, "one task" in choice.why) == ("local", True)
    assert choose_engine(10**12, "spark", tasks=1).engine.name == "spark"
