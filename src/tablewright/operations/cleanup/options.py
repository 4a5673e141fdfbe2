"""What a caller asks cleanup for, and how long a file that no version names is safe."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from tablewright.checks import check_flag, listed, whole_number
from tablewright.errors import InvalidRequest, WrongType

__all__ = ["DEFAULT_AGE", "UNVERIFIED_AGE", "CleanupOptions"]

DEFAULT_AGE = timedelta(days=14)
"""Versions younger than this stay, if the call says nothing about which versions go."""

UNVERIFIED_AGE = timedelta(days=7)
"""A file that no version names stays this long: it may belong to a writer that has not committed yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupOptions:
    """Which versions go: those that all of ``older_than``, ``retain_versions`` and ``versions`` allow.

    ``retain_versions`` keeps the newest ones. ``delete_unverified`` also removes young files that no version names,
    which destroys the work of writers that are under way. ``delete_rate_limit`` counts files per second,
    ``delete_concurrency`` threads.

    >>> CleanupOptions().older_than, CleanupOptions(retain_versions=3).older_than
    (datetime.timedelta(days=14), None)
    """

    older_than: timedelta | None = None
    retain_versions: int | None = None
    versions: Iterable[int] | None = None
    delete_unverified: bool = False
    error_if_tagged_old_versions: bool = True
    delete_rate_limit: int | None = None
    delete_concurrency: int | None = None

    def __post_init__(self) -> None:
        _check_age(self.older_than)
        for name in ("retain_versions", "delete_rate_limit", "delete_concurrency"):
            _check_positive(getattr(self, name), name)
        check_flag(self.delete_unverified, "delete_unverified")
        check_flag(self.error_if_tagged_old_versions, "error_if_tagged_old_versions")
        if self.versions is not None:
            object.__setattr__(self, "versions", _version_numbers(self.versions))
        if self.older_than is None and self.retain_versions is None and self.versions is None:
            object.__setattr__(self, "older_than", DEFAULT_AGE)


def _check_age(age: timedelta | None) -> None:
    if age is None:
        return
    if not isinstance(age, timedelta):
        raise WrongType(f"older_than must be a timedelta, got {age!r} of type {type(age).__name__}.")
    if age < timedelta(0):
        raise InvalidRequest(f"older_than must not be negative, got {age}: no version is younger than now.")


def _check_positive(value: int | None, name: str) -> None:
    if value is not None and whole_number(value, name, minimum=None) < 1:
        raise InvalidRequest(f"Invalid user input: {name} must be greater than 0, got {value}.")


def _version_numbers(versions: Iterable[int]) -> frozenset[int]:
    numbers = frozenset(
        whole_number(version, "each of versions", minimum=1) for version in listed(versions, "versions")
    )
    if not numbers:
        raise InvalidRequest("Invalid user input: versions must not be empty when specified.")
    return numbers
