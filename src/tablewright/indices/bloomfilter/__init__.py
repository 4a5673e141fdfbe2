"""BLOOMFILTER: a Bloom filter of the values of every zone, and which rows are null.

Answers equality, IN and IS NULL; all but the last as candidates that have to be checked.

Format: ``docs/format/indices.md#bloomfilter-files``.
"""

from tablewright.indices.bloomfilter.build import build, remap_zones
from tablewright.indices.bloomfilter.hashes import supported
from tablewright.indices.bloomfilter.search import answers, estimate, search

__all__ = ["answers", "build", "estimate", "remap_zones", "search", "supported"]
