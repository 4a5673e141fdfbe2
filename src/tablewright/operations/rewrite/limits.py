"""How much one task writes, and one file holds, when rows of existing fragments change.

Tests: ``tests/unit/operations/rewrite/test_groups.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_LIMITS", "RewriteLimits"]

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteLimits:
    """Rows that move go in groups of fragments: until there are ``bytes_per_group``, or ``rows_per_group`` of them.

    A new file has at most ``rows_per_file``. Fragments whose ids go up and down are read in the order of ids for up to
    ``up_and_down_rows`` only.
    """

    bytes_per_group: int = 64 * _MIB
    rows_per_group: int = 1024 * 1024
    rows_per_file: int = 1024 * 1024
    up_and_down_rows: int = 1 << 17


DEFAULT_LIMITS = RewriteLimits()
