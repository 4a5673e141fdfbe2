"""Which versions exist, and which is the latest.

A version is a manifest file in ``_versions/`` under its V2 or V1 name; nothing else says that it exists. Opening and
committing list the directory:

1. A store that lists in order has the newest V2 name first, so one page is enough. On a local disk only the names are
   read, and one file is looked at (10,000 versions: 5 ms). Other stores are listed whole.
2. Numbers above the listed one are probed, under both names, because a listing may be older than the store. A writer
   on a local disk that knows the newest version already leaves that to put-if-absent.

``latest_version_hint.json`` is written for pylance and never read. It may be too low, and probing upwards from it may
stop at a gap: cleanup may have removed the versions above one that a tag keeps.

Format: ``docs/format/table.md#manifest-names``, ``docs/format/table.md#finding-the-latest-version``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from tablewright.checks import whole_number
from tablewright.errors import StorageError, TableNotFound, VersionNotFound
from tablewright.format.naming import (
    VERSIONS_DIR,
    detached_path,
    is_detached,
    manifest_path,
    newest_manifest,
    parse_manifest_name,
)
from tablewright.storage.base import ObjectInfo, ObjectNotFound, Store
from tablewright.storage.subtree import local_file_names
from tablewright.storage.together import answers_slowly, together

__all__ = ["VersionEntry", "find_version", "latest_version", "list_versions", "probe_latest", "uses_hint"]

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
        if entry.v2 or entry.version not in entries:  # both names at once: a migration from V1 to V2 is running
            entries[entry.version] = entry
    return tuple(entries[version] for version in sorted(entries))


def latest_version(store: Store) -> VersionEntry | None:
    """The highest version, by listing; ``None`` if there is no table here."""
    names = local_file_names(store, VERSIONS_DIR)
    return _latest_listed(store) if names is None else _latest_named(store, names)


def _latest_named(store: Store, names: Sequence[str]) -> VersionEntry | None:
    """The highest version among the names of a directory; if that is no file, or is gone, by a full listing."""
    named = newest_manifest(names)
    if named is None:
        return None
    version, path, v2 = named
    try:
        return _look(store, version, path, v2=v2) or _latest_listed(store)
    except StorageError:
        return _latest_listed(store)


def _latest_listed(store: Store) -> VersionEntry | None:
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
    looks = [partial(_look, store, version, manifest_path(version, v2=v2), v2=v2) for v2 in (True, False)]
    found: tuple[VersionEntry | None, ...] = together(store, *looks) if answers_slowly(store) else ()
    return next(filter(None, found or (look() for look in looks)), None)


def probe_latest(store: Store, at_least: int, known: VersionEntry | None = None) -> VersionEntry:
    """The latest version, for a writer that knows version ``at_least``, and perhaps its entry.

    Raises :class:`VersionNotFound` if neither that version nor a higher one exists any more: the table was replaced.
    A store that answers slowly is asked for the next version while it lists: nearly always there is none. On a local
    disk the names are enough where the newest is that of ``known``: a version that came since has the name that the
    writer is going to create.
    """
    if answers_slowly(store):
        listed, following = together(store, partial(latest_version, store), partial(find_version, store, at_least + 1))
        if listed is not None and listed.version == at_least:
            return listed if following is None else _probe_above(store, following) or following
    else:
        names = local_file_names(store, VERSIONS_DIR)
        newest = None if names is None or known is None else newest_manifest(names)
        if newest is not None and known is not None and newest[:2] == (known.version, known.path):
            return known
        listed = latest_version(store) if names is None else _latest_named(store, names)
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
    """The last of the consecutive versions from ``start`` on; ``None`` if there are too many to probe."""
    top = start
    for _ in range(_PROBES_MAX):
        following = find_version(store, top.version + 1)
        if following is None:
            return top
        top = following
    return None
