"""The data source ``tablewright``, where Spark looks for it.

Spark imports every top-level module whose name begins with ``pyspark_``, once per session, in a process of its own, and
registers what it calls ``DefaultSource``. So ``spark.read.format("tablewright")`` needs no call beforehand, and this
module imports next to nothing.

Tests: tests/unit/spark/test_source.py, tests/spark/test_source.py
"""

from tablewright.spark.source import TablewrightSource as DefaultSource

__all__ = ["DefaultSource"]
