"""The versions of a feed: from one (exclusive) to another (inclusive), and what has to be there.

Rows can be followed only where they have stable ids, and only through versions that still exist. Whatever is missing is
an error that names the version: an empty answer would look like a table in which nothing happened. Version 0 is
the table before its first commit, without rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from tablewright.checks import whole_number
from tablewright.data.prefetch import prefetch
from tablewright.errors import InvalidRequest, VersionNotFound
from tablewright.snapshot.locate import list_versions
from tablewright.snapshot.snapshot import Snapshot, open_snapshot

__all__ = ["check_span", "open_at", "open_pairs", "require_ids", "require_versions"]

_MANIFESTS_AHEAD = 2

Pair = tuple[Snapshot | None, Snapshot]


def check_span(begin: int, end: int) -> tuple[int, int]:
    """Two numbers of versions in order."""
    begin, end = whole_number(begin, "from_version"), whole_number(end, "to_version")
    if begin > end:
        raise InvalidRequest(f"Invalid user input: begin version {begin} is newer than end version {end}.")
    return begin, end


def require_ids(snapshot: Snapshot) -> Snapshot:
    """Refuse a version whose rows can't be followed."""
    if snapshot.manifest.stable_row_ids:
        return snapshot
    raise InvalidRequest(
        f"Version {snapshot.version} of the table at {snapshot.location.uri} has no stable row ids, so its rows can't "
        "be followed from version to version. Call ds.enable_stable_row_ids() once, and begin at the version that it "
        "makes."
    )


def open_at(snapshot: Snapshot, version: int) -> Snapshot | None:
    """One end of a span: a version of the same table, ``None`` for version 0."""
    if not version:
        return None
    return require_ids(snapshot if snapshot.version == version else open_snapshot(snapshot.world, version))


def require_versions(snapshot: Snapshot, begin: int, end: int) -> None:
    """Refuse a span in which a version is missing; ``begin`` itself is needed too, to compare with."""
    there = {entry.version for entry in list_versions(snapshot.world.store)}
    uri, latest, first = snapshot.location.uri, max(there, default=0), max(begin, 1)
    last = min(end, max(latest + 1, first))  # whatever number was asked for, one that is not there yet is enough
    missing = [version for version in range(first, last + 1) if version not in there]
    if not missing:
        return
    if missing[0] > latest:
        raise VersionNotFound(uri, f"Version {missing[0]}", f"The latest version is {latest}.")
    if snapshot.branch is not None and missing[0] < min(there):
        hint = f"The branch {snapshot.branch} begins with version {min(there)}: ask the table for what was before."
        raise VersionNotFound(uri, f"Version {missing[0]}", hint)
    next_there = min((version for version in there if version > missing[-1]), default=latest)
    raise VersionNotFound(
        uri,
        f"Version {missing[0]}",
        f"It was cleaned up, so it is not known what changed since version {begin}. The history is complete from "
        f"version {next_there} on. Two versions that exist can be compared as a whole: "
        "changes(…, net=True).",
    )


def open_pairs(before: Snapshot | None, after: Snapshot, begin: int) -> Iterator[Pair]:
    """Each version of the span with the one before it, in order. Manifests are read a little ahead."""
    numbers = range(begin + 1, after.version + 1)
    for snapshot in prefetch(lambda number: _opened(after, number), numbers, window=_MANIFESTS_AHEAD):
        yield before, snapshot
        before = snapshot


def _opened(after: Snapshot, version: int) -> Snapshot:
    found = open_at(after, version)
    assert found is not None
    return found
