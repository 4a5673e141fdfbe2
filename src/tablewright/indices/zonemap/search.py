"""Asking a zone map: which zones may hold a match.

A zone may match unless its bounds exclude it. Where the file says less, the zone is a candidate: bounds are missing, or
it has NaN and the condition has no lower bound (a negative NaN is below every number, and pylance leaves it out of
``min``). 0.0 and -0.0 are the same here, so the answer holds whether or not a filter separates them.

Tests: ``tests/unit/indices/zonemap/test_zonemap.py``, ``tests/property/test_zones.py``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablewright.format.fragment_rows import addresses_of
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import ZONEMAP
from tablewright.indices.files import IndexPlaces
from tablewright.indices.query import Between, Hits, IsIn, IsNull, Query, RowRanges, StartsWith
from tablewright.indices.zonemap.build import value_type
from tablewright.indices.zonemap.order import has_order, keys_of, ranks
from tablewright.indices.zones import ZoneReader, ranges_of, united_ranges

__all__ = ["answers", "estimate", "search"]

_Mask = npt.NDArray[np.bool_]
_NO_IDS = np.zeros(0, np.uint64)
_ZERO = 0
_BEYOND = 1 << 64  # no key


def answers(query: Query, kind: pa.DataType) -> bool:
    """Whether a zone map on a column of this type can answer.

    >>> answers(StartsWith("a"), pa.string()), answers(StartsWith("a"), pa.int8()), answers(IsNull(), pa.int8())
    (True, False, True)
    """
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    match query:
        case IsNull():
            return True
        case IsIn() | Between():
            return has_order(kind)
        case StartsWith():
            return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
        case _:
            return False


def search(context: IndexPlaces, index: IndexMetadata, query: Query, *, with_nulls: bool = False) -> Hits:
    """The zones that may match, as ranges; exact addresses for IS NULL where the file knows them."""
    reader = ZoneReader(context, index, ZONEMAP.files[0])
    nulls = reader.nulls
    if isinstance(query, IsNull) and nulls is not None:
        return Hits(ids=addresses_of(nulls), nulls=_NO_IDS if with_nulls else None)
    ranges = _candidates(reader, query)
    if isinstance(query, IsNull):
        return Hits(ids=_NO_IDS, nulls=_NO_IDS if with_nulls else None, exact=False, ranges=ranges)
    unknown = addresses_of(nulls) if with_nulls and nulls is not None else None
    return Hits(ids=_NO_IDS, nulls=unknown, exact=False, ranges=ranges)


def estimate(context: IndexPlaces, index: IndexMetadata, query: Query) -> float | None:
    """The rows of all zones that may match, or the null rows."""
    reader = ZoneReader(context, index, ZONEMAP.files[0])
    if isinstance(query, IsNull) and reader.nulls is not None:
        return float(sum(len(offsets) for offsets in reader.nulls.values()))
    return float(_candidates(reader, query).rows)


def _candidates(reader: ZoneReader, query: Query) -> RowRanges:
    kind = value_type(reader)
    if not answers(query, kind):
        raise TypeError(f"a zone map on {kind} can't answer {type(query).__name__}")
    return united_ranges(ranges_of(zones, _mask(zones, query)) for zones in reader.batches())


def _mask(zones: pa.RecordBatch, query: Query) -> _Mask:
    """Which zones may hold a match."""
    if isinstance(query, IsNull):
        return np.asarray(zones["null_count"].to_numpy() > 0)
    low, high = (_plain(zones[name]) for name in ("min", "max"))
    nans = zones["nan_count"].to_numpy() > 0
    bounded = high.is_valid().to_numpy(zero_copy_only=False) & (low.is_valid().to_numpy(zero_copy_only=False) | nans)
    kept = pa.array(bounded)
    low, high = pc.coalesce(low, high).filter(kept), high.filter(kept)
    chosen = ~bounded & ~_all_null(zones)
    if pa.types.is_floating(low.type):
        chosen[bounded] = _of_floats(query, low, high, nans[bounded])
    else:
        chosen[bounded] = _of_others(query, low, high)
    return chosen


def _all_null(zones: pa.RecordBatch) -> _Mask:
    return np.asarray(zones["null_count"].to_numpy() >= zones["zone_length"].to_numpy())


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def _of_others(query: Query, low: pa.Array, high: pa.Array) -> _Mask:
    match query:
        case IsIn(values):
            keys, lows, highs = ranks(values.cast(low.type), low, high)
            return _holds_one(keys, lows, highs)
        case Between(low=first, high=last, low_inclusive=from_low, high_inclusive=to_high):
            chosen = np.ones(len(low), np.bool_)
            if first is not None:
                key, highs = ranks(_one(first, low.type), high)
                chosen &= highs >= key if from_low else highs > key
            if last is not None:
                key, lows = ranks(_one(last, low.type), low)
                chosen &= lows <= key if to_high else lows < key
            return chosen
        case StartsWith(prefix):
            return _starting(prefix.encode(), low.cast(pa.large_binary()), high.cast(pa.large_binary()))
        case _:
            raise AssertionError(query)


def _of_floats(query: Query, low: pa.Array, high: pa.Array, nans: _Mask) -> _Mask:
    """Zones of floats. A condition that a NaN of either sign may meet chooses all zones that have one."""
    lows, highs = (_keys(each) for each in (low, high))
    match query:
        case IsIn(values):
            floats = values.cast(low.type)
            is_nan = _is_nan(floats)
            return _holds_one(_keys(floats)[~is_nan], lows, highs) | (nans & bool(is_nan.any()))
        case Between(low=first, high=last, low_inclusive=from_low, high_inclusive=to_high):
            least, most = _edge(first, low.type, below=True), _edge(last, low.type, below=False)
            if least == _BEYOND or most == _BEYOND:
                return nans
            chosen = np.ones(len(low), np.bool_)
            if most is not None:
                chosen = (lows <= most if to_high or most == _ZERO else lows < most) | (nans & (least is None))
            if least is not None:
                chosen &= highs >= least if from_low or least == _ZERO else highs > least
            return chosen
        case _:
            raise AssertionError(query)


def _edge(value: pa.Scalar | None, kind: pa.DataType, *, below: bool) -> int | None:
    """The key of a bound; ``None`` for one that excludes no number, :data:`_BEYOND` for one that excludes them all.

    NaN is one or the other: it lies above all numbers, and below them if it is negative.
    """
    if value is None:
        return None
    one = _one(value, kind)
    if not _is_nan(one)[0]:
        return int(_keys(one)[0])
    is_low = bool(keys_of(one)[0] < _ZERO)
    return None if is_low == below else _BEYOND


def _keys(floats: pa.Array) -> npt.NDArray[np.int64]:
    """Keys in the total order, with one key for both zeros."""
    keys = keys_of(floats)
    return np.where(keys == _ZERO - 1, _ZERO, keys)  # that of -0.0 is the one before


def _is_nan(floats: pa.Array) -> _Mask:
    return np.asarray(np.isnan(floats.to_numpy(zero_copy_only=False).astype(np.float64)))


def _one(value: pa.Scalar, kind: pa.DataType) -> pa.Array:
    return pa.array([value], value.type).cast(kind)


def _holds_one(keys: npt.NDArray[np.int64], lows: npt.NDArray[np.int64], highs: npt.NDArray[np.int64]) -> _Mask:
    """Intervals, both ends included, that hold at least one of the keys."""
    keys = np.sort(keys)
    return np.asarray(np.searchsorted(keys, lows, side="left") < np.searchsorted(keys, highs, side="right"))


def _starting(prefix: bytes, low: pa.Array, high: pa.Array) -> _Mask:
    """Intervals that reach into the values with a prefix: from itself to before the next prefix of its length."""
    bare = prefix.rstrip(b"\xff")
    after = bare[:-1] + bytes([bare[-1] + 1]) if bare else None
    keys, lows, highs = ranks(pa.array([prefix, after or prefix], pa.large_binary()), low, high)
    return np.asarray((highs >= keys[0]) & ((lows < keys[1]) | (after is None)))
