"""engine/spark/session.py, the part without a JVM; the rest is in tests/spark/test_session.py."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext

from tablewright.engine.spark import session


def _getting(monkeypatch: pytest.MonkeyPatch, context: Any) -> list[Any]:
    """The contexts that PySpark remembers each time a session is asked for, beginning with this one."""
    remembered: list[Any] = []

    class Builder:
        def appName(self, name: str) -> Builder:
            return self

        def getOrCreate(self) -> str:
            remembered.append(SparkContext._active_spark_context)
            return "session"

    monkeypatch.setenv("SPARK_REMOTE", "sc://127.0.0.1:1")  # the environment decides: no JVM is started
    monkeypatch.setattr("pyspark.sql.SparkSession.builder", Builder())
    monkeypatch.setattr(SparkContext, "_active_spark_context", context)
    return remembered


def test_a_session_waits_for_a_context_that_another_thread_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    remembered = _getting(monkeypatch, SimpleNamespace(_jsc=None))

    def forget() -> None:
        time.sleep(0.1)
        SparkContext._active_spark_context = None

    thread = threading.Thread(target=forget)
    thread.start()
    assert session.embedded_session() == "session"
    thread.join()
    assert remembered == [None]


def test_a_stop_that_never_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = SimpleNamespace(_jsc=None)
    remembered = _getting(monkeypatch, stopped)
    monkeypatch.setattr(session, "STOP_SECONDS_MAX", 0.05)
    assert session.embedded_session() == "session"
    assert remembered == [stopped]


def test_a_context_without_a_session_is_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    alive = SimpleNamespace(_jsc="java")
    remembered = _getting(monkeypatch, alive)
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    assert session.embedded_session() == "session"
    assert remembered == [alive]
