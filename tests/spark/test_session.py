"""engine/spark/session.py: one session, made once, never somebody else's to stop."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from tablewright.engine import Workload, active_session, choose_engine, frame_engine
from tablewright.engine.spark.engine import SparkEngine
from tablewright.engine.spark.session import embedded_session
from tablewright.storage import open_store
from tablewright.world import World


def test_the_active_session_is_used(spark: Any) -> None:
    assert active_session() is spark
    assert embedded_session() is spark
    assert frame_engine().session is spark
    assert SparkEngine().session is spark
    assert choose_engine(Workload(), "spark").engine.session is spark  # type: ignore[attr-defined]
    assert choose_engine(Workload(held_bytes=10**12)).engine.session is spark  # type: ignore[attr-defined]


def test_a_given_session_wins(spark: Any, tmp_path: Path) -> None:
    other = spark.newSession()
    assert frame_engine(other).session is other
    assert frame_engine("spark", other).session is other
    assert SparkEngine(other).map(lambda task, world: abs(task), [-1], World(open_store(tmp_path))) == [1]


def test_the_embedded_session_is_small_and_safe(spark: Any) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.sparkContext.pythonExec == sys.executable
    assert spark.sparkContext.getConf().get("spark.driver.host") in ("127.0.0.1", "localhost")


def test_starting_left_the_environment_as_it_was(spark: Any) -> None:
    assert "SPARK_LOCAL_IP" not in os.environ
    assert "PYSPARK_DRIVER_PYTHON" not in os.environ
