"""What it cost to rebase past compactions: how many there were, and what was followed and carried."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Passed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Sums over all rewrites that one commit was rebased past.

    >>> once = Passed(rewrites=1, rows=3, seconds=0.25)
    >>> str(once + Passed(rewrites=1, rows=2, bytes_carried=1000, seconds=0.25))
    'rebased past 2 compactions: rows=5, bytes_carried=1000, seconds=0.500; nothing ran again'
    """

    rewrites: int = 0
    rows: int = 0
    bytes_carried: int = 0
    seconds: float = 0.0

    def __add__(self, other: Passed) -> Passed:
        return Passed(
            rewrites=self.rewrites + other.rewrites,
            rows=self.rows + other.rows,
            bytes_carried=self.bytes_carried + other.bytes_carried,
            seconds=self.seconds + other.seconds,
        )

    def __bool__(self) -> bool:
        return self.rewrites > 0

    def __str__(self) -> str:
        many = "s" if self.rewrites != 1 else ""
        cost = f"rows={self.rows}, bytes_carried={self.bytes_carried}, seconds={self.seconds:.3f}"
        return f"rebased past {self.rewrites} compaction{many}: {cost}; nothing ran again"
