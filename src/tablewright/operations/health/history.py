"""The versions of a table: which of them a cleanup would keep, what they name, and what each of the newest added.

1. *Kept* are the latest version of this branch, its tagged ones, those that branches begin from, and what branches
   name: of a branch the oldest version is read, because later ones name no more files of their parent.
2. The other manifests are read from the newest on, as far as a budget of bytes goes. If all fit, or if all versions are
   kept, it is known which files no manifest names. A budget of 0 reads only what is kept, so the cost does not grow
   with the number of versions.
3. The newest ``versions`` are compared with their predecessors. A fragment whose bytes are the same in both is
   skipped, so a version costs what it changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tablewright.data.prefetch import prefetch
from tablewright.errors import TableNotFound
from tablewright.format.envelope import ManifestFile
from tablewright.format.fragment.entries import FragmentFiles, files_of
from tablewright.format.fragment.sequence import FragmentList
from tablewright.format.manifest import Manifest
from tablewright.format.naming import index_dir
from tablewright.format.wire import Bools, Ints
from tablewright.operations.health.names import Names, own_prefixes
from tablewright.snapshot.files import read_manifest
from tablewright.snapshot.locate import VersionEntry, list_versions
from tablewright.snapshot.refs import branch_world, list_branches, list_tags, main_world
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.base import ObjectNotFound, Store

__all__ = ["BUDGET_BYTES", "Change", "History", "read_history"]

_MANIFESTS_AHEAD = 3
_FRAGMENTS_AT_ONCE = 10_000
BUDGET_BYTES = 64 * 1024 * 1024
_TRANSACTION_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Change:
    """What a version has that its predecessor has not: new fragments, files and indices, and how many rows went."""

    version: int
    operation: str
    manifest_bytes: int
    fragment_ids: Ints
    fragment_rows: Ints
    rows_removed: int
    data_paths: list[str]
    data_bytes: Ints
    deletion_paths: list[str]
    index_bytes: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """All versions, ascending; what is kept; what all manifests name (``None`` if they were not all read)."""

    entries: tuple[VersionEntry, ...]
    tagged: frozenset[int]
    kept_manifests: tuple[str, ...]
    oldest_ns: int
    kept: Names
    named: Names | None
    changes: tuple[Change, ...]


def read_history(snapshot: Snapshot, files: FragmentFiles, versions: int, budget_bytes: int) -> History:
    """Read what is needed of a table's past; ``versions`` bounds how many changes are compared, ``budget_bytes`` how
    much of manifests is read to know which files none of them names.

    ``files`` are those of the version at hand.
    """
    store = snapshot.world.store
    entries = list_versions(store)
    if not entries:
        raise TableNotFound(store.location.uri)
    tagged = _tagged(snapshot)
    fixed = tagged | _branched(snapshot)
    kept_entries = [entry for entry in entries if entry.version in fixed or entry is entries[-1]]
    kept = Names()
    for _, file in _manifests(snapshot, kept_entries):
        kept.add(file.manifest, store, store, files if file is snapshot.file else None)
    for manifest, branch_store in _branch_roots(snapshot):
        kept.add(manifest, branch_store, store)
    compared = _compared(entries, snapshot.version, versions)
    wanted = _affordable(entries, compared, budget_bytes)
    all_read = len(wanted) == len(entries)
    named = _Named(store, snapshot, files) if all_read else None
    changes: list[Change] = []
    oldest_ns = 0
    before: ManifestFile | None = None
    for entry, file in _manifests(snapshot, wanted):
        oldest_ns = oldest_ns or file.manifest.timestamp_ns
        if named is not None and file is not snapshot.file:
            named.add(file.manifest, _fragments_not_in(file.manifest.fragments, before or snapshot.file))
        if entry in compared and (before is not None or entry.version == 1):
            changes.append(_change(before, file, entry))
        before = file
    if not wanted or wanted[0] is not entries[0]:
        oldest_ns = next((file.manifest.timestamp_ns for _, file in _manifests(snapshot, entries[:1])), oldest_ns)
    return History(
        entries=entries,
        tagged=tagged,
        kept_manifests=tuple(entry.path for entry in kept_entries),
        oldest_ns=oldest_ns,
        kept=kept,
        named=named.names() if named is not None else kept if len(kept_entries) == len(entries) else None,
        changes=tuple(changes),
    )


class _Named:
    """What manifests name, added one by one. Files are decoded for many manifests at once: each adds few."""

    def __init__(self, store: Store, snapshot: Snapshot, files: FragmentFiles) -> None:
        self._store, self._names = store, Names()
        self._names.add(snapshot.manifest, store, store, files)
        self._manifest = snapshot.manifest
        self._raw: dict[bytes, None] = {}

    def add(self, manifest: Manifest, new: FragmentList) -> None:
        """Add a manifest, whose other fragments were added before."""
        if manifest.base_paths != self._manifest.base_paths or len(self._raw) >= _FRAGMENTS_AT_ONCE:
            self._decode()
        self._manifest = manifest
        self._raw.update(dict.fromkeys(new.raw))
        self._names.add(manifest, self._store, self._store, files_of(FragmentList()))

    def _decode(self) -> None:
        files = files_of(FragmentList(list(self._raw), self._manifest.fragments.path))
        self._names.add_files(files, *own_prefixes(self._manifest, self._store, self._store))
        self._raw.clear()

    def names(self) -> Names:
        """All that was added."""
        self._decode()
        return self._names


def _tagged(snapshot: Snapshot) -> frozenset[int]:
    tags = list_tags(main_world(snapshot.world, snapshot.branch).store).values()
    return frozenset(tag.version for tag in tags if tag.branch == snapshot.branch)


def _branched(snapshot: Snapshot) -> frozenset[int]:
    branches = list_branches(main_world(snapshot.world, snapshot.branch).store).values()
    return frozenset(branch.parent_version for branch in branches if branch.parent_branch == snapshot.branch)


def _branch_roots(snapshot: Snapshot) -> Iterator[tuple[Manifest, Store]]:
    """The oldest version of each other branch, and its store."""
    main = main_world(snapshot.world, snapshot.branch)
    for name in list_branches(main.store):
        if name != snapshot.branch:
            store = branch_world(main, name).store
            oldest = _oldest(store)
            if oldest is not None:
                yield oldest, store


def _oldest(store: Store) -> Manifest | None:
    """The manifest of the oldest version; one that is cleaned up or dropped meanwhile gives way to the next."""
    for entry in list_versions(store):
        try:
            return read_manifest(store, entry).manifest
        except ObjectNotFound:
            continue
    return None


def _compared(entries: Sequence[VersionEntry], version: int, versions: int) -> frozenset[VersionEntry]:
    """The newest entries up to a version."""
    up_to = [entry for entry in entries if entry.version <= version]
    return frozenset(up_to[len(up_to) - versions if versions < len(up_to) else 0 :])


def _affordable(
    entries: Sequence[VersionEntry], compared: frozenset[VersionEntry], budget_bytes: int
) -> list[VersionEntry]:
    """The entries to read, ascending: those to be compared and their predecessor, others while the budget lasts."""
    wanted: list[VersionEntry] = []
    spent, left = 0, len(compared) + bool(compared)
    for entry in reversed(entries):
        spent += entry.size
        if spent > budget_bytes and not left:
            break
        wanted.append(entry)
        left -= left > 0 and (entry in compared or left == 1)
    return wanted[::-1]


def _manifests(snapshot: Snapshot, entries: Sequence[VersionEntry]) -> Iterator[tuple[VersionEntry, ManifestFile]]:
    """Manifests in order, some read ahead; one that a cleanup takes meanwhile is left out."""
    store = snapshot.world.store

    def read(entry: VersionEntry) -> ManifestFile | None:
        if entry.version == snapshot.version:
            return snapshot.file
        try:
            return read_manifest(store, entry)
        except ObjectNotFound:
            return None

    found = prefetch(read, entries, window=_MANIFESTS_AHEAD)
    for entry, file in zip(entries, found, strict=True):
        if file is not None:
            yield entry, file


def _fragments_not_in(fragments: FragmentList, before: ManifestFile | None) -> FragmentList:
    """The fragments that differ from all of the predecessor's, as bytes."""
    if before is None:
        return fragments
    known = set(before.manifest.fragments.raw)
    return FragmentList([data for data in fragments.raw if data not in known], fragments.path)


def _change(before: ManifestFile | None, after: ManifestFile, entry: VersionEntry) -> Change:
    new = _fragments_not_in(after.manifest.fragments, before)
    old = FragmentList() if before is None else _fragments_not_in(before.manifest.fragments, after)
    files, old_files = files_of(new), files_of(old)
    known, known_deletions = set(old_files.data_paths), set(old_files.deletion_paths)
    fresh = [place for place, path in enumerate(files.data_paths) if path not in known]
    is_new = ~np.isin(new.ids, old.ids)
    return Change(
        version=entry.version,
        operation=_operation(after),
        manifest_bytes=entry.size,
        fragment_ids=new.ids[is_new].astype(np.int64),
        fragment_rows=new.physical_rows[is_new].astype(np.int64),
        rows_removed=_removed(old, new, is_new),
        data_paths=[files.data_paths[place] for place in fresh],
        data_bytes=files.data_bytes[fresh],
        deletion_paths=_added(files, known_deletions),
        index_bytes=_new_indices(before, after),
    )


def _removed(old: FragmentList, new: FragmentList, is_new: Bools) -> int:
    """Live rows of the old fragments that are not live in the same fragments any more."""
    return int(old.live_rows.sum() - new.live_rows[~is_new].sum())


def _added(files: FragmentFiles, known: set[str]) -> list[str]:
    return [path for path in files.deletion_paths if path not in known]


def _new_indices(before: ManifestFile | None, after: ManifestFile) -> dict[str, int]:
    """The directories of new index segments, and what their files take; 0 where that is not recorded."""
    known = () if before is None else {index.uuid for index in before.manifest.indices}
    return {
        index_dir(index.uuid): sum(file.size_bytes for file in index.files)
        for index in after.manifest.indices
        if index.uuid not in known and index.base_id is None
    }


def _operation(file: ManifestFile) -> str:
    """The kind of the commit, unless its transaction is so long that decoding would cost more than it tells."""
    if file.transaction_bytes is None or len(file.transaction_bytes) > _TRANSACTION_BYTES_MAX:
        return ""
    return "" if file.transaction is None else type(file.transaction.operation).__name__
