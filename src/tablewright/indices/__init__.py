"""Reading indices: which rows hold a key, and which fragments an index covers."""

from tablewright.indices.btree import BTreeIndex, BTreeMatches
from tablewright.indices.btree_rows import covered, find_rows, live_addresses, usable_btrees

__all__ = ["BTreeIndex", "BTreeMatches", "covered", "find_rows", "live_addresses", "usable_btrees"]
