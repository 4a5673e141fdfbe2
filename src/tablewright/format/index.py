"""Index metadata: which index covers which fragments, as frozen values and as the index section.

Several entries may share a name: they are the segments of one index. ``fragment_bitmap`` names the fragments that an
entry was built on; some may be gone by now, so the effective coverage is its intersection with the live ones. An entry
without a bitmap is ignored by queries.

Format: ``docs/format/indices.md#index-metadata``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from uuid import UUID

from pyroaring import BitMap, FrozenBitMap

from tablewright.errors import CorruptTable, InternalError
from tablewright.format.proto import table_pb2 as pb
from tablewright.format.roaring import decode_bitmap, encode_bitmap
from tablewright.format.wire import decode_message, encode_message, unknown_of

__all__ = [
    "IndexFile",
    "IndexMetadata",
    "decode_index_section",
    "encode_index_section",
    "index_from_message",
    "index_to_message",
    "problems_of_index",
    "uuid_from_message",
    "uuid_to_message",
]

_UUID_BYTES = 16
_KEPT_BYTES_MAX = 1 << 14
_SECTIONS_MAX = 32
_FRAGMENTS_MAX = 1 << 24  # that an index can cover, gone ones included: callers get them as a set


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFile:
    """One file in the directory of an index."""

    path: str
    size_bytes: int = 0
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexMetadata:
    """One index, or one segment of it.

    ``dataset_version`` is the version it was built from. ``details_type_url`` names the kind
    (``/lance.table.BTreeIndexDetails``), ``details_value`` holds its serialised settings.
    """

    uuid: UUID
    fields: tuple[int, ...]
    name: str
    dataset_version: int
    fragment_bitmap: bytes | None = None
    details_type_url: str | None = None
    details_value: bytes = b""
    index_version: int | None = None
    created_at_ms: int | None = None
    base_id: int | None = None
    files: tuple[IndexFile, ...] = ()
    covering_fields: tuple[int, ...] = ()
    clustering_id: int | None = None
    unknown: bytes = b""

    @property
    def coverage(self) -> FrozenBitMap | None:
        """The ids of the fragments that the index was built on, also those that are gone; ``None`` if not recorded."""
        return None if self.fragment_bitmap is None else _decoded(self.fragment_bitmap)

    def with_coverage(self, fragment_ids: Iterable[int]) -> IndexMetadata:
        """The same index, said to cover exactly these fragments."""
        bitmap = BitMap(fragment_ids)
        bitmap.run_optimize()
        return replace(self, fragment_bitmap=encode_bitmap(bitmap))


def _decoded(bitmap: bytes) -> FrozenBitMap:
    """The ids in a bitmap. Each filter asks for it: those of ordinary size are kept."""
    return _kept(bitmap) if len(bitmap) <= _KEPT_BYTES_MAX else decode_bitmap(bitmap, _FRAGMENTS_MAX)


@lru_cache(maxsize=128)
def _kept(bitmap: bytes) -> FrozenBitMap:
    return decode_bitmap(bitmap, _FRAGMENTS_MAX)


def problems_of_index(index: IndexMetadata) -> Iterator[str]:
    """Every rule that this entry breaks, in words."""
    if index.fragment_bitmap is not None:
        try:
            _decoded(index.fragment_bitmap)
        except ValueError as error:
            yield f"index {index.name!r} ({index.uuid}): the fragment bitmap is broken: {error}"
    if index.dataset_version < 0 or min([file.size_bytes for file in index.files], default=0) < 0:
        yield f"index {index.name!r} ({index.uuid}) has a negative number"
    if min(index.fields, default=0) < 0:
        yield f"index {index.name!r} ({index.uuid}) names a negative field id"


def encode_index_section(indices: Sequence[IndexMetadata], unknown: bytes = b"") -> bytes:
    """The index section of a manifest file, without its length prefix."""
    own = tuple(indices)
    is_short = sum(len(index.fragment_bitmap or b"") + len(index.details_value) for index in own) <= _KEPT_BYTES_MAX
    return _kept_section(own, unknown) if is_short else _encoded_section(own, unknown)


def _encoded_section(indices: tuple[IndexMetadata, ...], unknown: bytes) -> bytes:
    problems = tuple(problem for index in indices for problem in problems_of_index(index))
    if problems:
        raise InternalError("These indices can't be written: " + "; ".join(problems) + ".")

    def build() -> pb.IndexSection:
        message = pb.IndexSection(indices=[index_to_message(index) for index in indices])
        message.MergeFromString(unknown)
        return message

    return encode_message("The index section", build)


_kept_section = lru_cache(maxsize=_SECTIONS_MAX)(_encoded_section)


def decode_index_section(data: bytes, path: str) -> tuple[tuple[IndexMetadata, ...], bytes]:
    """The indices of an index section, checked, and the serialised fields beside them that we do not know.

    The last ones are kept: most versions have the indices of the one before.
    """
    known = _sections.get(data)
    if known is None:
        known = _decoded_section(data, path)
        if len(data) <= _KEPT_BYTES_MAX:
            if len(_sections) >= _SECTIONS_MAX:
                _sections.clear()
            _sections[data] = known
    return known


_sections: dict[bytes, tuple[tuple[IndexMetadata, ...], bytes]] = {}


def _decoded_section(data: bytes, path: str) -> tuple[tuple[IndexMetadata, ...], bytes]:
    message = decode_message(pb.IndexSection, data, path, "the index section")
    indices = tuple(index_from_message(index, path) for index in message.indices)
    problems = tuple(problem for index in indices for problem in problems_of_index(index))
    if problems:
        raise CorruptTable(path, problems)
    return indices, unknown_of(message)


def index_to_message(index: IndexMetadata) -> pb.IndexMetadata:
    """The protobuf message of one entry."""
    message = pb.IndexMetadata(
        uuid=uuid_to_message(index.uuid),
        fields=index.fields,
        name=index.name,
        dataset_version=index.dataset_version,
        fragment_bitmap=index.fragment_bitmap or b"",
        index_version=index.index_version,
        created_at=index.created_at_ms,
        base_id=index.base_id,
        files=[index_file_to_message(file) for file in index.files],
        covering_fields=index.covering_fields,
        clustering_id=index.clustering_id,
    )
    if index.details_type_url is not None:
        message.index_details.type_url = index.details_type_url
        message.index_details.value = index.details_value
        message.index_details.SetInParent()
    if index.unknown:
        message.MergeFromString(index.unknown)
    return message


def index_from_message(message: pb.IndexMetadata, path: str) -> IndexMetadata:
    """The value of one entry; its rules are left to :func:`problems_of_index`."""
    has_details = message.HasField("index_details")
    return IndexMetadata(
        uuid=uuid_from_message(message.uuid, path),
        fields=tuple(message.fields),
        name=message.name,
        dataset_version=message.dataset_version,
        fragment_bitmap=message.fragment_bitmap or None,
        details_type_url=message.index_details.type_url if has_details else None,
        details_value=message.index_details.value,
        index_version=message.index_version if message.HasField("index_version") else None,
        created_at_ms=message.created_at if message.HasField("created_at") else None,
        base_id=message.base_id if message.HasField("base_id") else None,
        files=tuple(index_file_from_message(file) for file in message.files),
        covering_fields=tuple(message.covering_fields),
        clustering_id=message.clustering_id if message.HasField("clustering_id") else None,
        unknown=unknown_of(message),
    )


def index_file_to_message(file: IndexFile) -> pb.IndexFile:
    """The protobuf message of one file of an index."""
    message = pb.IndexFile(path=file.path, size_bytes=file.size_bytes)
    if file.unknown:
        message.MergeFromString(file.unknown)
    return message


def index_file_from_message(message: pb.IndexFile) -> IndexFile:
    """The value of one file of an index."""
    return IndexFile(path=message.path, size_bytes=message.size_bytes, unknown=unknown_of(message))


def uuid_to_message(uuid: UUID) -> pb.Uuid:
    """The protobuf message of a uuid."""
    return pb.Uuid(uuid=uuid.bytes)


def uuid_from_message(message: pb.Uuid, path: str) -> UUID:
    """The uuid in a message; :class:`CorruptTable` if it has not 16 bytes."""
    if len(message.uuid) != _UUID_BYTES:
        raise CorruptTable(path, (f"an index uuid has {len(message.uuid)} bytes instead of {_UUID_BYTES}",))
    return UUID(bytes=message.uuid)
