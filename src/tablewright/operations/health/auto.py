"""The values of ``optimize.auto``: what it may do, and what it did and why.

Tests: ``tests/unit/jobs/test_auto.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tablewright.checks import whole_number
from tablewright.operations.cleanup.auto import PREFIX, auto_options
from tablewright.operations.cleanup.options import CleanupOptions
from tablewright.operations.compact.plan import CompactionTask
from tablewright.operations.health.options import HealthOptions, check_seconds

__all__ = ["DONE", "FAILED", "SKIPPED", "AutoOptions", "AutoReport", "AutoStep", "cleanup_options_of", "rounds_of"]

DONE, SKIPPED, FAILED = "done", "skipped", "failed"
_ROUND_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoOptions:
    """Bounds of one run: ``max_bytes`` of data files that compaction reads, and ``max_seconds`` after which no further
    step begins. ``workload`` and ``target_rows_per_fragment`` are those of ``health``.
    """

    workload: str = "mixed"
    target_rows_per_fragment: int | None = None
    max_bytes: int | None = None
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.max_bytes is not None:
            whole_number(self.max_bytes, "max_bytes", minimum=1)
        if self.max_seconds is not None:
            check_seconds(self.max_seconds, "max_seconds")
        _ = self.health

    @property
    def health(self) -> HealthOptions:
        """What is measured to decide."""
        return HealthOptions(
            workload=self.workload,
            target_rows_per_fragment=self.target_rows_per_fragment,
            versions=0,
            sample=False,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoStep:
    """One recommended action: ``outcome`` is ``done``, ``skipped`` or ``failed``.

    ``reason`` is why it was recommended, ``note`` why it was skipped, failed or ended early; ``figures`` what it did.
    """

    action: str
    outcome: str
    reason: str
    note: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={_shown(value)}" for name, value in self.figures.items() if value)
        parts = [f"{self.action}: {self.outcome}", self.note, shown]
        return "; ".join(part for part in parts if part) + f"\n    because {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoReport:
    """What a run did: the versions before and after, and its steps in order, none if there was nothing to do."""

    uri: str
    version_before: int
    version_after: int
    steps: tuple[AutoStep, ...]
    seconds: float
    reason: str = ""

    def step(self, action: str) -> AutoStep | None:
        """The step of an action, if it was recommended."""
        return next((step for step in self.steps if step.action == action), None)

    def to_dict(self) -> dict[str, Any]:
        """As plain values that ``json.dumps`` takes."""
        return asdict(self) | {"steps": [asdict(step) | {"figures": dict(step.figures)} for step in self.steps]}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield (
            f"Optimized {self.uri} in {self.seconds:.1f} s: version {self.version_before} became {self.version_after}"
            if self.version_after != self.version_before
            else f"Optimized {self.uri} in {self.seconds:.1f} s: still version {self.version_after}"
        )
        yield from (f"  {step}" for step in self.steps)
        if not self.steps:
            yield f"  nothing to do: {self.reason}"


def cleanup_options_of(config: Mapping[str, str]) -> CleanupOptions:
    """What a cleanup of a table removes: as ``lance.auto_cleanup.*`` of its config say, else what is two weeks old.

    Tagged versions stay. :class:`~tablewright.errors.InvalidRequest` names a key that can't be understood.

    >>> cleanup_options_of({"lance.auto_cleanup.older_than": "2h"}).older_than
    datetime.timedelta(seconds=7200)
    """
    if any(PREFIX + key in config for key in ("older_than", "retain_versions")):
        return auto_options(config)
    return CleanupOptions(error_if_tagged_old_versions=False)


def rounds_of(tasks: Sequence[CompactionTask], *, timed: bool) -> list[tuple[CompactionTask, ...]]:
    """The tasks in rounds that are committed one by one: a single one, or, if time is bounded, of 256 MiB each."""
    if not timed:
        return [tuple(tasks)] if tasks else []
    rounds: list[list[CompactionTask]] = []
    room = 0
    for task in tasks:
        if not rounds or task.source_bytes > room:
            rounds.append([])
            room = _ROUND_BYTES
        rounds[-1].append(task)
        room -= task.source_bytes
    return [tuple(some) for some in rounds]


def _shown(value: float) -> str:
    """Counts whole, seconds with three digits."""
    return str(int(value)) if value == int(value) else f"{value:.3g}"
