"""Where tasks run: threads in this process, or Spark."""

from tablewright.engine.base import Engine
from tablewright.engine.choose import Choice, Thresholds, choose_engine
from tablewright.engine.detect import active_session, is_spark_frame, is_spark_session
from tablewright.engine.local import LocalEngine, flow

__all__ = [
    "Choice",
    "Engine",
    "LocalEngine",
    "Thresholds",
    "active_session",
    "choose_engine",
    "flow",
    "is_spark_frame",
    "is_spark_session",
]
