"""The record of deferred compactions is trimmed by those versions that no index needs any more.

An index needs a version of the record while its files may hold addresses from before it; indices that we wrote since do
not. The commit checks the same again on the version that it is put on (:mod:`tablewright.transaction.deferral`).

Format: ``docs/format/indices.md#fragment-reuse``.

Tests: ``tests/unit/jobs/test_create_index.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyroaring import FrozenBitMap

from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import is_system
from tablewright.indices.reuse import needed_versions, reuse_entry, reuse_history
from tablewright.jobs.work import Work
from tablewright.snapshot.snapshot import Snapshot
from tablewright.transaction.deferral import encoded_entry

__all__ = ["trimmed_record"]

Entries = Sequence[IndexMetadata]


def trimmed_record(base: Snapshot, new: Entries, removed: Entries, work: Work) -> tuple[Entries, Entries]:
    """The entry that comes and the one that goes, once ``new`` and ``removed`` are committed; none if all is needed."""
    entry = reuse_entry(base.manifest)
    if entry is None:
        return (), ()
    gone = {index.uuid for index in removed}
    stay = [index for index in base.manifest.indices if index.uuid not in gone and not is_system(index)]
    history = reuse_history(base)
    needed = needed_versions(base, [*stay, *new])
    if needed == len(history.versions):
        return (), ()
    if not needed:
        return (), (entry,)
    kept = replace(history, versions=history.versions[-needed:])
    bitmap = FrozenBitMap(id for version in kept.versions for id in version.new_ids)
    again, path = encoded_entry(base.world, base.version, kept, bitmap)
    work.files.add([] if path is None else [path])
    return (again,), (entry,)
