"""Versions that a cleanup is removing: no tag or branch may begin to name one.

A tag or branch is written first, and then looks here. Cleanup writes its journal first, then looks for tags and
branches, and then removes manifests. So at least one of both sees the other: either the tag is taken back, or the
version stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tablewright.errors import VersionNotFound
from tablewright.format.cleanup_journal import JOURNAL_DIR, Journal, decode_journal
from tablewright.snapshot.locate import find_version
from tablewright.storage.base import ObjectNotFound, Store

__all__ = ["FoundJournal", "check_stays", "read_journals"]


@dataclass(frozen=True, slots=True)
class FoundJournal:
    """A journal, its path, and when it was written last."""

    path: str
    journal: Journal
    modified_ns: int


def read_journals(store: Store) -> Iterator[FoundJournal]:
    """The journals of cleanups that are under way, or were interrupted."""
    for info in store.list(JOURNAL_DIR):
        try:
            found = decode_journal(store.get(info.path))
        except ObjectNotFound:
            continue  # the cleanup has ended
        if found is not None:
            yield FoundJournal(info.path, found, info.modified_ns)


def check_stays(store: Store, version: int) -> None:
    """Raise :class:`VersionNotFound` if a version is gone, or if a cleanup is removing it."""
    if find_version(store, version) is None:
        raise VersionNotFound(store.location.uri, f"Version {version}", "It was cleaned up.")
    for found in read_journals(store):
        if version in found.journal.versions:
            hint = f"A cleanup is removing it. If none is running, one was interrupted: run it again ({found.path})."
            raise VersionNotFound(store.location.uri, f"Version {version}", hint)
