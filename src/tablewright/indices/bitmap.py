"""BITMAP: for each value of a column the set of rows that have it. Exact, and at its best with few different values.

The null key comes first, then values in order; NaNs with different bits are different keys, as pylance has it.

Format: ``docs/format/indices.md#bitmap-files``.

Tests: ``tests/unit/indices/test_key_set_kinds.py``, ``tests/property/test_key_set_indices.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tablewright.format.index import IndexFile, IndexMetadata
from tablewright.format.index_kinds import BITMAP
from tablewright.indices.btree.order import order_of
from tablewright.indices.building import BuildPlan, Entries, Stage, Translate, WrittenIndex
from tablewright.indices.files import IndexPlaces
from tablewright.indices.key_sets.build import Pairs, build_file, storage_type
from tablewright.indices.key_sets.layout import BITMAPS
from tablewright.indices.key_sets.lookup import KeyList, count_each, open_keys, read_set, read_sets
from tablewright.indices.key_sets.order import Longs
from tablewright.indices.key_sets.ranges import keys_between, keys_in, keys_with_prefix
from tablewright.indices.key_sets.remap import remap_file
from tablewright.indices.query import Between, Hits, Ids, IsIn, IsNull, Query, StartsWith
from tablewright.world import World

__all__ = ["answers", "build", "estimate", "find", "pairs_of_values", "remap", "search", "supported"]

_FEW_KEYS = 16
_FEW_BYTES = 1 << 16


def supported(kind: pa.DataType) -> bool:
    """Whether a column of this type can have a BITMAP.

    >>> supported(pa.string()), supported(pa.list_(pa.string()))
    (True, False)
    """
    return order_of(kind) is not None


def answers(query: Query, kind: pa.DataType) -> bool:
    """Whether a BITMAP on a column of this type can answer a query.

    >>> answers(IsNull(), pa.int32()), answers(StartsWith("a"), pa.int32())
    (True, False)
    """
    if not supported(storage_type(kind)):
        return False
    if isinstance(query, StartsWith):
        return storage_type(kind) in (pa.string(), pa.large_string())
    return isinstance(query, IsIn | Between | IsNull)


def pairs_of_values(entries: Entries) -> Iterator[Pairs]:
    """Every row with its value."""
    yield Pairs(entries.values, entries.ids)


def build(plan: BuildPlan, world: World, stage: Stage) -> WrittenIndex:
    """Build the index and write its file."""
    file = build_file(
        plan,
        world,
        stage,
        layout=BITMAPS,
        kind=storage_type(plan.type),
        pairs=pairs_of_values,
        finish=lambda count, _: (_stats(count), {}),
    )
    return _written(file)


def remap(
    context: IndexPlaces, index: IndexMetadata, translate: Translate, world: World, directory: str
) -> WrittenIndex:
    """The same index with its rows under new ids."""
    place = context.index_place(index)
    return _written(remap_file(place, BITMAPS, translate, world, directory, lambda count: (_stats(count), {})))


def search(context: IndexPlaces, index: IndexMetadata, query: Query, *, with_nulls: bool = False) -> Hits:
    """The rows for which a condition is true, and if wanted those for which it is null."""
    keys = open_keys(context, index, BITMAPS)
    ids, _ = read_sets(context, index, BITMAPS, _asked(keys, query))
    if not with_nulls:
        return Hits(ids=ids)
    without = _null_row(keys)[:0] if isinstance(query, IsNull) else _null_row(keys)
    return Hits(ids=ids, nulls=read_sets(context, index, BITMAPS, without)[0])


def find(context: IndexPlaces, index: IndexMetadata, query: Query, *, rows_max: int | None = None) -> Ids | None:
    """The ids of some values; ``None`` if there are more than ``rows_max``, and for ranges."""
    if not isinstance(query, IsIn):
        return None
    keys = open_keys(context, index, BITMAPS)
    rows = np.unique(_asked(keys, query))
    if len(rows) > _FEW_KEYS or (rows_max is not None and len(rows) * keys.set_bytes > _FEW_BYTES):
        return None
    sets = [read_set(context, index, BITMAPS, int(row)) for row in rows]
    ids = sets[0] if len(sets) == 1 else np.concatenate([np.zeros(0, np.uint64), *sets])
    return ids if rows_max is None or len(ids) <= rows_max else None


def estimate(context: IndexPlaces, index: IndexMetadata, query: Query) -> float | None:
    """About how many rows the search would return."""
    keys = open_keys(context, index, BITMAPS)
    return float(count_each(context, index, BITMAPS, keys, _asked(keys, query)).sum())


def _asked(keys: KeyList, query: Query) -> Longs:
    """The rows of the file with the keys that a query asks for."""
    if isinstance(query, IsIn):
        return keys_in(keys, query)
    if isinstance(query, Between):
        return keys_between(keys, query)
    if isinstance(query, IsNull):
        return _null_row(keys)
    if isinstance(query, StartsWith):
        return keys_with_prefix(keys, query)
    raise TypeError(f"a BITMAP can't answer {type(query).__name__}")


def _null_row(keys: KeyList) -> Longs:
    return np.array([] if keys.null_row is None else [keys.null_row], np.int64)


def _stats(count: int) -> dict[str, str]:
    return {"lance:index_stats": f'{{"num_bitmaps":{count}}}'}


def _written(file: IndexFile) -> WrittenIndex:
    return WrittenIndex(files=(file,), details_type_url=BITMAP.type_url)
