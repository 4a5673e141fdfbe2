"""The kinds of indices that the format has: how each is named, what its files are, and how it names rows.

Format: ``docs/format/indices.md#kinds``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tablewright.format.index import IndexMetadata

__all__ = [
    "BITMAP",
    "BLOOMFILTER",
    "BTREE",
    "FRAGMENT_REUSE",
    "INVERTED",
    "LABEL_LIST",
    "NGRAM",
    "REUSE_NAME",
    "SCALAR_KINDS",
    "VECTOR",
    "ZONEMAP",
    "IndexKind",
    "is_system",
    "kind_of",
    "stores_row_ids",
]

REUSE_NAME = "__lance_frag_reuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexKind:
    """One kind. ``name`` is what users ask for, ``label`` what a plan prints, ``type_url`` what a manifest holds.

    ``zones``: it describes ranges of physical rows, so it stores addresses also on tables with stable row ids.
    ``exact``: its answer needs no second look at the values. ``version_max`` is the newest version that we read.
    """

    name: str
    label: str
    type_url: str
    files: tuple[str, ...]
    zones: bool = False
    exact: bool = True
    version_max: int = 0

    @property
    def details(self) -> str:
        """The last part of the type url, by which kinds are compared."""
        return self.type_url.rsplit(".", 1)[-1]


BTREE = IndexKind(
    name="BTREE",
    label="BTree",
    type_url="/lance.table.BTreeIndexDetails",
    files=("page_data.lance", "page_lookup.lance"),
    version_max=1,
)
BITMAP = IndexKind(
    name="BITMAP", label="Bitmap", type_url="/lance.table.BitmapIndexDetails", files=("bitmap_page_lookup.lance",)
)
LABEL_LIST = IndexKind(
    name="LABEL_LIST",
    label="LabelList",
    type_url="/lance.table.LabelListIndexDetails",
    files=("bitmap_page_lookup.lance",),
    version_max=1,
)
ZONEMAP = IndexKind(
    name="ZONEMAP",
    label="ZoneMap",
    type_url="/lance.table.ZoneMapIndexDetails",
    files=("zonemap.lance",),
    zones=True,
    exact=False,
)
BLOOMFILTER = IndexKind(
    name="BLOOMFILTER",
    label="BloomFilter",
    type_url="/lance.index.pb.BloomFilterIndexDetails",
    files=("bloomfilter.lance",),
    zones=True,
    exact=False,
)
NGRAM = IndexKind(
    name="NGRAM",
    label="NGram",
    type_url="/lance.table.NGramIndexDetails",
    files=("ngram_postings.lance",),
    exact=False,
)
INVERTED = IndexKind(
    name="INVERTED",
    label="Inverted",
    type_url="/lance.table.InvertedIndexDetails",
    files=("metadata.lance",),
    version_max=2,
)
VECTOR = IndexKind(
    name="VECTOR",
    label="Vector",
    type_url="/lance.index.pb.VectorIndexDetails",
    files=("index.idx", "auxiliary.idx"),
    version_max=1,
)
FRAGMENT_REUSE = IndexKind(
    name="FRAGMENT_REUSE", label="FragmentReuse", type_url="/lance.table.FragmentReuseIndexDetails", files=()
)

SCALAR_KINDS = (BTREE, BITMAP, LABEL_LIST, ZONEMAP, BLOOMFILTER, NGRAM)
"""The kinds that we build and ask."""

_EVERY = (*SCALAR_KINDS, INVERTED, VECTOR, FRAGMENT_REUSE)
_WITHOUT_DETAILS = (BTREE, VECTOR)


def kind_of(index: IndexMetadata) -> IndexKind | None:
    """The kind of an index; ``None`` for one that this release does not know.

    Old releases wrote no details; a BTREE and a vector index are recognised by their files.

    >>> from uuid import UUID
    >>> index = IndexMetadata(uuid=UUID(int=1), fields=(0,), name="i", dataset_version=1)
    >>> from dataclasses import replace
    >>> kind_of(replace(index, details_type_url="/lance.table.NGramIndexDetails")).name, kind_of(index)
    ('NGRAM', None)
    """
    if index.details_type_url is None:
        return _by_files(file.path for file in index.files)
    last = index.details_type_url.rsplit(".", 1)[-1].lower()
    return next((kind for kind in _EVERY if kind.details.lower() == last), None)


def _by_files(paths: Iterable[str]) -> IndexKind | None:
    names = set(paths)
    return next((kind for kind in _WITHOUT_DETAILS if names.issuperset(kind.files)), None)


def stores_row_ids(index: IndexMetadata) -> bool:
    """Whether the files name rows of a stable table by row id, so that they stay right when a row moves.

    A BTREE of version 1 and kinds that describe zones store addresses. So may a kind that we do not know.
    """
    kind = kind_of(index)
    if kind is None or kind.zones or kind is FRAGMENT_REUSE:
        return False
    return kind is not BTREE or not index.index_version


def is_system(index: IndexMetadata) -> bool:
    """Whether an entry is bookkeeping of the format rather than an index on columns."""
    return index.name.startswith("__lance_")
