"""Deferred compactions on the way from an index to rows: their record, the addresses, and what an index covers.

On a table without stable row ids a compaction may leave the files of indices as they are, and record which fragments
became which (:mod:`tablewright.format.fragment_reuse`). Then every address that is read from an index goes through the
whole record, also where the index was rewritten since: ids of fragments are never given twice, so addresses that are
new already pass. The bitmap of an index may name old or new fragments, whatever its files hold.

On a table with stable row ids there is no such record; one that another writer left there is ignored, since row ids are
not addresses.

Format: ``docs/format/indices.md#fragment-reuse``.
"""

from __future__ import annotations

import array
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from pyroaring import FrozenBitMap

from tablewright.cache import CacheKind
from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.format.fragment_reuse import ReuseHistory, decode_reuse, decode_reuse_history
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import REUSE_NAME
from tablewright.format.manifest import Manifest
from tablewright.indices.query import Ids
from tablewright.indices.translation import Translation
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.address import join_uri
from tablewright.storage.base import ObjectNotFound

__all__ = [
    "decoded_entry",
    "is_behind",
    "live_ids",
    "needed_versions",
    "reuse_entry",
    "reuse_history",
    "reuse_translation",
    "reused_coverage",
    "translate_addresses",
]

_Loaded = tuple[ReuseHistory, Translation]

_NOTHING: _Loaded = ReuseHistory(), Translation()
_COPIES = 10  # of the record in memory: its bytes, sets of rows, and the arrays that addresses are looked up in
_cache = CacheKind[_Loaded]("fragment reuse")


def reuse_entry(manifest: Manifest) -> IndexMetadata | None:
    """The entry with the record of deferred compactions; ``None`` if there is none, or it does not count."""
    if manifest.stable_row_ids:
        return None
    return next((index for index in manifest.indices if index.name == REUSE_NAME), None)


def reuse_history(snapshot: Snapshot) -> ReuseHistory:
    """The deferred compactions of a version, oldest first; those that indices have caught up with may be among them."""
    return _loaded(snapshot)[0]


def reuse_translation(snapshot: Snapshot) -> Translation:
    """Where rows are now whose addresses an index of this version holds. Picklable, for tasks."""
    return _loaded(snapshot)[1]


def translate_addresses(
    snapshot: Snapshot, ids: Ids, index: IndexMetadata | None = None
) -> tuple[Ids, npt.NDArray[np.bool_]]:
    """The addresses that rows have now, for addresses as an index stores them, and which of them are still there.

    An address beyond the rows of its fragment is :class:`CorruptTable`; ``index`` is named there.
    """
    try:
        return reuse_translation(snapshot)(ids)
    except InvalidRequest as error:
        where = "" if index is None else snapshot.index_place(index)[1]
        raise CorruptTable(join_uri(snapshot.location.uri, where), (str(error),)) from error


def reused_coverage(snapshot: Snapshot, index: IndexMetadata) -> FrozenBitMap:
    """The live fragments that an index covers, also where its bitmap names those that they were made from.

    pylance 14.0.2 loses rows where it compacts what a deferred compaction made: it writes the index again, but takes
    over addresses that the record should have translated first. What the bitmap may name since does not count.
    """
    live, history = live_ids(snapshot), reuse_history(snapshot)
    return (history.coverage(index.coverage or ()) - _uncertain(index, history, live)) & live


def _uncertain(index: IndexMetadata, history: ReuseHistory, live: FrozenBitMap) -> FrozenBitMap:
    """Fragments in the bitmap of an index from before the record, made after one of the record's was replaced.

    All that are newer than the record: which of them has rows of the replaced fragment can't be said.
    """
    behind = [each for each in history.versions if index.dataset_version <= each.dataset_version]
    made = history.coverage(id for each in behind for id in each.new_ids)
    if index.coverage is None or made <= live:
        return FrozenBitMap()
    return index.coverage - FrozenBitMap(range(max(made) + 1))


def live_ids(snapshot: Snapshot) -> FrozenBitMap:
    """The ids of all fragments of a version."""
    return FrozenBitMap(array.array("I", snapshot.fragments.ids.astype(np.uint32).tobytes()))


def is_behind(snapshot: Snapshot, index: IndexMetadata) -> bool:
    """Whether the files of an index may hold addresses from before a deferred compaction, of rows that it covers."""
    return needed_versions(snapshot, [index]) > 0


def needed_versions(snapshot: Snapshot, indices: Iterable[IndexMetadata]) -> int:
    """How many of the newest versions of the record some index may still need; those before them may go.

    The bitmap does not tell: it is translated while the files stay. So the version that the index was built from
    decides. An index that covers none of the fragments in the record has no use for it.
    """
    history, live = reuse_history(snapshot), live_ids(snapshot)
    named = FrozenBitMap(id for each in history.versions for id in each.old_ids | each.new_ids)
    built = [
        index.dataset_version
        for index in indices
        if index.coverage is not None and (index.coverage.intersect(named) or _uncertain(index, history, live))
    ]
    oldest = min(built, default=None)
    return 0 if oldest is None else sum(oldest <= each.dataset_version for each in history.versions)


def decoded_entry(snapshot: Snapshot, entry: IndexMetadata) -> ReuseHistory:
    """The record in an entry, which may be one that is not committed yet."""
    return _load(snapshot, entry)[0][0]


def _loaded(snapshot: Snapshot) -> _Loaded:
    entry = reuse_entry(snapshot.manifest)
    if entry is None:
        return _NOTHING
    key = (snapshot.location.uri, entry.uuid, entry.details_value)
    return _cache.get(key, lambda: _load(snapshot, entry))


def _load(snapshot: Snapshot, entry: IndexMetadata) -> tuple[_Loaded, int]:
    path, size = snapshot.file.path, len(entry.details_value)
    found = decode_reuse(entry.details_value, path)
    if not isinstance(found, ReuseHistory):
        store, directory = snapshot.index_place(entry)
        path = f"{directory}/{found.path}"
        try:
            record = store.get_range(path, found.offset, found.offset + found.size_bytes)
        except ObjectNotFound:
            raise CorruptTable(join_uri(store.location.uri, path), ("it is missing",)) from None
        if len(record) != found.size_bytes:
            problem = f"it has {len(record)} bytes from {found.offset} on, not {found.size_bytes}"
            raise CorruptTable(join_uri(store.location.uri, path), (problem,))
        found, size = decode_reuse_history(record, join_uri(store.location.uri, path)), len(record)
    translation = Translation.of(version.groups for version in found.versions)
    return (found, translation), size * _COPIES
