"""SQL and Arrow expressions over rows: filters, projections, values. Names follow Lance, meaning DataFusion."""

from tablewright.expressions.filters import Filter, Predicate, compile_filter
from tablewright.expressions.sql import CompiledExpression, Projection, compile_projection, compile_sql

__all__ = [
    "CompiledExpression",
    "Filter",
    "Predicate",
    "Projection",
    "compile_filter",
    "compile_projection",
    "compile_sql",
]
