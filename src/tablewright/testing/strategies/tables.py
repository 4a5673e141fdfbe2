"""Strategies for schemas, fragments, indices and manifests.

Tests: ``tests/property/test_format_codecs.py``.
"""

from __future__ import annotations

import struct
from functools import cache, lru_cache
from typing import Any
from uuid import UUID

import pyarrow as pa
from hypothesis import strategies as st
from pyroaring import BitMap

from tablewright.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment, FragmentList
from tablewright.format.index import IndexFile, IndexMetadata
from tablewright.format.manifest import BasePath, Manifest, WriterVersion
from tablewright.format.row_ids import RowIdSequence, VersionSequence, encode_row_ids, encode_versions
from tablewright.format.row_set import RowSet
from tablewright.format.schema import Schema
from tablewright.format.wire import encode_length_delimited, encode_varint

__all__ = [
    "base_paths",
    "bitmaps",
    "data_files",
    "deletion_files",
    "field_ids",
    "fragments",
    "index_files",
    "indices",
    "manifests",
    "maps",
    "row_sets",
    "schemas",
    "texts",
    "u32",
    "u64",
    "unknown_fields",
    "uuids",
]

_FIRST_UNKNOWN = 3000
_TEXTS = ("", "a", "id", "_rowid", "ä", "数据", "two words", "a.b", "`q`", "\0", "😀", "NULL", "x" * 12)
_ROWS_MAX = 1 << 20

u32 = st.integers(0, (1 << 32) - 1)
u64 = st.integers(0, (1 << 64) - 1)
field_ids = st.integers(0, (1 << 31) - 1)
uuids = st.builds(lambda raw: UUID(bytes=raw), st.binary(min_size=16, max_size=16))


@cache
def texts(max_size: int = 12) -> st.SearchStrategy[str]:
    """Any text that UTF-8 can hold; half of them picked from a few telling ones, which is cheap."""
    some = [text for text in _TEXTS if len(text) <= max_size]
    return st.one_of(st.sampled_from(some), st.text(st.characters(exclude_categories=["Cs"]), max_size=max_size))


def _wire_fields(seed: int) -> bytes:
    """A few fields with numbers that no message of ours has, of every wire type."""
    out = b""
    for step in range(seed % 4):
        tag, payload = _FIRST_UNKNOWN + seed % 50 + step, bytes(range(seed % 20))
        out += [
            encode_varint(tag << 3) + encode_varint(seed**5),
            encode_varint(tag << 3 | 1) + struct.pack("<Q", seed**9),
            encode_length_delimited(tag, payload),
            encode_varint(tag << 3 | 5) + struct.pack("<I", seed**3),
        ][(seed + step) % 4]
    return out


@cache
def unknown_fields() -> st.SearchStrategy[bytes]:
    """Serialised fields that no .proto file of ours names; often none."""
    return st.sampled_from([b"", *(_wire_fields(seed) for seed in range(100))])


@lru_cache(maxsize=64)
def maps(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Small maps with texts as keys."""
    return st.dictionaries(texts(), values, max_size=3)


@cache
def row_sets() -> st.SearchStrategy[RowSet]:
    """Sets of rows of one fragment."""
    return st.lists(u32, max_size=20).map(RowSet.of)


@cache
def bitmaps() -> st.SearchStrategy[bytes]:
    """Serialised roaring bitmaps."""
    return st.lists(u32, max_size=20).map(lambda values: bytes(BitMap(values).serialize()))


# --------------------------------------------------------------------------------------------------------- schemas

_LEAVES = [pa.int64(), pa.float32(), pa.string(), pa.large_binary(), pa.list_(pa.float32(), 8), pa.timestamp("us")]


_NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="."), min_size=1, max_size=6)


@lru_cache(maxsize=64)
def _arrow_types() -> st.SearchStrategy[Any]:
    def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        members = st.dictionaries(_NAMES, inner, min_size=1, max_size=3)
        return st.one_of(inner.map(pa.list_), members.map(lambda found: pa.struct(list(found.items()))))

    return st.recursive(st.sampled_from(_LEAVES), nested, max_leaves=4)


@lru_cache(maxsize=64)
def schemas(max_columns: int = 4) -> st.SearchStrategy[Schema]:
    """Schemas with nested columns and metadata."""
    fields = st.dictionaries(_NAMES, st.tuples(_arrow_types(), st.booleans()), max_size=max_columns)
    metadata = maps(st.binary(max_size=8))

    def build(columns: dict[str, tuple[Any, bool]], notes: dict[str, bytes]) -> Schema:
        arrow = pa.schema([pa.field(name, kind, nullable) for name, (kind, nullable) in columns.items()])
        return Schema(fields=Schema.from_arrow(arrow).fields, metadata=notes)

    return st.builds(build, fields, metadata)


# ------------------------------------------------------------------------------------------------------- fragments


@lru_cache(maxsize=64)
def data_files(
    version: tuple[int, int] | None = None, bases: tuple[int | None, ...] | None = None
) -> st.SearchStrategy[DataFile]:
    """Data files of one version, or of any; their fields are distinct."""
    versions = st.just(version) if version else st.tuples(st.just(2), st.integers(0, 3))
    names = st.uuids().map(lambda uuid: f"{uuid.hex}.lance")

    def build(columns: list[int], dead: list[bool], which: tuple[int, int], **rest: Any) -> DataFile:
        fields = tuple(-2 if gone else column for column, gone in zip(columns, dead, strict=False))
        return DataFile(
            fields=fields,
            column_indices=tuple(range(len(fields))),
            file_major_version=which[0],
            file_minor_version=which[1],
            **rest,
        )

    return st.builds(
        build,
        st.lists(field_ids, unique=True, max_size=5),
        st.lists(st.booleans(), min_size=5, max_size=5),
        versions,
        path=names,
        file_size_bytes=u64,
        base_id=st.none() | u32 if bases is None else st.sampled_from(bases),
        unknown=unknown_fields(),
    )


def deletion_files(
    physical_rows: int = _ROWS_MAX, bases: tuple[int | None, ...] | None = None
) -> st.SearchStrategy[DeletionFile]:
    """Deletion files of a fragment with this many rows."""
    return st.builds(
        DeletionFile,
        file_type=st.sampled_from(DeletionFileType),
        read_version=u64,
        id=u64,
        num_deleted_rows=st.integers(0, physical_rows),
        base_id=st.none() | u32 if bases is None else st.sampled_from(bases),
        unknown=unknown_fields(),
    )


@st.composite
def fragments(
    draw: st.DrawFn,
    *,
    version: tuple[int, int] | None = None,
    bases: tuple[int | None, ...] | None = None,
    row_ids: bool | None = None,
) -> Fragment:
    """Sound fragments. ``row_ids`` tells whether they carry them; ``None`` leaves it open."""
    rows = draw(st.integers(1, _ROWS_MAX))
    files = draw(st.lists(data_files(version, bases), max_size=3))
    seen: set[int] = set()
    disjoint = []
    for file in files:
        if not seen.intersection(file.live_fields):
            disjoint.append(file)
            seen.update(file.live_fields)
    stable = draw(st.booleans()) if row_ids is None else row_ids
    start = draw(st.integers(0, 1 << 40))
    versions = encode_versions(VersionSequence.constant(rows, draw(st.integers(1, 1 << 40))))
    return Fragment(
        id=draw(u32),
        files=tuple(disjoint),
        physical_rows=rows,
        deletion=draw(st.none() | deletion_files(rows, bases)),
        row_ids=encode_row_ids(RowIdSequence.from_range(start, start + rows)) if stable else None,
        created_at=draw(st.sampled_from([None, versions])) if stable else None,
        last_updated_at=draw(st.sampled_from([None, versions])) if stable else None,
        clustering_id=draw(st.none() | u64),
        unknown=draw(unknown_fields()),
    )


# --------------------------------------------------------------------------------------------- manifest and indices


@lru_cache(maxsize=64)
def indices() -> st.SearchStrategy[IndexMetadata]:
    """Index entries of no particular kind."""

    def build(details: tuple[str, bytes] | None, **rest: Any) -> IndexMetadata:
        url, value = details or (None, b"")
        return IndexMetadata(details_type_url=url, details_value=value, **rest)

    return st.builds(
        build,
        st.none() | st.tuples(texts(), st.binary(max_size=10)),
        uuid=uuids,
        fields=st.lists(field_ids, max_size=2).map(tuple),
        name=texts(),
        dataset_version=u64,
        fragment_bitmap=st.none() | bitmaps(),
        index_version=st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
        created_at_ms=st.none() | u64,
        base_id=st.none(),
        files=st.lists(index_files(), max_size=2).map(tuple),
        covering_fields=st.lists(field_ids, max_size=2).map(tuple),
        clustering_id=st.none() | u64,
        unknown=unknown_fields(),
    )


@lru_cache(maxsize=64)
def index_files() -> st.SearchStrategy[IndexFile]:
    """Files in the directory of an index."""
    return st.builds(IndexFile, path=texts(), size_bytes=u64, unknown=unknown_fields())


@lru_cache(maxsize=64)
def base_paths() -> st.SearchStrategy[BasePath]:
    """Places where files are kept."""
    return st.builds(
        BasePath,
        id=u32,
        path=texts(),
        name=st.none() | texts(),
        is_dataset_root=st.booleans(),
        unknown=unknown_fields(),
    )


@st.composite
def manifests(draw: st.DrawFn, *, max_fragments: int = 4) -> Manifest:
    """Sound manifests, with or without stable row ids, bases and indices."""
    bases = draw(st.lists(base_paths(), max_size=2, unique_by=lambda base: base.id))
    base_ids = (None, *(base.id for base in bases))
    stable = draw(st.booleans())
    minor = draw(st.integers(0, 3))
    found = draw(
        st.lists(
            fragments(version=(2, minor), bases=base_ids, row_ids=stable),
            max_size=max_fragments,
            unique_by=lambda fragment: fragment.id,
        )
    )
    highest = max((fragment.id for fragment in found), default=None)
    writer = st.builds(
        WriterVersion,
        library=texts(),
        version=texts(),
        prerelease=texts(),
        build_metadata=texts(),
        unknown=unknown_fields(),
    )
    return Manifest(
        schema=draw(schemas()),
        fragments=FragmentList.of(found),
        version=draw(st.integers(1, (1 << 64) - 1)),
        timestamp_ns=draw(st.integers(-(1 << 60), 1 << 62)),
        max_fragment_id=draw(st.none() | u32) if highest is None else draw(st.integers(highest, (1 << 32) - 1)),
        transaction_file=draw(texts()),
        writer=draw(st.none() | writer),
        next_row_id=draw(u64),
        data_storage_version=f"2.{minor}",
        config=draw(maps(texts())),
        table_metadata=draw(maps(texts())),
        base_paths=tuple(bases),
        branch=draw(st.none() | texts()),
        tag=draw(texts()),
        version_aux_data=draw(u64),
        indices=tuple(draw(st.lists(indices(), max_size=2, unique_by=lambda index: index.uuid))),
        stable_row_ids=stable,
        clustering=tuple(draw(st.lists(st.binary(max_size=8), max_size=2))),
        max_clustering_id=draw(st.none() | u64),
        unknown=draw(unknown_fields()),
    )
