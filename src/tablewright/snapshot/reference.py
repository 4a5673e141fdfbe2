"""References: a version by its number, by a tag, or by branch and number.

Tests: ``tests/unit/jobs/test_branch.py``, ``tests/differential/jobs/test_branch.py``.
"""

from __future__ import annotations

from typing import Any

from tablewright.checks import whole_number
from tablewright.errors import TableNotFound, VersionNotFound, WrongType
from tablewright.snapshot.locate import latest_version
from tablewright.snapshot.refs import branch_world, main_world, read_tag
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.world import World

__all__ = ["Reference", "open_reference", "resolve_reference"]

Reference = int | str | tuple[str | None, int | None]
"""A version number on the branch at hand, a tag, or (branch, version), where ``None`` means main, and the latest."""

_MAIN = "main"


def resolve_reference(snapshot: Snapshot, reference: Reference | None) -> tuple[str | None, int]:
    """Branch and version that ``reference`` means, relative to ``snapshot``; ``None`` is that version."""
    match reference:
        case None:
            return snapshot.branch, snapshot.version
        case str():
            tag = read_tag(main_world(snapshot.world, snapshot.branch).store, reference)
            return tag.branch, tag.version
        case (None | str() as branch, version):
            branch = None if branch == _MAIN else branch
            return branch, _latest_of(snapshot, branch) if version is None else _number(version, reference)
    return snapshot.branch, _number(reference, reference)


def _number(version: Any, reference: Any) -> int:
    try:
        return whole_number(version, "version", minimum=None)
    except WrongType:
        raise WrongType(
            f"Version must be an int, a str or a (branch, version) tuple, not {reference!r}. "
            "In a tuple None means main, and the latest version."
        ) from None


def open_reference(snapshot: Snapshot, reference: Reference) -> Snapshot:
    """The version that ``reference`` means, relative to ``snapshot``."""
    branch, version = resolve_reference(snapshot, reference)
    if branch == snapshot.branch:
        return snapshot if version == snapshot.version else open_snapshot(snapshot.world, version)
    main = main_world(snapshot.world, snapshot.branch)
    try:
        return open_snapshot(branch_world(main, branch), version)
    except TableNotFound:
        raise _no_branch(main, branch) from None


def _latest_of(snapshot: Snapshot, branch: str | None) -> int:
    main = main_world(snapshot.world, snapshot.branch)
    entry = latest_version(branch_world(main, branch).store)
    if entry is None:
        raise _no_branch(main, branch)
    return entry.version


def _no_branch(main: World, branch: str | None) -> VersionNotFound:
    return VersionNotFound(
        main.store.location.uri, f"Branch {branch}", f"Ref not found error: branch {branch} does not exist."
    )
