"""Automatic cleanup after calls that commit, and its options under pylance's names.

Every public call that commits is decorated with :func:`commits` and has the argument ``skip_auto_cleanup``. A call that
makes another one is one call: the outermost decides.

Tests: ``tests/unit/api/test_auto_cleanup.py``, ``tests/differential/test_auto_cleanup.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypedDict, TypeVar

from tablewright.api.ignored import warn_caller
from tablewright.checks import check_flag, whole_number
from tablewright.errors import InvalidRequest
from tablewright.jobs.cleanup import clean_up
from tablewright.jobs.table import Table
from tablewright.operations.cleanup.auto import PREFIX, auto_options, is_due
from tablewright.operations.cleanup.durations import format_duration
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.recorded import recorded_commits

__all__ = ["AutoCleanupConfig", "cleanup_config", "commits"]

P = ParamSpec("P")
R = TypeVar("R")
_NAMES = {"interval": "interval", "older_than_seconds": "older_than", "retain_versions": "retain_versions"}


class AutoCleanupConfig(TypedDict, total=False):
    """After every ``interval`` versions, remove those that are older than this many seconds."""

    interval: int
    older_than_seconds: int
    retain_versions: int


def commits(call: Callable[P, R]) -> Callable[P, R]:
    """A call that commits: afterwards the table is cleaned up, if its config asks for it.

    The argument ``skip_auto_cleanup=True`` of the call leaves that out.
    """

    @wraps(call)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        skip = kwargs.get("skip_auto_cleanup", False)
        check_flag(skip, "skip_auto_cleanup")
        with recorded_commits() as made:
            result = call(*args, **kwargs)
        if made and not skip:
            _clean_up_after(made)
        return result

    return called


def _clean_up_after(made: Sequence[Snapshot]) -> None:
    """The version is committed whatever happens here, so a failure is only a warning."""
    newest = made[-1]
    config = newest.manifest.config
    try:
        if is_due(config, [snapshot.version for snapshot in made]):
            clean_up(Table(newest, "local"), auto_options(config), current=newest.version - 1)
    except Exception as error:
        warn_caller(f"Version {newest.version} was committed; the automatic cleanup after it failed: {error}")


def cleanup_config(options: Mapping[str, Any] | None) -> dict[str, str]:
    """Table config for automatic cleanup, from pylance's ``auto_cleanup_options``.

    >>> cleanup_config({"interval": 20, "older_than_seconds": 3600})
    {'lance.auto_cleanup.interval': '20', 'lance.auto_cleanup.older_than': '1h'}
    """
    config: dict[str, str] = {}
    if options is not None and not isinstance(options, Mapping):
        raise InvalidRequest(f"auto_cleanup_options is a dict, not {options!r}.")
    for key, value in (options or {}).items():
        if value is not None:
            whole_number(value, f"auto_cleanup_options[{key!r}]")
        if key not in _NAMES:
            raise InvalidRequest(f"Unknown key in auto_cleanup_options: {key}. Use {', '.join(_NAMES)}.")
        if value is not None:
            config[PREFIX + _NAMES[key]] = format_duration(int(value)) if key == "older_than_seconds" else str(value)
    return config
