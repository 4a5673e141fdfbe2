"""LABEL_LIST: for each element of a column of lists the set of rows whose list has it. Exact.

A null element is a key as others are. Rows whose list is null are in a set of their own beside the columns: for them
every condition is null. Empty lists are nowhere. Elements are compared bit by bit, as ``array_has`` does it: -0.0 is
not 0.0 here.

Format: ``docs/format/indices.md#label_list-files``.

Tests: ``tests/unit/indices/test_key_set_kinds.py``, ``tests/property/test_key_set_indices.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablewright.data.task_context import TaskContext
from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.id_sets import unite_sets
from tablewright.format.index import IndexFile, IndexMetadata
from tablewright.format.index_kinds import LABEL_LIST
from tablewright.format.row_address_map import decode_row_address_map, encode_row_address_map
from tablewright.indices.btree.keys import fitted
from tablewright.indices.btree.order import order_of
from tablewright.indices.building import BuildPlan, Entries, OldSegment, Stage, Translate, WrittenIndex
from tablewright.indices.files import IndexPlaces, read_buffer
from tablewright.indices.key_sets.build import Pairs, build_file
from tablewright.indices.key_sets.layout import BITMAPS
from tablewright.indices.key_sets.lookup import KeyList, count_each, open_keys, read_sets
from tablewright.indices.key_sets.order import Longs, comparable, places_of
from tablewright.indices.key_sets.remap import remap_file
from tablewright.indices.query import HasAll, HasAny, Hits, Ids, Query
from tablewright.world import World

__all__ = ["answers", "build", "estimate", "pairs_of_elements", "remap", "search", "supported"]

_NULLS = "lance:label_list_nulls"
_VERSION = 1


def supported(kind: pa.DataType) -> bool:
    """Whether a column of this type can have a LABEL_LIST.

    >>> supported(pa.list_(pa.string())), supported(pa.string()), supported(pa.list_(pa.list_(pa.int8())))
    (True, False, False)
    """
    return (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and order_of(kind.field(0).type) is not None


def answers(query: Query, kind: pa.DataType) -> bool:
    """Whether a LABEL_LIST on a column of this type can answer a query.

    >>> answers(HasAny(pa.array([1])), pa.list_(pa.int64()))
    True
    """
    return supported(kind) and isinstance(query, HasAny | HasAll) and len(query.values) > 0


# --------------------------------------------------------------------------------------------------------------- build
def pairs_of_elements(entries: Entries) -> Iterator[Pairs]:
    """Every row with each of its elements; rows whose list is null separately."""
    lists = entries.values
    assert isinstance(lists, pa.ListArray | pa.LargeListArray), f"{lists.type} is no list"
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    valid = lists.is_valid().to_numpy(zero_copy_only=False)
    yield Pairs(lists.flatten(), np.repeat(entries.ids, lengths), entries.ids[~valid])


def build(plan: BuildPlan, world: World, stage: Stage) -> WrittenIndex:
    """Build the index and write its file."""
    context = TaskContext(world, plan.base_paths)

    def old_nulls(segment: OldSegment) -> pa.Array:
        return pa.array([_moved_nulls(context, segment.index, segment.translate)], pa.large_binary())

    def finish(count: int, nulls: pa.Array) -> tuple[dict[str, str], dict[str, bytes]]:
        together = unite_sets(nulls, np.zeros(len(nulls), np.int64), 1, BITMAPS.form)
        return _stats(count), {_NULLS: together[0].as_py()}

    file = build_file(
        plan,
        world,
        stage,
        layout=BITMAPS,
        kind=plan.type.field(0).type,
        pairs=pairs_of_elements,
        finish=finish,
        old_nulls=old_nulls,
    )
    return _written(file)


def remap(
    context: IndexPlaces, index: IndexMetadata, translate: Translate, world: World, directory: str
) -> WrittenIndex:
    """The same index with its rows under new ids."""
    nulls = _moved_nulls(context, index, translate)
    place = context.index_place(index)
    file = remap_file(place, BITMAPS, translate, world, directory, lambda count: (_stats(count), {_NULLS: nulls}))
    return _written(file)


def _moved_nulls(context: IndexPlaces, index: IndexMetadata, translate: Translate) -> bytes:
    found = _null_lists(context, index)
    if found is None:
        raise UnsupportedFeature(
            f"The index {index.name!r} was written by a release that did not record which lists are null. Create it "
            "again with replace=True."
        )
    moved, kept = translate(found)
    return encode_row_address_map(moved[kept])


def _null_lists(context: IndexPlaces, index: IndexMetadata) -> Ids | None:
    """The rows whose list is null; ``None`` if the file does not say."""
    store, directory = context.index_place(index)
    data, where = read_buffer(store, directory, BITMAPS.file, _NULLS)
    if data is None:
        if index.index_version:
            raise CorruptTable(where, (f"its metadata has no {_NULLS!r}",))
        return None
    try:
        return decode_row_address_map(data)
    except ValueError as error:
        raise CorruptTable(where, (f"the set of null lists is broken: {error}",)) from error


# -------------------------------------------------------------------------------------------------------------- search
def search(context: IndexPlaces, index: IndexMetadata, query: Query, *, with_nulls: bool = False) -> Hits:
    """The rows whose list has any or all of some values, and if wanted those whose list is null.

    A null among the values is found where a list has a null element.
    """
    keys = open_keys(context, index, BITMAPS)
    rows, wanted = _asked(keys, query)
    nulls = _null_lists(context, index) if with_nulls else None
    if isinstance(query, HasAll) and len(rows) < wanted:
        return Hits(ids=np.zeros(0, np.uint64), nulls=nulls)
    ids, _ = read_sets(context, index, BITMAPS, rows)
    if len(rows) > 1:
        ids, times = np.unique(ids, return_counts=True)
        ids = ids[times == len(rows)] if isinstance(query, HasAll) else ids
    return Hits(ids=ids, nulls=nulls)


def estimate(context: IndexPlaces, index: IndexMetadata, query: Query) -> float | None:
    """About how many rows the search would return, at most."""
    keys = open_keys(context, index, BITMAPS)
    rows, wanted = _asked(keys, query)
    if isinstance(query, HasAny):
        return float(count_each(context, index, BITMAPS, keys, rows).sum())
    if len(rows) < wanted:
        return 0.0
    return float(count_each(context, index, BITMAPS, keys, rows).min(initial=np.inf))


def _asked(keys: KeyList, query: Query) -> tuple[Longs, int]:
    """The rows of the file with the values of a query, and how many different values these are."""
    if not isinstance(query, HasAny | HasAll):
        raise TypeError(f"a LABEL_LIST can't answer {type(query).__name__}")
    values = fitted(query.values, keys.type)
    present = comparable(values.drop_null())
    different = len(np.unique(present)) if isinstance(present, np.ndarray) else len(present.unique())
    rows = keys.rows[places_of(keys.sorted, present)]
    if values.null_count:
        different += 1
        rows = rows if keys.null_row is None else np.append(rows, keys.null_row)
    return rows, different


def _stats(count: int) -> dict[str, str]:
    return {"lance:index_stats": f'{{"num_bitmaps":{count}}}'}


def _written(file: IndexFile) -> WrittenIndex:
    return WrittenIndex(files=(file,), details_type_url=LABEL_LIST.type_url, index_version=_VERSION)
