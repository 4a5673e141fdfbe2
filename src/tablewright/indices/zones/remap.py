"""Zones after a rewrite of fragments: what they say of values stays true, only their places change.

A rewrite keeps the order of live rows (:mod:`tablewright.format.address_map`), so the live rows of a zone become
consecutive rows of the new fragments: one range, or one for each new fragment that they reach into, each with the
whole zone's summary. A zone whose rows are all gone is dropped. Null rows move one by one.

Tests: ``tests/unit/indices/zones/test_remap.py``, ``tests/property/test_zones.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap

from tablewright.errors import InvalidRequest
from tablewright.format.address_map import AddressMap, NewRows
from tablewright.format.fragment_rows import FragmentRows
from tablewright.format.index import IndexFile
from tablewright.format.row_set import RowSet
from tablewright.indices.zones.file import NULL_KEY, ZoneReader, in_schema, write_zones
from tablewright.indices.zones.summary import PLACE_FIELDS, ZoneSummary, united, zone_places
from tablewright.storage.base import Store

__all__ = ["remap_zone_index", "remapped_nulls", "remapped_zones"]

_Longs = npt.NDArray[np.int64]


def remap_zone_index(
    reader: ZoneReader, summary: ZoneSummary, groups: Sequence[AddressMap], rows_per_zone: int, place: tuple[Store, str]
) -> IndexFile:
    """Write the zones of an index as they are after a rewrite. ``place`` is where the new file goes.

    Groups are applied in order; old fragments of a later one may be new ones of an earlier one.
    """
    problems = [problem for group in groups if (problem := group.problem) is not None]
    if problems:
        raise InvalidRequest("These zones can't follow a rewrite: " + "; ".join(problems) + ".")
    nulls = reader.nulls
    for group in groups:
        nulls = None if nulls is None else remapped_nulls(nulls, group)
    new_ids = {new.id for group in groups for new in group.new}

    def zones() -> Iterator[pa.RecordBatch]:
        for batch in reader.batches():
            moved = in_schema(batch, summary.schema, reader.where)
            for group in groups:
                moved = remapped_zones(moved, group)
            yield _tidied(summary, moved, new_ids, nulls, rows_per_zone)

    store, directory = place
    name = reader.where.rsplit("/", 1)[-1]
    metadata = {key: value for key, value in reader.metadata.items() if key != NULL_KEY}
    return write_zones(store, directory, name, summary, zones(), nulls, metadata)


def remapped_nulls(nulls: FragmentRows, group: AddressMap) -> FragmentRows:
    """Null rows after the rewrite of a group; those that were deleted before it are gone."""
    old_ids = {old.id for old in group.old}
    found = {id: offsets for id, offsets in nulls.items() if id not in old_ids}
    for old in group.old:
        live = RowSet.of(nulls.get(old.id, BitMap())) & RowSet.full(old.physical_rows)
        for new_id, rows in group.forward(old.id, live - old.deleted).items():
            found[new_id] = found.get(new_id, BitMap()) | BitMap(rows.bitmap)
    return found


def remapped_zones(zones: pa.RecordBatch, group: AddressMap) -> pa.RecordBatch:
    """Zones after the rewrite of a group: at their new places, some of them several times, in any order.

    >>> from tablewright.format.address_map import NewRows, OldRows
    >>> group = AddressMap((OldRows(0, 4, RowSet.of([1])), OldRows(1, 2)), (NewRows(5, 2), NewRows(6, 3)))
    >>> zones = pa.RecordBatch.from_pydict(zone_places(np.array([0, 1, 9]), np.array([0, 0, 0]), np.array([4, 2, 7])))
    >>> remapped_zones(zones, group).to_pydict()
    {'fragment_id': [9, 5, 6, 6], 'zone_start': [0, 0, 0, 1], 'zone_length': [7, 2, 1, 2]}
    """
    fragments, starts, lengths = (zones[field.name].to_numpy().astype(np.int64) for field in PLACE_FIELDS)
    rest = np.flatnonzero(~np.isin(fragments, [old.id for old in group.old]))
    found = [(rest, fragments[rest], starts[rest], lengths[rest])]
    live_before = 0
    for old in group.old:
        here = np.flatnonzero(fragments == old.id)
        deleted = old.deleted.to_numpy()
        edges = np.stack([starts[here], starts[here] + lengths[here]]).clip(max=old.physical_rows)
        ranks = live_before + edges - np.searchsorted(deleted, edges)
        found.append(_split(here[ranks[0] < ranks[1]], ranks[:, ranks[0] < ranks[1]], group.new))
        live_before += old.live_rows
    which, fragments, starts, lengths = (np.concatenate(each) for each in zip(*found, strict=True))
    taken = zones.take(pa.array(which))
    places = zone_places(fragments, starts, lengths)
    arrays = [places.get(field.name, taken[field.name]) for field in zones.schema]
    return pa.RecordBatch.from_arrays(arrays, schema=zones.schema)


def _split(which: _Longs, ranks: _Longs, new: Sequence[NewRows]) -> tuple[_Longs, _Longs, _Longs, _Longs]:
    """Ranges of ranks by the new fragments that they reach into: which zone, fragment id, start, length."""
    ids = np.array([each.id for each in new], np.int64)
    ends = np.cumsum([each.physical_rows for each in new], dtype=np.int64)
    begins = np.concatenate([[0], ends[:-1]]).astype(np.int64)[: len(ends)]
    first, last = np.searchsorted(ends, ranks[0], side="right"), np.searchsorted(ends, ranks[1] - 1, side="right")
    counts = last - first + 1
    zone = np.repeat(np.arange(len(which)), counts)
    member = first[zone] + np.arange(len(zone)) - np.repeat(np.cumsum(counts) - counts, counts)
    low = np.maximum(ranks[0][zone], begins[member])
    high = np.minimum(ranks[1][zone], ends[member])
    filled = low < high  # a new fragment without rows has none of the zone
    return which[zone][filled], ids[member][filled], (low - begins[member])[filled], (high - low)[filled]


def _tidied(
    summary: ZoneSummary, zones: pa.RecordBatch, new_ids: set[int], nulls: FragmentRows | None, rows_per_zone: int
) -> pa.RecordBatch:
    """Zones of new fragments: their nulls counted again, and small neighbours united. Others stay as they are."""
    fragments = zones["fragment_id"].to_numpy()
    is_new = np.isin(fragments, list(new_ids))
    stay, moved = zones.filter(pa.array(~is_new)), zones.filter(pa.array(is_new))
    moved = moved.sort_by([("fragment_id", "ascending"), ("zone_start", "ascending")])
    if not len(moved):
        return stay
    fragments, starts, lengths = (moved[field.name].to_numpy().astype(np.int64) for field in PLACE_FIELDS)
    counted = None if nulls is None else _counts(nulls, fragments, starts, lengths)
    bounds = _neighbours(fragments, starts, lengths, rows_per_zone)
    return pa.concat_batches([stay, united(summary, summary.moved(moved, counted), bounds)])


def _counts(nulls: FragmentRows, fragments: _Longs, starts: _Longs, lengths: _Longs) -> _Longs:
    none = BitMap()
    zones = zip(fragments.tolist(), starts.tolist(), lengths.tolist(), strict=True)
    return np.array([nulls.get(id, none).range_cardinality(start, start + length) for id, start, length in zones])


def _neighbours(fragments: _Longs, starts: _Longs, lengths: _Longs, rows_per_zone: int) -> _Longs:
    """Where a new zone begins if neighbours are united while they have at most ``rows_per_zone`` rows together."""
    touches = np.concatenate([[False], (fragments[1:] == fragments[:-1]) & (starts[1:] == (starts + lengths)[:-1])])
    bounds, rows = [], 0
    for place, (meets, length) in enumerate(zip(touches.tolist(), lengths.tolist(), strict=True)):
        if meets and rows + length <= rows_per_zone:
            rows += length
        else:
            bounds.append(place)
            rows = length
    return np.array(bounds, np.int64)
