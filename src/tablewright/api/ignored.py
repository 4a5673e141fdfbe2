"""Arguments that are accepted because scripts pass them, and have no effect: a warning says so at once.

Automatic cleanup comes with compaction and cleanup. Until then its options are stored in the table's config, where
other Lance writers act on them, and Tablewright removes no version.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from tablewright.checks import whole_number
from tablewright.errors import InvalidRequest
from tablewright.operations.write import WriteSettings
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["cleanup_config", "tell_cleanup", "tell_only_at_creation", "tell_unused_lock"]

_PREFIX = "lance.auto_cleanup."
_NAMES = {"interval": "interval", "older_than_seconds": "older_than", "retain_versions": "retain_versions"}
_UNITS = {"year": 31_557_600, "month": 2_630_016, "day": 86_400, "h": 3600, "m": 60, "s": 1}


def tell_cleanup(config: Iterable[str]) -> None:
    """Warn if config keys ask for automatic cleanup."""
    keys = sorted(key for key in config if isinstance(key, str) and key.startswith(_PREFIX))
    if keys:
        _warn(
            f"{', '.join(keys)}: this release of Tablewright does not clean up old versions. The setting is stored in "
            "the table's config, and only writers that have automatic cleanup, such as pylance, act on it."
        )


def tell_only_at_creation(settings: WriteSettings, snapshot: Snapshot) -> None:
    """Warn if settings were given that only count for a new table, and the table that is there has others."""
    manifest = snapshot.manifest
    if settings.enable_stable_row_ids and not manifest.stable_row_ids:
        _warn(
            f"enable_stable_row_ids=True has no effect: {snapshot.location.uri} exists and has none. "
            "dataset.enable_stable_row_ids() switches them on."
        )
    if settings.config:
        _warn(f"auto_cleanup_options has no effect: {snapshot.location.uri} exists. Use dataset.update_config().")
    asked = settings.data_storage_version
    if settings.mode == "append" and asked is not None and _number(asked) not in (None, manifest.data_storage_version):
        _warn(
            f"data_storage_version={asked!r} has no effect: {snapshot.location.uri} exists with files of version "
            f"{manifest.data_storage_version}, and an append writes the same."
        )


def tell_unused_lock(commit_lock: Any) -> None:
    """Warn about a lock that is given to ``dataset()``."""
    if commit_lock is not None:
        _warn(
            "commit_lock has no effect in dataset(): a version is published by put-if-absent, which needs no lock. "
            "write_dataset() and LanceDataset.commit() take a lock."
        )


def _warn(message: str) -> None:
    """Warn at the line that called into this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).split(".")[0] == "tablewright":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def _number(version: str) -> str | None:
    """A version if it is a number; names such as ``stable`` are no particular one."""
    return version if version.replace(".", "").isdecimal() else None


def cleanup_config(options: Mapping[str, Any] | None) -> dict[str, str]:
    """Table config for automatic cleanup, from pylance's ``auto_cleanup_options``."""
    config: dict[str, str] = {}
    if options is not None and not isinstance(options, Mapping):
        raise InvalidRequest(f"auto_cleanup_options is a dict, not {options!r}.")
    for key, value in (options or {}).items():
        if value is not None:
            whole_number(value, f"auto_cleanup_options[{key!r}]")
        if key not in _NAMES:
            raise InvalidRequest(f"Unknown key in auto_cleanup_options: {key}. Use {', '.join(_NAMES)}.")
        if value is not None:
            config[_PREFIX + _NAMES[key]] = _duration(int(value)) if key == "older_than_seconds" else str(value)
    return config


def _duration(seconds: int) -> str:
    """Seconds as the table config spells a time span: ``1h``, ``14days``, ``1day 30s``."""
    parts = []
    for unit, length in _UNITS.items():
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count}{unit}{'s' if count > 1 and len(unit) > 1 else ''}")
    return " ".join(parts) or "0s"
