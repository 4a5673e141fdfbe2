"""Automatic cleanup as a table's config asks for it: ``lance.auto_cleanup.*``, with pylance's meaning.

It runs after the commit of every version whose number is a multiple of ``interval``, and removes what is older than
``older_than`` and not among the newest ``retain_versions``; without both, everything before the version below the new
one. Tagged versions are passed over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from tablewright.errors import InvalidRequest
from tablewright.operations.cleanup.durations import parse_duration
from tablewright.operations.cleanup.options import CleanupOptions

__all__ = ["PREFIX", "auto_options", "is_due"]

PREFIX = "lance.auto_cleanup."


def is_due(config: Mapping[str, str], versions: Iterable[int]) -> bool:
    """Whether one of the versions that were just committed is one to clean up after.

    >>> is_due({"lance.auto_cleanup.interval": "3"}, [4, 6]), is_due({}, [6])
    (True, False)
    """
    if PREFIX + "interval" not in config:
        return False
    interval = _number(config, "interval")
    return any(version % interval == 0 for version in versions)


def auto_options(config: Mapping[str, str]) -> CleanupOptions:
    """What the config asks for. :class:`InvalidRequest` names the key that can't be understood.

    >>> auto_options({"lance.auto_cleanup.older_than": "2h"}).older_than
    datetime.timedelta(seconds=7200)
    """
    retain_versions = _number_or_none(config, "retain_versions")
    age = _age(config)
    return CleanupOptions(
        older_than=timedelta(0) if age is None and retain_versions is None else age,
        retain_versions=retain_versions,
        error_if_tagged_old_versions=False,
        delete_rate_limit=_number_or_none(config, "delete_rate_limit"),
        delete_concurrency=_number_or_none(config, "delete_concurrency"),
    )


def _age(config: Mapping[str, str]) -> timedelta | None:
    text = config.get(PREFIX + "older_than")
    try:
        return None if text is None else parse_duration(text)
    except InvalidRequest as error:
        raise InvalidRequest(f"{PREFIX}older_than: {error}") from None


def _number_or_none(config: Mapping[str, str], key: str) -> int | None:
    return _number(config, key) if PREFIX + key in config else None


def _number(config: Mapping[str, str], key: str) -> int:
    text = config[PREFIX + key].strip()
    if not text.isdecimal() or int(text) < 1:
        raise InvalidRequest(f"{PREFIX}{key} must be a whole number greater than 0, not {text!r}.")
    return int(text)
