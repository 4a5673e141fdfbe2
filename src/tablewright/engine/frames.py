"""Schemas of Spark's DataFrames in Arrow's terms, for modules that do not know Spark."""

from __future__ import annotations

from tablewright.engine.spark.inputs import incoming_schema
from tablewright.engine.spark.types import arrow_schema, frame_schema

__all__ = ["arrow_schema", "frame_schema", "incoming_schema"]
