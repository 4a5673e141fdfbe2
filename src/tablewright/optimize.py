"""``tablewright.optimize``: compaction in steps, where pylance has it.

Tests: ``tests/unit/api/test_optimize.py``.
"""

from tablewright.api.compaction import Compaction, CompactionMetrics, CompactionPlan, CompactionTask, RewriteResult
from tablewright.api.optimize import DatasetOptimizer
from tablewright.operations.compact.options import CompactionOptions

__all__ = [
    "Compaction",
    "CompactionMetrics",
    "CompactionOptions",
    "CompactionPlan",
    "CompactionTask",
    "DatasetOptimizer",
    "RewriteResult",
]
