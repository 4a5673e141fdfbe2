"""Which versions exist, and which is the latest (fact sheet §1 and §3).

A version is a manifest file in ``_versions/`` under its V2 or V1 name; nothing else says that it exists. Opening lists
the directory. Committing is cheaper where listings are costly:

1. Read ``latest_version_hint.json``, a hint that may be missing, junk, too low or too high.
2. Start at the higher of the hint and the version we know. If that one is not there, list.
3. Probe the numbers above it, under both names, until one is absent. After some steps list instead.

Without a hint we always list: above a version that a tag kept alive, others may have been cleaned up, so
an absent next number alone proves nothing. Stores that list in order (object stores) have no hint, as with pylance:
there the newest V2 name comes first, and one page of the listing is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tablewright.checks import whole_number
from tablewright.errors import StorageError, TableNotFound, VersionNotFound
from tablewright.format.naming import (
    HINT_PATH,
    VERSIONS_DIR,
    decode_hint,
    detached_path,
    is_detached,
    manifest_path,
    parse_manifest_name,
)
from tablewright.storage.base import ObjectInfo, ObjectNotFound, Store

__all__ = ["VersionEntry", "find_version", "latest_version", "list_versions", "probe_latest", "read_hint", "uses_hint"]

_PROBES_MAX = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionEntry:
    """One manifest file: its version, path, naming scheme, size in bytes and time of modification."""

    version: int
    path: str
    v2: bool
    size: int
    modified_ns: int


def list_versions(store: Store) -> tuple[VersionEntry, ...]:
    """Every version there is, ascending; detached ones are left out."""
    entries: dict[int, VersionEntry] = {}
    for entry in _entries(store):
        if entry.v2 or entry.version not in entries:  # both names at once: somebody is migrating from V1 to V2
            entries[entry.version] = entry
    return tuple(entries[version] for version in sorted(entries))


def latest_version(store: Store) -> VersionEntry | None:
    """The highest version, by listing; ``None`` if there is no table here."""
    in_order = _lists_in_order(store)
    latest: VersionEntry | None = None
    for entry in _entries(store):
        if latest is None or (entry.version, entry.v2) > (latest.version, latest.v2):
            latest = entry
        if in_order and entry.v2 and latest is entry:
            return entry
    return latest


def find_version(store: Store, version: int) -> VersionEntry | None:
    """The manifest of one version under either name, or ``None``."""
    version = whole_number(version, "a version", minimum=None)
    if version < 1:
        return None
    if is_detached(version):
        return _look(store, version, detached_path(version), v2=True)
    entry = _look(store, version, manifest_path(version, v2=True), v2=True)
    return entry or _look(store, version, manifest_path(version, v2=False), v2=False)


def probe_latest(store: Store, at_least: int) -> VersionEntry:
    """The latest version, for a writer that knows version ``at_least``.

    Raises :class:`VersionNotFound` if neither that version nor a higher one exists any more: the table was replaced.
    """
    hint = read_hint(store) if uses_hint(store) else None
    start = None if hint is None else find_version(store, max(hint, at_least))
    if start is not None:
        top = _probe_above(store, start)
        if top is not None:
            return top
    listed = latest_version(store)
    if listed is not None and listed.version >= at_least:
        return _probe_above(store, listed) or listed
    known = find_version(store, at_least)  # the listing may be older than what we have read
    if known is not None:
        return _probe_above(store, known) or known
    uri = store.location.uri
    if listed is None:
        raise TableNotFound(uri)
    why = f"The table was replaced since it was opened: its latest version is {listed.version}. Open it again."
    raise VersionNotFound(uri, f"Version {at_least}", why)


def uses_hint(store: Store) -> bool:
    """Whether writers keep a hint here: only where a listing does not begin with the newest version."""
    return not _lists_in_order(store)


def read_hint(store: Store) -> int | None:
    """What the hint file says, ``None`` if it says nothing: it is never a reason to fail."""
    try:
        return decode_hint(store.get(HINT_PATH))
    except (ObjectNotFound, StorageError):
        return None


def _lists_in_order(store: Store) -> bool:
    return bool(getattr(store, "lists_in_order", False))


def _entries(store: Store) -> Iterator[VersionEntry]:
    for info in store.list(VERSIONS_DIR):
        entry = _entry(info)
        if entry is not None:
            yield entry


def _entry(info: ObjectInfo) -> VersionEntry | None:
    directory, _, name = info.path.rpartition("/")
    named = parse_manifest_name(name)
    if directory != VERSIONS_DIR or named is None or named[1] == "detached":
        return None
    return VersionEntry(
        version=named[0], path=info.path, v2=named[1] == "v2", size=info.size, modified_ns=info.modified_ns
    )


def _look(store: Store, version: int, path: str, *, v2: bool) -> VersionEntry | None:
    try:
        info = store.head(path)
    except ObjectNotFound:
        return None
    return VersionEntry(version=version, path=path, v2=v2, size=info.size, modified_ns=info.modified_ns)


def _probe_above(store: Store, start: VersionEntry) -> VersionEntry | None:
    """The end of the unbroken row of versions from ``start``; ``None`` if it is too long to walk."""
    top = start
    for _ in range(_PROBES_MAX):
        following = find_version(store, top.version + 1)
        if following is None:
            return top
        top = following
    return None
