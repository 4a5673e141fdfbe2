"""Asking Bloom filters: which zones may hold one of some values. 0.0 and -0.0 are looked for together.

Tests: ``tests/unit/indices/bloomfilter/test_bloomfilter.py``, ``tests/property/test_zones.py``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tablewright.errors import CorruptTable
from tablewright.format.fragment_rows import addresses_of
from tablewright.format.index import IndexMetadata
from tablewright.indices.bloomfilter.blocks import BLOCK_BYTES, may_hold
from tablewright.indices.bloomfilter.build import filter_bytes, open_filters
from tablewright.indices.bloomfilter.hashes import Hashes, hashes_of, supported
from tablewright.indices.files import IndexPlaces
from tablewright.indices.query import Hits, IsIn, IsNull, Query
from tablewright.indices.zones import ZoneReader, ranges_of, united_ranges

__all__ = ["answers", "estimate", "search"]

_NO_IDS = np.zeros(0, np.uint64)


def answers(query: Query, kind: pa.DataType) -> bool:
    """Whether Bloom filters on a column of this type can answer.

    >>> from tablewright.indices.query import Between
    >>> answers(IsIn(pa.array([1])), pa.int64()), answers(Between(low=pa.scalar(1)), pa.int64())
    (True, False)
    """
    return isinstance(query, IsIn | IsNull) and supported(kind)


def search(context: IndexPlaces, index: IndexMetadata, query: Query, *, with_nulls: bool = False) -> Hits:
    """The zones that may match, as ranges; exact addresses for IS NULL where the file knows them."""
    reader = open_filters(context, index)
    nulls = reader.nulls
    match query:
        case IsNull():
            none = _NO_IDS if with_nulls else None
            if nulls is not None:
                return Hits(ids=addresses_of(nulls), nulls=none)
            found = [ranges_of(zones, zones["has_null"].to_numpy(zero_copy_only=False)) for zones in reader.batches()]
            return Hits(ids=_NO_IDS, nulls=none, exact=False, ranges=united_ranges(found))
        case IsIn(values):
            hashes = _looked_for(values)
            found = [ranges_of(zones, _may_match(reader, zones, hashes)) for zones in reader.batches()]
            unknown = addresses_of(nulls) if with_nulls and nulls is not None else None
            return Hits(ids=_NO_IDS, nulls=unknown, exact=False, ranges=united_ranges(found))
        case _:
            raise TypeError(f"Bloom filters can't answer {type(query).__name__}")


def estimate(context: IndexPlaces, index: IndexMetadata, query: Query) -> float | None:
    """The number of null rows; for values it is not known without reading all filters."""
    nulls = open_filters(context, index).nulls if isinstance(query, IsNull) else None
    return None if nulls is None else float(sum(len(offsets) for offsets in nulls.values()))


def _looked_for(values: pa.Array) -> Hashes:
    if pa.types.is_floating(values.type) and np.any(values.to_numpy(zero_copy_only=False) == 0):
        values = pa.concat_arrays([values, pa.array([0.0, -0.0], values.type)])
    return np.unique(hashes_of(values))


def _may_match(reader: ZoneReader, zones: pa.RecordBatch, hashes: Hashes) -> np.ndarray:
    data, starts, sizes = filter_bytes(zones)
    if zones["bloom_filter_data"].null_count or np.any(sizes % BLOCK_BYTES) or np.any(sizes == 0):
        raise CorruptTable(reader.where, ("a Bloom filter is not made of blocks of 32 bytes",))
    return may_hold(data, starts, sizes, hashes)
