"""Knowing Spark's values without importing Spark.

The class of a DataFrame or session is recognized by its module and name, in the classic API and in Spark Connect alike.
So a caller who does not use Spark does not pay for importing it.

Tests: tests/unit/engine/test_choose.py
"""

from __future__ import annotations

from tablewright.errors import WrongType

__all__ = ["check_session", "is_connect", "is_spark_frame", "is_spark_session", "is_struct_type"]


def is_spark_frame(value: object) -> bool:
    """Whether ``value`` is a Spark DataFrame, classic or Connect.

    >>> is_spark_frame([1, 2])
    False
    """
    return _is_pyspark(value, "DataFrame")


def is_spark_session(value: object) -> bool:
    """Whether ``value`` is a Spark session, classic or Connect."""
    return _is_pyspark(value, "SparkSession")


def check_session(spark: object) -> None:
    """Refuse what is given as ``spark=`` and is no session.

    >>> check_session("local")
    Traceback (most recent call last):
    tablewright.errors.WrongType: spark must be a SparkSession, got 'local' of type str.
    """
    if spark is not None and not is_spark_session(spark):
        raise WrongType(f"spark must be a SparkSession, got {spark!r} of type {type(spark).__name__}.")


def is_struct_type(value: object) -> bool:
    """Whether ``value`` is a schema of Spark."""
    return _is_pyspark(value, "StructType")


def is_connect(value: object) -> bool:
    """Whether a Spark DataFrame or session belongs to Spark Connect."""
    return any(kind.__module__.startswith("pyspark.sql.connect") for kind in type(value).__mro__)


def _is_pyspark(value: object, name: str) -> bool:
    return any(kind.__name__ == name and kind.__module__.startswith("pyspark.sql.") for kind in type(value).__mro__)
