"""The record of deferred compactions in a commit: it is brought up to date in the version that is being made.

1. *Before* a change is applied, the bitmaps of indices that name fragments from before a deferred compaction are
   translated to the fragments of now (:func:`caught_up`). Rules about coverage then see what an index covers, and not
   what it covered once. Files of indices are left alone.
2. *A Rewrite that defers* its work on indices is not marked as such in the transaction. Its groups are appended to the
   record when the new version is made (:class:`Record`), if an index covers one of them. They count with the rows that
   were live when they were read; the entry gets a new uuid, and a file where the record is long.
3. *A CreateIndex that trims* the record is checked against the newest version: no index there may need what it removes.

Format: ``docs/format/indices.md#fragment-reuse``.

Tests: ``tests/unit/transaction/test_deferral.py``, ``tests/differential/indices/test_compaction.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pyroaring import FrozenBitMap

from tablewright.errors import CommitConflict
from tablewright.format.address_map import AddressMap, NewRows, OldRows
from tablewright.format.fragment_reuse import (
    DETAILS_FILE,
    INLINE_BYTES_MAX,
    ReuseHistory,
    ReuseVersion,
    encode_reuse,
    encode_reuse_file,
    encode_reuse_history,
)
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import FRAGMENT_REUSE, REUSE_NAME, is_system
from tablewright.format.manifest import Manifest
from tablewright.format.naming import index_dir
from tablewright.format.row_set import RowSet
from tablewright.format.transaction import CreateIndex, Operation, Overwrite, Restore, Rewrite, RewriteGroup
from tablewright.indices.reuse import decoded_entry, needed_versions, reuse_entry, reuse_history
from tablewright.snapshot.snapshot import Snapshot
from tablewright.world import World

__all__ = ["Record", "caught_up", "check_trimmed", "deferred_fragments", "encoded_entry"]


def caught_up(snapshot: Snapshot, operation: Operation | None = None) -> Manifest:
    """The manifest of a version whose bitmaps name the fragments of now.

    As it is for an operation that replaces all of it: that must work also where the record can't be read.
    """
    manifest = snapshot.manifest
    if reuse_entry(manifest) is None or isinstance(operation, Overwrite | Restore):
        return manifest
    history = reuse_history(snapshot)

    def translated(index: IndexMetadata) -> IndexMetadata:
        if index.coverage is None:
            return index
        covered = history.coverage(index.coverage)
        return index if covered == index.coverage else index.with_coverage(covered)

    return replace(manifest, indices=tuple(map(translated, manifest.indices)))


def deferred_fragments(snapshot: Snapshot) -> frozenset[int]:
    """The fragments that deferred compactions replaced, and whose new addresses the version records."""
    return frozenset().union(*(version.old_ids for version in reuse_history(snapshot).versions))


class Record:
    """The record as one commit leaves it. Mutable: ``written`` are the files of all attempts."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.written: list[str] = []

    def extended(self, newest: Snapshot, operation: Operation, after: Manifest) -> Manifest:
        """``after``, which ``operation`` makes of ``newest``, with what it defers; as it is if that is nothing."""
        if not isinstance(operation, Rewrite) or not operation.defers_remap or after.stable_row_ids:
            return after
        covered = [index.coverage for index in _followers(caught_up(newest).indices, operation)]
        if not any(_ids(group) <= coverage for group in operation.groups for coverage in covered if coverage):
            return after
        known = reuse_history(newest)
        groups = [_address_map(newest, group) for group in operation.groups]
        versions = (*known.versions, ReuseVersion.of(newest.version, groups))
        before = reuse_entry(after)
        bitmap = FrozenBitMap(fragment.id for group in operation.groups for fragment in group.new_fragments)
        bitmap |= FrozenBitMap() if before is None else before.coverage or FrozenBitMap()
        entry, path = encoded_entry(self._world, newest.version, ReuseHistory(versions, known.unknown), bitmap)
        self.written += [] if path is None else [path]
        return replace(after, indices=(*(index for index in after.indices if index is not before), entry))

    def needless(self, made: Snapshot) -> list[str]:
        """Files of attempts that lost, now that ``made`` is committed."""
        entry = reuse_entry(made.manifest)
        return [path for path in self.written if entry is None or path != _details_path(entry)]


def encoded_entry(
    world: World, version: int, history: ReuseHistory, bitmap: FrozenBitMap
) -> tuple[IndexMetadata, str | None]:
    """A new entry for a record, made from ``version``; and the file that was written if the record is long."""
    record = encode_reuse_history(history)
    entry = IndexMetadata(
        uuid=world.ids.uuid(),
        fields=(),
        name=REUSE_NAME,
        dataset_version=version,
        details_type_url=FRAGMENT_REUSE.type_url,
        details_value=encode_reuse(record),
        index_version=0,
        created_at_ms=world.clock.now_ns() // 1_000_000,
    ).with_coverage(bitmap)
    if len(record) <= INLINE_BYTES_MAX:
        return entry, None
    path = _details_path(entry)
    world.store.put(path, record)
    return replace(entry, details_value=encode_reuse_file(len(record))), path


def check_trimmed(newest: Snapshot, operation: Operation) -> None:
    """Refuse a CreateIndex that replaces or removes the record, if it is another one now, or an index needs more of it.

    :class:`CommitConflict` is retryable: what may be trimmed has to be decided on the newest version.
    """
    if not isinstance(operation, CreateIndex):
        return
    removed, added = _record_in(operation.removed_indices), _record_in(operation.new_indices)
    if removed is None and added is None:
        return
    current = reuse_entry(newest.manifest)
    if (None if current is None else current.uuid) != (None if removed is None else removed.uuid):
        raise _conflict(newest, "the record of deferred compactions is another one by now")
    gone = {index.uuid for index in operation.removed_indices}
    left = [index for index in newest.manifest.indices if index.uuid not in gone and not is_system(index)]
    kept = 0 if added is None else len(decoded_entry(newest, added).versions)
    if kept < needed_versions(newest, (*left, *(each for each in operation.new_indices if not is_system(each)))):
        raise _conflict(newest, "an index that was committed meanwhile still needs the record of deferred compactions")


def _conflict(newest: Snapshot, reason: str) -> CommitConflict:
    return CommitConflict("CreateIndex", "unknown", newest.version, reason=reason)


def _record_in(indices: Iterable[IndexMetadata]) -> IndexMetadata | None:
    return next((index for index in indices if index.name == REUSE_NAME), None)


def _followers(indices: Iterable[IndexMetadata], operation: Rewrite) -> Iterator[IndexMetadata]:
    """Indices on columns that the rewrite does not rewrite itself."""
    rewritten = {entry.old_id for entry in operation.rewritten_indices}
    return (index for index in indices if not is_system(index) and index.uuid not in rewritten)


def _ids(group: RewriteGroup) -> FrozenBitMap:
    return FrozenBitMap(fragment.id for fragment in group.old_fragments)


def _address_map(newest: Snapshot, group: RewriteGroup) -> AddressMap:
    old = sorted(group.old_fragments, key=lambda fragment: fragment.id)
    return AddressMap(
        tuple(OldRows(f.id, f.physical_rows, newest.deletion_vector(f) or RowSet()) for f in old),
        tuple(NewRows(fragment.id, fragment.physical_rows) for fragment in group.new_fragments),
    )


def _details_path(entry: IndexMetadata) -> str:
    return f"{index_dir(entry.uuid)}/{DETAILS_FILE}"
