"""ZONEMAP: the smallest and largest value of every zone, how many nulls and NaN it has, and which rows are null.

Answers comparisons, prefixes and IS NULL; all but the last as candidates that have to be checked.

Format: ``docs/format/indices.md#zonemap-files``.
"""

from tablewright.indices.zonemap.build import build, remap_zones, supported
from tablewright.indices.zonemap.search import answers, estimate, search

__all__ = ["answers", "build", "estimate", "remap_zones", "search", "supported"]
