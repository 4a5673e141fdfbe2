"""A shop window under pylance's name: functions that make columns."""

from tablewright.api.udf import BatchUDF, batch_udf

__all__ = ["BatchUDF", "batch_udf"]
