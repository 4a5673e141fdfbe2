"""A snapshot: one immutable version of a table, the input of every plan.

It holds the decoded manifest and loads the rest on demand: deletion vectors, row ids, the stores of base
paths. What was loaded stays with the snapshot; only the row-id index is in the cache of the process, where the next
version finds it and extends it. Threads may share one: a value may be loaded twice, but never differs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from tablewright.checks import whole_number
from tablewright.errors import CorruptTable, TableNotFound, UnsupportedFeature, VersionNotFound
from tablewright.format.envelope import ManifestFile
from tablewright.format.fragment import Fragment, FragmentList
from tablewright.format.manifest import BasePath, Manifest
from tablewright.format.naming import deletion_path
from tablewright.format.row_ids import RowIdSequence, decode_row_ids
from tablewright.format.row_set import RowSet
from tablewright.format.schema import Schema
from tablewright.snapshot.files import read_deletion_vector, read_manifest
from tablewright.snapshot.locate import VersionEntry, find_version, latest_version, list_versions
from tablewright.snapshot.places import FilePlaces
from tablewright.snapshot.refs import branch_world, main_world, read_tag
from tablewright.snapshot.row_id_index import RowIdIndex
from tablewright.snapshot.row_id_indices import find_index
from tablewright.storage.base import Location, ObjectNotFound, Store
from tablewright.world import World

__all__ = ["Snapshot", "check_counted", "missing_version", "open_snapshot"]

_ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot(FilePlaces):
    """One version of a table. ``world.store`` is the root of the table (or of the branch) itself."""

    world: World
    entry: VersionEntry
    file: ManifestFile
    _vectors: dict[tuple[int | None, str], RowSet] = field(default_factory=dict, init=False, repr=False)
    _row_ids: dict[int, tuple[bytes, RowIdSequence]] = field(default_factory=dict, init=False, repr=False)
    _stores: dict[int, Store] = field(default_factory=dict, init=False, repr=False)
    _index: dict[Literal["own", "before"], RowIdIndex] = field(default_factory=dict, init=False, repr=False)

    @property
    def manifest(self) -> Manifest:
        """All that the version consists of."""
        return self.file.manifest

    @property
    def version(self) -> int:
        """The version's number."""
        return self.file.manifest.version

    @property
    def schema(self) -> Schema:
        """The schema with its field ids."""
        return self.file.manifest.schema

    @property
    def fragments(self) -> FragmentList:
        """The fragments, decoded when looked at."""
        return self.file.manifest.fragments

    @property
    def base_paths(self) -> tuple[BasePath, ...]:
        """The other places that files of the version may be in."""
        return self.file.manifest.base_paths

    @property
    def branch(self) -> str | None:
        """The branch that this version is on; ``None`` for main."""
        return self.file.manifest.branch

    @property
    def location(self) -> Location:
        """Where the table (or branch) is."""
        return self.world.store.location

    # --------------------------------------------------------------------------------------------- what is loaded

    def deletion_vector(self, fragment: Fragment) -> RowSet | None:
        """Which rows of a fragment are deleted; ``None`` if it has no deletion file."""
        deletion = fragment.deletion
        if deletion is None:
            return None
        key = (deletion.base_id, deletion_path(fragment.id, deletion))
        vector = self._vectors.get(key)
        if vector is None:
            vector = self._vectors.setdefault(key, read_deletion_vector(self.store_of(deletion.base_id), fragment))
        return vector

    def row_ids(self, fragment: Fragment) -> RowIdSequence | None:
        """The stable row ids of a fragment's physical rows; ``None`` if the table has none."""
        data = fragment.row_ids
        if data is None:
            return None
        known = self._row_ids.get(fragment.id)
        if known is None or known[0] != data:
            known = self._row_ids[fragment.id] = (data, decode_row_ids(data, self.file.path, fragment.physical_rows))
        return known[1]

    @property
    def row_id_index(self) -> RowIdIndex:
        """Where the row of each stable row id is; built when it is first asked for. Here only if not in the cache."""
        own = self._index.get("own")
        if own is None:
            own, is_cached = find_index(self.fragments, self.file.path, self._index.pop("before", None))
            if not is_cached:
                self._index["own"] = own
        return own

    def addresses_of(self, row_ids: npt.ArrayLike) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """The address of each stable row id's live row (0 where there is none), and which ids have one."""
        return self.row_id_index.locate(row_ids, self.deletion_vector)

    def after(self, before: Snapshot) -> Snapshot:
        """This snapshot, which takes over the row-id index of an earlier one of the same table that has one itself."""
        known = before._index.get("own") or before._index.get("before")
        if known is not None and self.manifest.stable_row_ids and "own" not in self._index:
            self._index["before"] = known
        return self


def open_snapshot(
    world: World, version: int | None = None, *, asof_ns: int | None = None, tag: str | None = None
) -> Snapshot:
    """Open the latest version, or the one of a number, a tag, or a time.

    ``asof_ns`` (nanoseconds since the epoch) opens the highest version that was committed before it. A tag may name a
    version on a branch: the snapshot's world is then the branch's.
    """
    if tag is not None:
        return _open_tag(world, tag)
    if asof_ns is not None:
        return _open_asof(world, asof_ns)
    if version is not None:
        return _open_version(world, whole_number(version, "a version", minimum=None))
    return _open_latest(world)


def _open_latest(world: World) -> Snapshot:
    for attempt in range(_ATTEMPTS):
        entry = latest_version(world.store)
        if entry is None:
            break
        try:
            return _open_entry(world, entry)
        except ObjectNotFound:
            # Newer versions came and cleanup took this one between listing and reading.
            if attempt == _ATTEMPTS - 1:
                raise CorruptTable(entry.path, ("it is listed but can't be read",)) from None
    raise TableNotFound(world.store.location.uri)


def _open_version(world: World, version: int) -> Snapshot:
    entry = find_version(world.store, version)
    try:
        if entry is not None:
            return _open_entry(world, entry)
    except ObjectNotFound:
        pass
    raise missing_version(world, version)


def _open_asof(world: World, asof_ns: int) -> Snapshot:
    entries = list_versions(world.store)
    if not entries:
        raise TableNotFound(world.store.location.uri)
    for entry in reversed(entries):
        try:
            snapshot = _open_entry(world, entry)
        except ObjectNotFound:
            continue
        # Commit times count in whole microseconds, as in the list of versions that people read them from.
        if snapshot.manifest.timestamp_ns // 1000 * 1000 < asof_ns:
            return snapshot
    seconds = asof_ns / 1e9
    raise VersionNotFound(
        world.store.location.uri,
        f"A version as of {seconds:.6f} s since the epoch",
        f"That is earlier than the first version of this dataset, which is {entries[0].version}.",
    )


def _open_tag(world: World, name: str) -> Snapshot:
    try:
        found = read_tag(world.store, name)
    except VersionNotFound:
        branch = _open_latest(world).branch  # a branch keeps no tags of its own: they are in its table's root
        if branch is None:
            raise
        world = main_world(world, branch)
        found = read_tag(world.store, name)
    if found.branch is not None:
        world = branch_world(world, found.branch)
    return _open_version(world, found.version)


def _open_entry(world: World, entry: VersionEntry) -> Snapshot:
    file = read_manifest(world.store, entry)
    check_counted(file)
    return Snapshot(world=world, entry=entry, file=file)


def check_counted(file: ManifestFile) -> None:
    """Refuse fragments that lack a count. Without the number of rows all that is planned here would pass over them;
    without the number of deleted rows ``count_rows``, ``take`` and offsets would count these as alive.
    """
    facts = file.manifest.fragments.facts
    uncounted = np.flatnonzero(facts.physical_rows == 0)
    with_files = uncounted[np.isin(uncounted, facts.file_row)] if len(uncounted) else uncounted
    if len(with_files):
        raise UnsupportedFeature(
            f"Fragment {int(facts.ids[with_files[0]])} in {file.path} does not say how many rows it has, as early "
            "releases of Lance left it; its rows would be missed. Let pylance commit a change to the table, "
            "which counts them."
        )
    uncounted = np.flatnonzero(facts.has_deletion & (facts.deleted_rows == 0))
    if len(uncounted):
        raise UnsupportedFeature(
            f"Fragment {int(facts.ids[uncounted[0]])} in {file.path} does not say how many rows are deleted, "
            "as early releases of Lance left it; they would be counted as rows. Let pylance commit a "
            "change to the table, which counts them."
        )


def missing_version(world: World, version: int) -> TableNotFound | VersionNotFound:
    """The error that says that a version is not there, and which ones are."""
    uri = world.store.location.uri
    numbers = [entry.version for entry in list_versions(world.store)]
    if not numbers:
        return TableNotFound(uri)
    if 0 < version < numbers[0]:
        hint = f"It was cleaned up: the oldest version is {numbers[0]}, the latest {numbers[-1]}."
    elif version > numbers[-1]:
        hint = f"The latest version is {numbers[-1]}."
    else:
        near = ", ".join(map(str, numbers if len(numbers) <= 10 else [*numbers[:5], "…", *numbers[-5:]]))
        hint = f"It may have been cleaned up. There are versions {near}."
    return VersionNotFound(uri, f"Version {version}", hint)
