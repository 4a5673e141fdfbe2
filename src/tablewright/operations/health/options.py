"""What a caller of ``health`` decides: how the table is used, and how much may be measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tablewright.checks import check_flag, whole_number
from tablewright.errors import InvalidRequest, WrongType

__all__ = ["DEFAULT_TARGET_ROWS", "HealthOptions", "Limits", "target_rows_of"]

DEFAULT_TARGET_ROWS = 1024 * 1024
_TARGET_KEY = "lance.compaction.target_rows_per_fragment"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where work becomes worth it: shares from 0 to 1 that must be exceeded, and a count of fragments to be reached.

    ``deleted_share`` and ``dead_columns_share`` are those of a fragment, ``unindexed_share`` is that of an index,
    ``reclaimable_share`` that of all bytes on disk.
    """

    deleted_share: float
    unindexed_share: float
    small_fragments: int
    dead_columns_share: float = 0.3
    reclaimable_share: float = 0.2
    versions: int = 1000


_LIMITS = {
    "read": Limits(deleted_share=0.05, unindexed_share=0.05, small_fragments=4),
    "mixed": Limits(deleted_share=0.1, unindexed_share=0.1, small_fragments=10),
    "write": Limits(deleted_share=0.2, unindexed_share=0.2, small_fragments=50),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthOptions:
    """Options of ``health``, checked.

    ``versions`` bounds how many of the newest versions are compared for growth; ``sample`` switches the measured scan
    on, ``sample_rows`` and ``sample_seconds`` bound it.

    >>> HealthOptions(workload="read").limits.deleted_share
    0.05
    """

    workload: str = "mixed"
    target_rows_per_fragment: int | None = None
    versions: int = 10
    sample: bool = True
    sample_rows: int = 1_000_000
    sample_seconds: float = 2.0

    def __post_init__(self) -> None:
        if self.workload not in _LIMITS:
            raise InvalidRequest(f"Unknown workload {self.workload!r}: use 'read', 'mixed' or 'write'.")
        if self.target_rows_per_fragment is not None:
            whole_number(self.target_rows_per_fragment, "target_rows_per_fragment", minimum=1)
        whole_number(self.versions, "versions")
        check_flag(self.sample, "sample")
        whole_number(self.sample_rows, "sample_rows", minimum=1)
        check_seconds(self.sample_seconds, "sample_seconds")

    @property
    def limits(self) -> Limits:
        """The limits of the workload."""
        return _LIMITS[self.workload]


def check_seconds(value: Any, name: str) -> float:
    """A number of seconds, not negative."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongType(f"Invalid user input: {name} must be a number of seconds, got {value!r}.")
    if math.isnan(value) or value < 0:
        raise InvalidRequest(f"Invalid user input: {name} must be non-negative, got {value!r}.")
    return float(value)


def target_rows_of(options: HealthOptions, config: Mapping[str, str]) -> int:
    """The rows that a fragment should have: as given, else from the table's config, else 1,048,576."""
    if options.target_rows_per_fragment is not None:
        return options.target_rows_per_fragment
    text = config.get(_TARGET_KEY, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) else DEFAULT_TARGET_ROWS
