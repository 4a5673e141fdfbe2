"""NGRAM: build, search and remap. What a search returns is a superset: rows that have all tokens of the text.

Format: ``docs/format/indices.md#ngram-files``.

Tests: ``tests/unit/indices/test_key_set_kinds.py``, ``tests/property/test_key_set_indices.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tablewright.format.index import IndexFile, IndexMetadata
from tablewright.format.index_kinds import NGRAM
from tablewright.indices.building import BuildPlan, Entries, Stage, Translate, WrittenIndex
from tablewright.indices.files import IndexPlaces
from tablewright.indices.key_sets.build import Pairs, build_file
from tablewright.indices.key_sets.layout import POSTINGS
from tablewright.indices.key_sets.lookup import KeyList, count_each, open_keys, read_sets
from tablewright.indices.key_sets.order import Longs, places_of
from tablewright.indices.key_sets.remap import remap_file
from tablewright.indices.ngram.tokens import NULL_TOKEN, query_tokens, text_tokens
from tablewright.indices.query import Contains, Hits, Ids, Query, StartsWith
from tablewright.world import World

__all__ = ["answers", "build", "estimate", "pairs_of_tokens", "remap", "search", "supported"]


def supported(kind: pa.DataType) -> bool:
    """Whether a column of this type can have an NGRAM.

    >>> supported(pa.large_string()), supported(pa.binary())
    (True, False)
    """
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def answers(query: Query, kind: pa.DataType) -> bool:
    """Whether an NGRAM on a column of this type can answer a query: it needs three ASCII letters or digits in a row.

    >>> answers(Contains("-ab1-"), pa.string()), answers(Contains("ab-1"), pa.string())
    (True, False)
    """
    return supported(kind) and isinstance(query, Contains | StartsWith) and len(query_tokens(_text(query))) > 0


def _text(query: Query) -> str:
    if isinstance(query, Contains):
        return query.text
    if isinstance(query, StartsWith):
        return query.prefix
    raise TypeError(f"an NGRAM can't answer {type(query).__name__}")


# --------------------------------------------------------------------------------------------------------------- build
def pairs_of_tokens(entries: Entries) -> Iterator[Pairs]:
    """Every row with each of its tokens; rows whose text is null with a token of their own."""
    valid = entries.values.is_valid().to_numpy(zero_copy_only=False)
    nulls, ids = entries.ids[~valid], entries.ids[valid]
    if len(nulls):
        yield Pairs(pa.array(np.full(len(nulls), NULL_TOKEN, np.uint32)), nulls)
    for tokens, rows in text_tokens(entries.values.drop_null()):
        yield Pairs(pa.array(tokens), ids[rows])


def build(plan: BuildPlan, world: World, stage: Stage) -> WrittenIndex:
    """Build the index and write its file."""
    file = build_file(
        plan,
        world,
        stage,
        layout=POSTINGS,
        kind=pa.uint32(),
        pairs=pairs_of_tokens,
        finish=lambda _count, _nulls: ({}, {}),
    )
    return _written(file)


def remap(
    context: IndexPlaces, index: IndexMetadata, translate: Translate, world: World, directory: str
) -> WrittenIndex:
    """The same index with its rows under new ids."""
    place = context.index_place(index)
    return _written(remap_file(place, POSTINGS, translate, world, directory, lambda _count: ({}, {})))


# -------------------------------------------------------------------------------------------------------------- search
def search(context: IndexPlaces, index: IndexMetadata, query: Query, *, with_nulls: bool = False) -> Hits:
    """The rows that have every token of the text, and if wanted those whose text is null."""
    keys = open_keys(context, index, POSTINGS)
    rows = _asked(keys, query)
    found = np.zeros(0, np.uint64) if rows is None else _shared(*read_sets(context, index, POSTINGS, rows))
    nulls = None
    if with_nulls:
        nulls = read_sets(context, index, POSTINGS, _rows_of(keys, np.array([NULL_TOKEN])))[0]
    return Hits(ids=found, nulls=nulls, exact=False)


def estimate(context: IndexPlaces, index: IndexMetadata, query: Query) -> float | None:
    """About how many rows the search would return: as many as have the rarest token."""
    keys = open_keys(context, index, POSTINGS)
    rows = _asked(keys, query)
    return 0.0 if rows is None else float(count_each(context, index, POSTINGS, keys, rows).min())


def _asked(keys: KeyList, query: Query) -> Longs | None:
    """The rows of the file with the tokens of a query; ``None`` if the file lacks one of them."""
    tokens = query_tokens(_text(query))
    if not len(tokens):
        raise TypeError(f"an NGRAM can't answer {query}: it has no three ASCII letters or digits in a row")
    rows = _rows_of(keys, tokens.astype(np.int64))
    return rows if len(rows) == len(tokens) else None


def _rows_of(keys: KeyList, tokens: Longs) -> Longs:
    return keys.rows[places_of(keys.sorted, tokens)]


def _shared(ids: Ids, counts: Longs) -> Ids:
    """The ids that are in every set, beginning with the smallest set."""
    ends = np.cumsum(counts)
    order = np.argsort(counts, kind="stable").tolist()
    found = ids[ends[order[0]] - counts[order[0]] : ends[order[0]]]
    for place in order[1:]:
        found = np.intersect1d(found, ids[ends[place] - counts[place] : ends[place]], assume_unique=True)
    return found


def _written(file: IndexFile) -> WrittenIndex:
    return WrittenIndex(files=(file,), details_type_url=NGRAM.type_url)
