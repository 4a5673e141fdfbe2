"""From what a BTREE stores to rows of a version: which segments can be used, what they cover, which rows are alive.

An index *covers* the fragments of its bitmap that still exist. Everything else in it is stale. A row that moved or was
deleted stays in the index: its old address is in a deletion file, and so is the old position of a stable row id. So an
entry counts if its row is live in a covered fragment, and rows of all other fragments have to be found by a scan.

After a compaction that deferred its work on indices an index may hold addresses of fragments that are gone: addresses
and coverage go through the record of such compactions (:mod:`tablewright.indices.reuse`).

Format: ``docs/format/indices.md#coverage``, ``docs/format/indices.md#fragment-reuse``.

Tests: ``tests/differential/indices/btree/test_lookup.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import FrozenBitMap

from tablewright.errors import CorruptTable
from tablewright.format.fragment import Fragment
from tablewright.format.index import IndexMetadata
from tablewright.format.row_address import Addresses, RowAddress
from tablewright.indices.btree.keys import fitted
from tablewright.indices.btree.lookup import BTreeIndex, BTreeMatches, stored_ids
from tablewright.indices.btree.order import Longs
from tablewright.indices.btree.pages import DATA_FILE, LOOKUP_FILE
from tablewright.indices.btree.verify import problems_of_hits, problems_of_ids, problems_of_size
from tablewright.indices.reuse import translate_addresses
from tablewright.indices.rows import covered_fragments
from tablewright.snapshot.snapshot import Snapshot
from tablewright.storage.address import join_uri

__all__ = ["covered", "find_rows", "live_addresses", "usable_btrees"]

_KIND = "BTreeIndexDetails"
_VERSIONS = (None, 0, 1)


def usable_btrees(snapshot: Snapshot, field_id: int) -> tuple[IndexMetadata, ...]:
    """The segments of BTREE indices on this one field that cover something. Those that we can't read are left out.

    >>> from tablewright.snapshot import open_snapshot
    >>> from tablewright.storage import open_store
    >>> from tablewright.world import World
    >>> import tablewright as tw
    >>> _ = tw.write_dataset(pa.table({"id": [1, 2]}), "memory://usable-btrees")
    >>> snapshot = open_snapshot(World(open_store("memory://usable-btrees")))
    >>> usable_btrees(snapshot, field_id=0)
    ()
    """
    return tuple(
        index
        for index in snapshot.manifest.indices
        if index.fields == (field_id,) and _is_readable(index) and covered(snapshot, (index,))
    )


def _is_readable(index: IndexMetadata) -> bool:
    files = {file.path for file in index.files}
    kind = (index.details_type_url or "").rsplit(".", 1)[-1]
    is_btree = kind == _KIND or (not kind and LOOKUP_FILE in files)
    return is_btree and index.index_version in _VERSIONS and (not files or files >= {DATA_FILE, LOOKUP_FILE})


def covered(snapshot: Snapshot, segments: Iterable[IndexMetadata]) -> FrozenBitMap:
    """The fragments that these segments cover."""
    return covered_fragments(snapshot, segments)


def find_rows(snapshot: Snapshot, segments: Iterable[IndexMetadata], keys: pa.Array) -> tuple[Longs, Addresses]:
    """The live rows in covered fragments that hold a key: its position among the keys, and the row's address.

    Ordered by position, then address. A row comes once per probe, also if several segments hold it.
    """
    found = [_found(snapshot, index, keys) for index in segments]
    positions = np.concatenate([np.zeros(0, np.int64), *(positions for positions, _ in found)])
    addresses = np.concatenate([np.zeros(0, np.uint64), *(addresses for _, addresses in found)])
    order = np.lexsort((addresses, positions))
    positions, addresses = positions[order], addresses[order]
    again = np.zeros(len(order), np.bool_)
    again[1:] = (positions[1:] == positions[:-1]) & (addresses[1:] == addresses[:-1])
    return positions[~again], addresses[~again]


def _found(snapshot: Snapshot, index: IndexMetadata, keys: pa.Array) -> tuple[Longs, Addresses]:
    """The live hits of one segment, compared with the table as far as that is cheap."""
    try:
        opened = BTreeIndex.open(snapshot, index)
        _refuse(snapshot, index, problems_of_size(opened.num_entries, _live_rows(snapshot, index)))
        opened.check_pages()
        known = fitted(keys, opened.type)
        matches = opened.lookup(known)
        are_addresses = opened.stores == "addresses"
        _refuse(snapshot, index, problems_of_ids(snapshot, matches.ids, are_addresses=are_addresses))
        positions, addresses = live_addresses(snapshot, index, matches)
        _refuse(snapshot, index, problems_of_hits(snapshot, index.fields[0], known, positions, addresses))
    except CorruptTable as error:
        hint = f"drop index {index.name!r} or build it again, or merge without it: use_index(False)"
        raise CorruptTable(error.path, (*error.problems, hint)) from error
    return positions, addresses


def _refuse(snapshot: Snapshot, index: IndexMetadata, problems: Iterator[str]) -> None:
    found = tuple(problems)
    if found:
        store, directory = snapshot.index_place(index)
        raise CorruptTable(join_uri(store.location.uri, f"{directory}/{DATA_FILE}"), found)


def _live_rows(snapshot: Snapshot, index: IndexMetadata) -> int:
    """The live rows of the fragments that a segment covers."""
    fragments = snapshot.fragments
    covering = np.frombuffer(covered(snapshot, (index,)).to_array(), np.uint32).astype(np.uint64)
    here = np.isin(fragments.ids, covering)
    return int(fragments.live_rows[here].sum())


def live_addresses(snapshot: Snapshot, index: IndexMetadata, matches: BTreeMatches) -> tuple[Longs, Addresses]:
    """The hits whose rows are alive in fragments that the index covers: position of the probe, and row address."""
    fragments = covered(snapshot, (index,))
    if stored_ids(snapshot, index) == "addresses":
        addresses, kept = translate_addresses(snapshot, matches.ids, index)
        kept[kept] = _live_addresses(snapshot, index, fragments, addresses[kept])
        return matches.positions[kept], addresses[kept]
    addresses, alive = _addresses_of_row_ids(snapshot, fragments, matches.ids)
    return matches.positions[alive], addresses[alive]


def _live_addresses(
    snapshot: Snapshot, index: IndexMetadata, fragments: FrozenBitMap, addresses: Addresses
) -> npt.NDArray[np.bool_]:
    """One bool per address: whether it is that of a live row in one of these fragments."""
    alive = np.zeros(len(addresses), np.bool_)
    owners, offsets = RowAddress.split(addresses)
    for fragment, hits in _by_fragment(snapshot, fragments, owners):
        if int(offsets[hits].max()) >= fragment.physical_rows:
            store, directory = snapshot.index_place(index)
            problem = f"it names rows beyond the {fragment.physical_rows} of fragment {fragment.id}"
            raise CorruptTable(join_uri(store.location.uri, f"{directory}/{DATA_FILE}"), (problem,))
        alive[hits] = _is_live(snapshot, fragment, offsets[hits])
    return alive


def _by_fragment(snapshot: Snapshot, fragments: FrozenBitMap, owners: Addresses) -> Iterator[tuple[Fragment, Longs]]:
    """The ``fragments`` that occur in ``owners``, and the positions where each does."""
    order = np.argsort(owners, kind="stable")
    ids, begins = np.unique(owners[order], return_index=True)
    for fragment_id, hits in zip(ids.tolist(), np.split(order, begins[1:]), strict=False):
        if fragment_id in fragments:
            yield snapshot.fragments.by_id(fragment_id), hits


def _addresses_of_row_ids(
    snapshot: Snapshot, fragments: FrozenBitMap, ids: Addresses
) -> tuple[Addresses, npt.NDArray[np.bool_]]:
    """The address of each row id that is alive in one of these fragments, and which ones are."""
    addresses, alive = snapshot.addresses_of(ids)
    covering = np.frombuffer(fragments.to_array(), np.uint32).astype(np.uint64)
    return addresses, alive & np.isin(RowAddress.split(addresses)[0], covering)


def _is_live(snapshot: Snapshot, fragment: Fragment, offsets: Longs) -> npt.NDArray[np.bool_]:
    vector = snapshot.deletion_vector(fragment)
    if vector is None:
        return np.ones(len(offsets), np.bool_)
    return ~vector.contains(offsets)
