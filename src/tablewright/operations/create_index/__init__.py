"""Indices are built and kept up to date: what is asked, what is planned, and the transaction at the end. Pure.

Tests: ``tests/unit/operations/create_index``.
"""

from tablewright.operations.create_index.finish import finish_indices
from tablewright.operations.create_index.merge import OptimizeOptions, plan_optimize
from tablewright.operations.create_index.options import IndexRequest
from tablewright.operations.create_index.plan import plan_index
from tablewright.operations.create_index.segment import IndexPlan, KeptSegment, SegmentPlan

__all__ = [
    "IndexPlan",
    "IndexRequest",
    "KeptSegment",
    "OptimizeOptions",
    "SegmentPlan",
    "finish_indices",
    "plan_index",
    "plan_optimize",
]
