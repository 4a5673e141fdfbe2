"""Arguments that are accepted because scripts pass them, and have no effect: a warning says so at once."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from tablewright.operations.write import WriteSettings
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["tell_only_at_creation", "tell_unused_lock", "warn_caller"]


def tell_only_at_creation(settings: WriteSettings, snapshot: Snapshot) -> None:
    """Warn if settings were given that only count for a new table, and the table that is there has others."""
    manifest = snapshot.manifest
    if settings.enable_stable_row_ids and not manifest.stable_row_ids:
        warn_caller(
            f"enable_stable_row_ids=True has no effect: {snapshot.location.uri} exists and has none. "
            "dataset.enable_stable_row_ids() switches them on."
        )
    if settings.config:
        warn_caller(f"auto_cleanup_options has no effect: {snapshot.location.uri} exists. Use dataset.update_config().")
    asked = settings.data_storage_version
    if settings.mode == "append" and asked is not None and _number(asked) not in (None, manifest.data_storage_version):
        warn_caller(
            f"data_storage_version={asked!r} has no effect: {snapshot.location.uri} exists with files of version "
            f"{manifest.data_storage_version}, and an append writes the same."
        )


def tell_unused_lock(commit_lock: Any) -> None:
    """Warn about a lock that is given to ``dataset()``."""
    if commit_lock is not None:
        warn_caller(
            "commit_lock has no effect in dataset(): a version is published by put-if-absent, which needs no lock. "
            "write_dataset() and LanceDataset.commit() take a lock."
        )


def warn_caller(message: str) -> None:
    """Warn at the line that called into this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).split(".")[0] == "tablewright":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def _number(version: str) -> str | None:
    """A version if it is a number; names such as ``stable`` are no particular one."""
    return version if version.replace(".", "").isdecimal() else None
