"""Statistics of a table as pylance has them: of the table, of its data, of an index."""

from tablewright.operations.statistics.index import index_statistics
from tablewright.operations.statistics.table import field_bytes, table_statistics

__all__ = ["field_bytes", "index_statistics", "table_statistics"]
