"""Which versions go. Pure.

A version goes if it is older than the dataset's own version and the latest one, if the options select it, and if no
tag names it and no branch begins from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from tablewright.errors import TaggedVersions, VersionNotFound
from tablewright.operations.cleanup.options import CleanupOptions

__all__ = ["Refs", "select_versions"]

_NS_PER_US = 1_000


@dataclass(frozen=True, slots=True)
class Refs:
    """What names versions of a line: tags, and the branches that begin from it, each with its version.

    ``branches`` are all branches of the table, whichever version they begin from.
    """

    tags: Mapping[str, int]
    parents: Mapping[str, int]
    branches: frozenset[str] = frozenset()

    @property
    def versions(self) -> frozenset[int]:
        """All versions that are named."""
        return frozenset((*self.tags.values(), *self.parents.values()))


def select_versions(
    timestamps: Mapping[int, int], current: int, options: CleanupOptions, refs: Refs, *, now_ns: int, uri: str
) -> frozenset[int]:
    """The versions that go, of those in ``timestamps`` (version to time of its commit, in ns).

    ``current`` is the version of the dataset: it and all later ones stay. A tag on a version that the options select is
    an error if the options say so.
    """
    if not timestamps:
        return frozenset()
    latest = max(timestamps)
    _check_known(options, latest, uri)
    selected = frozenset(
        version
        for version in _selected(timestamps, options, now_ns)
        if version < min(current, latest) and version not in refs.parents.values()
    )
    tagged = {tag: version for tag, version in refs.tags.items() if version in selected}
    if tagged and options.error_if_tagged_old_versions:
        raise TaggedVersions(tagged)
    return selected - frozenset(tagged.values())


def _selected(timestamps: Mapping[int, int], options: CleanupOptions, now_ns: int) -> set[int]:
    selected = set(timestamps)
    if options.older_than:
        age_ns = options.older_than // timedelta(microseconds=1) * _NS_PER_US
        selected = {version for version in selected if timestamps[version] < now_ns - age_ns}
    if options.retain_versions is not None:
        selected -= set(sorted(timestamps)[-options.retain_versions :])
    if options.versions is not None:
        selected &= set(options.versions)
    return selected


def _check_known(options: CleanupOptions, latest: int, uri: str) -> None:
    """Versions that were cleaned up before are fine, so that a call can be repeated; those that never were are not."""
    unknown = sorted(version for version in options.versions or () if version > latest)
    if unknown:
        raise VersionNotFound(uri, f"Version {unknown[0]}", f"The latest version is {latest}. Nothing was removed.")
