"""Sizes and costs by which a merge decides how it works. What it does to the table does not depend on them.

Tests: ``tests/unit/operations/merge_insert/match/test_strategy.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablewright.operations.rewrite.limits import DEFAULT_LIMITS, RewriteLimits

__all__ = ["DEFAULT_MERGE_LIMITS", "MatchLimits", "MergeLimits", "SourceLimits"]

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLimits:
    """A source stays in memory up to ``memory_bytes``; small batches are put together to parts of ``part_bytes``."""

    memory_bytes: int = 256 * _MIB
    part_bytes: int = 16 * _MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchLimits:
    """How many keys this process looks up in a pass, and a worker holds; more are shuffled, where an engine can.

    A lookup in an index costs ``lookup_ns`` to begin with and ``lookup_key_ns`` per key, a row that is read by its
    offset ``take_row_ns``, a scan ``scan_row_ns`` per row and ``scan_byte_ns`` per byte of a row, in nanoseconds, as
    measured. A shuffle has tasks of ``shuffle_task_rows``
    source rows or ``shuffle_task_bytes`` of the table's keys, and partitions of ``shuffle_partition_rows`` rows of both
    sides.
    """

    keys_per_pass: int = 1 << 22
    key_bytes_per_pass: int = 128 * _MIB
    keys_per_worker: int = 1 << 20
    key_bytes_per_worker: int = 32 * _MIB
    lookup_ns: float = 6_000_000
    lookup_key_ns: float = 5_000
    take_row_ns: float = 1_000
    scan_row_ns: float = 10
    scan_byte_ns: float = 1.5
    shuffle_task_rows: int = 1 << 20
    shuffle_task_bytes: int = 16 * _MIB
    shuffle_partition_rows: int = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeLimits:
    """All limits of a merge.

    Inserted rows go in tasks of ``insert_bytes``, and in files of ``rewrite.rows_per_file``; ``hidden_per_task``
    fragments get their deletion files by one task.
    """

    source: SourceLimits = SourceLimits()
    match: MatchLimits = MatchLimits()
    rewrite: RewriteLimits = DEFAULT_LIMITS
    insert_bytes: int = 256 * _MIB
    hidden_per_task: int = 256


DEFAULT_MERGE_LIMITS = MergeLimits()
