"""Reading keys and row sets: which keys are asked for, and the rows of these alone.

The keys of an index are read once and kept in the cache of the process, in order, each with the row of the file where
its set is. Sets are read when they are asked for.

Tests: ``tests/unit/indices/test_key_set_kinds.py``.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.cache import CacheKind
from tablewright.errors import CorruptTable
from tablewright.format.id_sets import count_sets, decode_sets
from tablewright.format.index import IndexMetadata
from tablewright.indices.files import IndexPlaces, open_index_file
from tablewright.indices.key_sets.layout import Layout
from tablewright.indices.key_sets.order import Comparable, Longs, comparable, is_ascending, sort_order
from tablewright.indices.query import Ids
from tablewright.storage.address import join_uri
from tablewright.storage.base import Store
from tablewright.storage.identity import is_local, is_settled, local_identity, place_of

__all__ = ["KeyList", "count_each", "open_keys", "read_set", "read_sets"]

Counts = npt.NDArray[np.float64]

_BATCH_ROWS = 1 << 14
_VALUES_MAX = 1 << 31  # ids that one answer may hold
_EXACT_BYTES = 1 << 20  # of sets that are read for an estimate
_KEPT_BYTES_MAX = 1 << 23  # of a set in memory
_SINGLE_BYTES = 28  # of a set besides its values


@dataclass(frozen=True, slots=True, eq=False)
class KeyList:
    """The keys of one file. ``sorted`` has no null; its key ``i`` is in row ``rows[i]``, the null key in ``null_row``.

    ``metadata`` is the file's. ``set_bytes`` is the mean length of a set, as stored.
    """

    type: pa.DataType
    sorted: Comparable
    rows: Longs
    null_row: int | None
    metadata: dict[str, str]
    set_bytes: int

    @property
    def nbytes(self) -> int:
        """The bytes that it takes in memory."""
        return int(self.sorted.nbytes + self.rows.nbytes) + 512


_kept = CacheKind[KeyList]("keys of indices")
_sets = CacheKind[Ids]("sets of indices")


def open_keys(context: IndexPlaces, index: IndexMetadata, layout: Layout) -> KeyList:
    """The keys of an index, from the cache or from its file."""
    store, directory = context.index_place(index)
    path = f"{directory}/{layout.file}"
    key = _cache_key(store, path, settled=False)
    found = None if key is None else _kept.find(key)
    if found is not None:
        return found
    found = _read_keys(store, directory, layout)
    key = _cache_key(store, path, settled=True)
    if key is not None:
        _kept.keep(key, found, found.nbytes)
    return found


def _cache_key(store: Store, path: str, *, settled: bool) -> Hashable | None:
    location = store.codec_location(path)
    if location is None:
        return None
    if not is_local(location):
        return place_of(location)
    identity = local_identity(location.uri)
    if identity is None or (settled and not is_settled(identity)):
        return None
    return location.uri, identity


def _read_keys(store: Store, directory: str, layout: Layout) -> KeyList:
    reader = open_index_file(store, directory, layout.file, [layout.keys])
    schema, rows = reader.schema, reader.num_rows
    if layout.sets not in schema.names or schema.field(layout.sets).type not in (pa.binary(), pa.large_binary()):
        raise CorruptTable(reader.where, (f"it has no column {layout.sets!r} of bytes",))
    kind = schema.field(layout.keys).type
    batches = [batch.column(0) for batch in reader.read(0, rows, _BATCH_ROWS)] if rows else []
    keys = pa.concat_arrays(batches) if batches else pa.array([], kind)
    valid = keys.is_valid().to_numpy(zero_copy_only=False)
    nulls, places = np.flatnonzero(~valid), np.flatnonzero(valid)
    if len(nulls) > 1:
        raise CorruptTable(reader.where, (f"{len(nulls)} of its keys are null",))
    try:
        found = comparable(keys.drop_null())
    except TypeError as error:
        raise CorruptTable(reader.where, (f"{error}",)) from error
    if not is_ascending(found):
        order = sort_order(found)
        places = places[order]
        found = found[order] if isinstance(found, np.ndarray) else found.take(pa.array(order))
        if not is_ascending(found):
            raise CorruptTable(reader.where, ("a key comes twice",))
    metadata = {name.decode(): value.decode() for name, value in (schema.metadata or {}).items()}
    stored = reader.column_bytes[-1] if rows else 0
    null_row = int(nulls[0]) if len(nulls) else None
    return KeyList(kind, found, places, null_row, metadata, stored // max(1, rows))


def read_sets(context: IndexPlaces, index: IndexMetadata, layout: Layout, rows: Longs) -> tuple[Ids, Longs]:
    """The sets in some different rows of the file, by ascending row: all ids, and how many each set has."""
    if not len(rows):
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    sets, where = _stored(context, index, layout, np.sort(rows))
    try:
        return decode_sets(sets, layout.form, _VALUES_MAX)
    except ValueError as error:
        raise CorruptTable(where, (f"{error}",)) from error


def read_set(context: IndexPlaces, index: IndexMetadata, layout: Layout, row: int) -> Ids:
    """The set in one row of the file; a small one is kept in the cache of the process."""
    store, directory = context.index_place(index)
    key = _cache_key(store, f"{directory}/{layout.file}", settled=True)
    found = None if key is None else _sets.find((key, row))
    if found is None:
        found = read_sets(context, index, layout, np.array([row]))[0]
        if key is not None and found.nbytes <= _KEPT_BYTES_MAX:
            _sets.keep((key, row), found, found.nbytes)
    return found


def _stored(context: IndexPlaces, index: IndexMetadata, layout: Layout, rows: Longs) -> tuple[pa.Array, str]:
    store, directory = context.index_place(index)
    reader = open_index_file(store, directory, layout.file, [layout.sets])
    where = join_uri(store.location.uri, f"{directory}/{layout.file}")
    first, count = int(rows[0]), len(rows)
    if int(rows[-1]) - first + 1 == count:
        batches = list(reader.read(first, count, _BATCH_ROWS))
    else:
        batches = list(reader.take(rows, _BATCH_ROWS))
    return pa.concat_arrays([batch.column(0).cast(pa.large_binary()) for batch in batches]), where


def count_each(context: IndexPlaces, index: IndexMetadata, layout: Layout, keys: KeyList, rows: Longs) -> Counts:
    """About how many ids the set in each row has: counted where they are small, else from the mean length of a set."""
    if not len(rows) or len(rows) * keys.set_bytes > _EXACT_BYTES:
        return np.full(len(rows), max(1.0, (keys.set_bytes - _SINGLE_BYTES) / 2))
    sets, where = _stored(context, index, layout, np.sort(rows))
    try:
        return count_sets(sets, layout.form).astype(np.float64)
    except ValueError as error:
        raise CorruptTable(where, (f"{error}",)) from error
