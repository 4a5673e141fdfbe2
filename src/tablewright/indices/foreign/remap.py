"""Which foreign indices can follow rows that move, and how.

Tests: ``tests/unit/indices/foreign/test_remap.py``, ``tests/differential/indices/test_foreign.py``.
"""

from __future__ import annotations

from google.protobuf.message import DecodeError

from tablewright.errors import UnsupportedFeature
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import INVERTED, VECTOR, kind_of
from tablewright.format.proto import index_details_pb2 as pb
from tablewright.indices.building import Translate, WrittenIndex
from tablewright.indices.files import IndexPlaces
from tablewright.indices.foreign.inverted import remap_inverted
from tablewright.indices.foreign.vector import REMAPPABLE_TYPES, index_type, remap_vector
from tablewright.world import World

__all__ = ["is_graph", "remap", "remappable"]

_FORMATS = (1, 2)
_VECTOR_VERSIONS = (None, 0, 1)
_GRAPH = "_HNSW_"  # in the name of a type


def remappable(index: IndexMetadata, context: IndexPlaces | None = None) -> bool:
    """Whether :func:`remap` can rewrite an index: IVF_FLAT, IVF_PQ, IVF_SQ, and full-text indices of format 1 and 2.

    Some vector indices do not say in the manifest what they are; with a ``context`` their files are asked.
    """
    kind = kind_of(index)
    if kind is INVERTED:
        return index.index_version in _FORMATS
    if kind is not VECTOR or index.index_version not in _VECTOR_VERSIONS:
        return False
    known = _says(index.details_value)
    if known is None and context is not None:
        return index_type(*context.index_place(index)) in REMAPPABLE_TYPES
    return bool(known)


def is_graph(index: IndexMetadata, context: IndexPlaces) -> bool:
    """Whether a vector index has a graph (HNSW): its nodes are rows by number, so a reader can't leave any out."""
    if kind_of(index) is not VECTOR:
        return False
    named = _named(index.details_value)
    if named:
        return "hnsw" in named
    return _GRAPH in index_type(*context.index_place(index))


def _says(details: bytes) -> bool | None:
    """Whether details describe an index without a graph, of vectors or codes that we know; ``None`` if empty."""
    named = _named(details)
    if named is None:
        return False
    return named in (["flat"], ["pq"], ["sq"]) if named else None


def _named(details: bytes) -> list[str] | None:
    """The parts that details describe; ``None`` if they can't be decoded."""
    try:
        found = pb.VectorDetails.FromString(details)
    except DecodeError:
        return None
    return [name for name in ("flat", "pq", "sq", "rq", "hnsw") if found.HasField(name)]


def remap(
    context: IndexPlaces, index: IndexMetadata, translate: Translate, world: World, directory: str
) -> WrittenIndex:
    """Write an index again with the addresses that its rows have now.

    :class:`UnsupportedFeature` if it is not :func:`remappable`.
    """
    source = context.index_place(index)
    if not remappable(index, context):
        raise UnsupportedFeature(f"The index {index.name!r} ({index.uuid}) is of a kind that can't be remapped.")
    kind = kind_of(index)
    assert kind is not None, "it is remappable"
    if kind is VECTOR and (found := index_type(*source)) not in REMAPPABLE_TYPES:
        raise UnsupportedFeature(f"The index {index.name!r} ({index.uuid}) is {found}, which can't be remapped.")
    rewrite = remap_inverted if kind is INVERTED else remap_vector
    return WrittenIndex(
        files=rewrite(source, translate, (world.store, directory)),
        details_type_url=index.details_type_url or kind.type_url,
        details_value=index.details_value,
        index_version=index.index_version or 0,
    )
