"""Re-exports under pylance's module name: functions that compute columns."""

from tablewright.api.udf import BatchUDF, batch_udf

__all__ = ["BatchUDF", "batch_udf"]
