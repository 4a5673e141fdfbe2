"""From what people call a table (a path or an address) to the world it is in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tablewright.errors import InvalidRequest, WrongType
from tablewright.storage import open_store
from tablewright.world import World

__all__ = ["instant_ns", "open_world"]


def open_world(uri: str | Path | World, storage_options: Mapping[str, str] | None = None) -> World:
    """A world around the store at ``uri``; a world as it is, so that tests bring their own. Nothing is read yet.

    >>> from tablewright.testing import memory_world
    >>> world = memory_world(seed=1)
    >>> open_world(world) is world
    True
    """
    if isinstance(uri, World):
        return uri
    if not isinstance(uri, str | Path):
        raise WrongType(f"uri must be a path or an address such as s3://bucket/table, got {uri!r}.")
    if not str(uri):
        raise InvalidRequest(f"uri must be a path or an address such as s3://bucket/table, got {uri!r}.")
    return World(store=open_store(uri, storage_options))


def instant_ns(moment: Any) -> int:
    """Nanoseconds since the epoch of a datetime, a pandas Timestamp or an ISO text; naive ones are local time.

    >>> instant_ns("1970-01-01T00:00:01+00:00")
    1000000000
    """
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment)
        except ValueError as error:
            raise InvalidRequest(
                f"Failed to parse timestamp string {moment!r}: use e.g. 2024-06-01 12:00:00."
            ) from error
    if not isinstance(moment, datetime) or moment != moment:  # pandas' NaT is a datetime that equals nothing
        raise WrongType(f"Unrecognized version timestamp {moment!r} of type {type(moment)}: give a datetime or text.")
    plain: datetime = moment
    if hasattr(moment, "to_pydatetime"):  # pandas refuses to take naive moments for local ones
        plain = moment.to_pydatetime(warn=False)
    try:
        elapsed = plain.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise InvalidRequest(f"The timestamp {moment!r} is beyond what a clock can tell: {error}.") from error
    return (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000_000 + elapsed.microseconds * 1000
