"""BTREE indices: build, search, remap, and lookups of many keys for merges."""

from tablewright.indices.btree.build import build
from tablewright.indices.btree.lookup import BTreeIndex, BTreeMatches
from tablewright.indices.btree.remap import remap
from tablewright.indices.btree.rows import covered, find_rows, live_addresses, usable_btrees
from tablewright.indices.btree.search import answers, estimate, find, search, supported

__all__ = [
    "BTreeIndex",
    "BTreeMatches",
    "answers",
    "build",
    "covered",
    "estimate",
    "find",
    "find_rows",
    "live_addresses",
    "remap",
    "search",
    "supported",
    "usable_btrees",
]
