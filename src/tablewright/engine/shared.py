"""Locations that several processes reach.

Tests: tests/spark/test_frames.py
"""

from __future__ import annotations

from tablewright.errors import InvalidRequest
from tablewright.storage.base import Location

__all__ = ["require_shared"]


def require_shared(location: Location) -> None:
    """Refuse locations that Spark's workers, which are other processes, can't reach.

    >>> require_shared(Location("memory://table"))
    Traceback (most recent call last):
    tablewright.errors.InvalidRequest: memory://table lives in the memory of this process, ...
    """
    if location.is_of_this_process:
        raise InvalidRequest(
            f"{location.uri} lives in the memory of this process, and Spark's workers are other processes: "
            "use a path or an object store that all of them reach."
        )
