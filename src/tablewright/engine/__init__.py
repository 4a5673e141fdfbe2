"""Where tasks run: threads in this process, or Spark."""

from tablewright.engine.base import Engine, FrameEngine, Gathered, Outcome
from tablewright.engine.choose import Choice, choose_engine, frame_engine, why_not
from tablewright.engine.costs import Costs, Workload
from tablewright.engine.detect import is_spark_frame, is_spark_session
from tablewright.engine.flow import flow
from tablewright.engine.local import LocalEngine
from tablewright.engine.spark.session import active_session

__all__ = [
    "Choice",
    "Costs",
    "Engine",
    "FrameEngine",
    "Gathered",
    "LocalEngine",
    "Outcome",
    "Workload",
    "active_session",
    "choose_engine",
    "flow",
    "frame_engine",
    "is_spark_frame",
    "is_spark_session",
    "why_not",
]
