"""Sizes by which a feed is cut. Its rows and their order do not depend on them.

Tests: ``tests/unit/operations/change_feed/test_task.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_FEED_LIMITS", "FeedLimits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedLimits:
    """A task has rows of some ``task_bytes``, and expands ``rows_at_a_time`` of them.

    The runs of more than ``few_fragments`` are read from their bytes together.
    """

    task_bytes: int = 64 * 1024 * 1024
    rows_at_a_time: int = 1 << 17
    few_fragments: int = 16


DEFAULT_FEED_LIMITS = FeedLimits()
