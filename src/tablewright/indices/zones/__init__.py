"""Kinds of indices that describe zones: ranges of physical rows of one fragment, each with a summary of its values.

A zone can only say that a value is not there, so answers are ranges of candidate rows, and rows with nulls.
"""

from tablewright.indices.zones.build import build_zones
from tablewright.indices.zones.file import ZoneReader, ranges_of, united_ranges
from tablewright.indices.zones.remap import remap_zone_index
from tablewright.indices.zones.summary import ZoneSummary

__all__ = ["ZoneReader", "ZoneSummary", "build_zones", "ranges_of", "remap_zone_index", "united_ranges"]
