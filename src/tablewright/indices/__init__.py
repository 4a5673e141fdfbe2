"""Indices: which rows hold a key, which fragments an index covers, and how its files are built and rewritten."""

from tablewright.indices.btree import BTreeIndex, BTreeMatches, covered, find_rows, live_addresses, usable_btrees
from tablewright.indices.config import IndexConfig

__all__ = ["BTreeIndex", "BTreeMatches", "IndexConfig", "covered", "find_rows", "live_addresses", "usable_btrees"]
