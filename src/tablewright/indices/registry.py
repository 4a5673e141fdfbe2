"""The kinds of indices that we build and ask, and the functions that each offers.

Everything outside of ``indices`` that works with any kind goes through :func:`offered`, so that a new kind is one entry
here. An entry that is ``None`` is something that the kind does not do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tablewright.errors import UnknownIndexType
from tablewright.format.address_map import AddressMap
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import (
    BITMAP,
    BLOOMFILTER,
    BTREE,
    LABEL_LIST,
    NGRAM,
    SCALAR_KINDS,
    ZONEMAP,
    IndexKind,
)
from tablewright.indices import bitmap, bloomfilter, btree, label_list, ngram, zonemap
from tablewright.indices.building import BuildPlan, Stage, Translate, WrittenIndex
from tablewright.indices.files import IndexPlaces
from tablewright.indices.query import Hits, Ids, Query
from tablewright.world import World

__all__ = ["Find", "KindFunctions", "Search", "by_name", "offered"]


class Search(Protocol):
    """Which rows of a segment match, in the ids that it stores."""

    def __call__(
        self, context: IndexPlaces, index: IndexMetadata, query: Query, *, with_nulls: bool = False
    ) -> Hits: ...


class Find(Protocol):
    """The ids of some values, or of a range; ``None`` if the segment has more than ``rows_max`` of them, or too many to
    be read at once.
    """

    def __call__(
        self, context: IndexPlaces, index: IndexMetadata, query: Query, *, rows_max: int | None = None
    ) -> Ids | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KindFunctions:
    """What a kind offers.

    ``supported``: which types of columns it takes. ``build`` writes an index. ``answers``, ``search`` and ``estimate``
    ask it; ``find`` asks it for few rows. ``remap`` writes the same entries under new ids; ``remap_zones`` is the
    same for kinds that describe ranges of rows.
    """

    supported: Callable[[pa.DataType], bool] | None = None
    build: Callable[[BuildPlan, World, Stage], WrittenIndex] | None = None
    answers: Callable[[Query, pa.DataType], bool] | None = None
    search: Search | None = None
    find: Find | None = None
    estimate: Callable[[IndexPlaces, IndexMetadata, Query], float | None] | None = None
    remap: Callable[[IndexPlaces, IndexMetadata, Translate, World, str], WrittenIndex] | None = None
    remap_zones: Callable[[IndexPlaces, IndexMetadata, Sequence[AddressMap], World, str], WrittenIndex] | None = None


_NOTHING = KindFunctions()
_OFFERED: dict[str, KindFunctions] = {
    BTREE.name: KindFunctions(
        supported=btree.supported,
        build=btree.build,
        answers=btree.answers,
        search=btree.search,
        find=btree.find,
        estimate=btree.estimate,
        remap=btree.remap,
    ),
    BITMAP.name: KindFunctions(
        supported=bitmap.supported,
        build=bitmap.build,
        answers=bitmap.answers,
        search=bitmap.search,
        find=bitmap.find,
        estimate=bitmap.estimate,
        remap=bitmap.remap,
    ),
    LABEL_LIST.name: KindFunctions(
        supported=label_list.supported,
        build=label_list.build,
        answers=label_list.answers,
        search=label_list.search,
        estimate=label_list.estimate,
        remap=label_list.remap,
    ),
    ZONEMAP.name: KindFunctions(
        supported=zonemap.supported,
        build=zonemap.build,
        answers=zonemap.answers,
        search=zonemap.search,
        estimate=zonemap.estimate,
        remap_zones=zonemap.remap_zones,
    ),
    BLOOMFILTER.name: KindFunctions(
        supported=bloomfilter.supported,
        build=bloomfilter.build,
        answers=bloomfilter.answers,
        search=bloomfilter.search,
        estimate=bloomfilter.estimate,
        remap_zones=bloomfilter.remap_zones,
    ),
    NGRAM.name: KindFunctions(
        supported=ngram.supported,
        build=ngram.build,
        answers=ngram.answers,
        search=ngram.search,
        estimate=ngram.estimate,
        remap=ngram.remap,
    ),
}


def offered(kind: IndexKind) -> KindFunctions:
    """The functions of a kind; all of them ``None`` for one that we only carry along.

    >>> from tablewright.format.index_kinds import VECTOR
    >>> offered(VECTOR).build is None
    True
    """
    return _OFFERED.get(kind.name, _NOTHING)


def by_name(name: str) -> IndexKind:
    """The kind of this name, in any case, with or without underscores.

    >>> by_name("BTREE").label, by_name("label_list").name, by_name("LabelList").name
    ('BTree', 'LABEL_LIST', 'LABEL_LIST')
    >>> by_name("HASH")
    Traceback (most recent call last):
        ...
    tablewright.errors.UnknownIndexType: Only BTREE, ... are supported for scalar columns. Received 'HASH'.
    """
    wanted = name.replace("_", "").upper()
    for kind in SCALAR_KINDS:
        if kind.name.replace("_", "") == wanted:
            return kind
    names = ", ".join(kind.name for kind in SCALAR_KINDS)
    raise UnknownIndexType(f"Only {names} are supported for scalar columns. Received {name!r}.")
