"""Running an operation again after a true conflict: ``conflict_retries`` and ``retry_timeout``.

The commit loop rebases a transaction as long as metadata suffice. When they don't, the operation has to run again on
the newest version; this is the loop around it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tablewright.errors import CommitConflict, InvalidRequest
from tablewright.transaction.events import log_conflict
from tablewright.world import World

__all__ = ["RetryOptions", "with_retries"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOptions:
    """How often, and for how long (seconds since the first conflict), an operation runs again.

    ``back_off_seconds_max`` is the longest pause before the next attempt. ``are_arguments``: the caller can choose
    them, so an error may advise to.
    """

    conflict_retries: int = 10
    retry_timeout_seconds: float = 30.0
    back_off_seconds_max: float = 2.0
    are_arguments: bool = False

    def __post_init__(self) -> None:
        if self.conflict_retries < 0:
            raise InvalidRequest(f"conflict_retries must be non-negative, got {self.conflict_retries}.")
        if self.retry_timeout_seconds < 0:
            raise InvalidRequest(f"retry_timeout must be non-negative, got {self.retry_timeout_seconds} s.")


def with_retries(world: World, run: Callable[[int], T], options: RetryOptions | None = None) -> T:
    """Call ``run`` with the number of the attempt (0, 1, …) until it commits; only retryable conflicts try again."""
    options = options or RetryOptions()
    started = world.clock.monotonic()
    for attempt in range(options.conflict_retries + 1):
        try:
            return run(attempt)
        except CommitConflict as conflict:
            elapsed = world.clock.monotonic() - started
            last = attempt == options.conflict_retries or elapsed >= options.retry_timeout_seconds
            table = world.store.location.uri
            if last or not conflict.retryable:
                log_conflict(table, conflict, attempt, "it fails")
                if not conflict.retryable:
                    raise
                raise _exhausted(conflict, attempt, elapsed, options) from conflict
            pause = min(options.back_off_seconds_max, 0.02 * 2 ** min(attempt, 10)) * world.jitter()
            log_conflict(table, conflict, attempt, f"it runs again in {pause:.3f} s")
            world.clock.sleep(pause)
    raise AssertionError("unreachable")


def _exhausted(conflict: CommitConflict, retries: int, elapsed: float, options: RetryOptions) -> CommitConflict:
    """The last conflict, with what was tried and which argument allows more."""
    reason = conflict.reason
    if retries:
        reason = f"Too many concurrent writers. Attempted {retries} retries in {elapsed:.1f} s"
    if options.are_arguments:
        limit = f"conflict_retries={options.conflict_retries}"
        if retries < options.conflict_retries:
            limit = f"retry_timeout={options.retry_timeout_seconds:g} s"
        advice = f"It ran with {limit}; a higher conflict_retries= or retry_timeout= tries longer"
        reason = f"{reason}. {advice}" if reason else advice
    return CommitConflict(conflict.ours, conflict.theirs, conflict.version, fragments=conflict.fragments, reason=reason)
