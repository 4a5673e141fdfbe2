"""Schemas of Spark's DataFrames in Arrow's terms, for modules that do not know Spark."""

from __future__ import annotations

from tablewright.engine.spark.inputs import adopted_schema, requested_schema
from tablewright.engine.spark.types import arrow_schema, frame_schema

__all__ = ["adopted_schema", "arrow_schema", "frame_schema", "requested_schema"]
