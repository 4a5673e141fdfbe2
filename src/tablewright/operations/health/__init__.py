"""Health of a table: what its deletions, small fragments, old versions and indices cost, and what to do about it."""

from tablewright.operations.health.measure import measure_health, measure_latest
from tablewright.operations.health.options import HealthOptions
from tablewright.operations.health.report import TableHealth

__all__ = ["HealthOptions", "TableHealth", "measure_health", "measure_latest"]
