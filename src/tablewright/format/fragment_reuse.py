"""The record of compactions that deferred their work on indices: which fragments became which, oldest first.

A table without stable row ids may have one entry ``__lance_frag_reuse`` among its indices. It has a *version* for each
deferred compaction, which has a *group* for each set of fragments that was rewritten together: the live rows of the old
fragments as they were read, and the sizes of both sides. From these follow the new addresses
(:mod:`tablewright.format.address_map`); here the old fragments of a group are in the order of their ids.

The record is the entry's details, or a file in its directory where it is longer than :data:`INLINE_BYTES_MAX`. A
version that was read is written again byte for byte, so fields of newer releases survive.

Format: ``docs/format/indices.md#fragment-reuse``.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from pyroaring import BitMap, FrozenBitMap

from tablewright.errors import CorruptTable, InternalError, UnsupportedFeature
from tablewright.format.address_map import AddressMap, NewRows, OldRows
from tablewright.format.limits import FRAGMENT_ID_MAX
from tablewright.format.proto import index_details_pb2 as pb
from tablewright.format.roaring import encode_bitmap
from tablewright.format.row_address import RowAddress
from tablewright.format.row_set import RowSet
from tablewright.format.treemap import decode_treemap
from tablewright.format.wire import decode_message, encode_length_delimited, encode_message, unknown_of

__all__ = [
    "DETAILS_FILE",
    "INLINE_BYTES_MAX",
    "ReuseFile",
    "ReuseHistory",
    "ReuseVersion",
    "decode_reuse",
    "decode_reuse_history",
    "encode_reuse",
    "encode_reuse_file",
    "encode_reuse_history",
]

DETAILS_FILE = "details.binpb"
INLINE_BYTES_MAX = 204_800
_ROWS_MAX = 1 << 32  # of a fragment: offsets have 32 bits
_COUNT, _KEY = struct.Struct("<Q"), struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class ReuseVersion:
    """One deferred compaction, committed right after ``dataset_version``."""

    dataset_version: int
    groups: tuple[AddressMap, ...]
    encoded: bytes

    @classmethod
    def of(cls, dataset_version: int, groups: Sequence[AddressMap]) -> ReuseVersion:
        """A new one. The old fragments of each group must be in the order of their ids."""
        message = pb.FragmentReuseVersion(dataset_version=dataset_version, groups=map(_group_message, groups))
        encoded = encode_message("A version of fragment reuse", lambda: message)
        return cls(dataset_version, tuple(groups), encoded)

    @property
    def old_ids(self) -> frozenset[int]:
        """The fragments that went."""
        return frozenset(each.id for group in self.groups for each in group.old)

    @property
    def new_ids(self) -> frozenset[int]:
        """The fragments that came."""
        return frozenset(each.id for group in self.groups for each in group.new)


@dataclass(frozen=True, slots=True)
class ReuseHistory:
    """All deferred compactions that indices may not have caught up with, oldest first."""

    versions: tuple[ReuseVersion, ...] = ()
    unknown: bytes = b""

    def coverage(self, fragment_ids: Iterable[int]) -> FrozenBitMap:
        """The fragments that an index covers now, whose bitmap may name old and new fragments.

        A group that it covers completely gives way to the new fragments. One that it covers in part is not claimed:
        which of the new rows the index has can't be said by fragment.
        """
        covered = FrozenBitMap(fragment_ids)
        for group in (group for version in self.versions for group in version.groups):
            old = FrozenBitMap(each.id for each in group.old)
            if covered.intersect(old):
                inside = bool(old <= covered)
                covered = covered - old
                covered = covered | FrozenBitMap(each.id for each in group.new) if inside else covered
        return covered


@dataclass(frozen=True, slots=True)
class ReuseFile:
    """Where the record is, if it is not in the details: a part of a file in the entry's directory."""

    path: str
    offset: int
    size_bytes: int


def encode_reuse_history(history: ReuseHistory) -> bytes:
    """The record as bytes: what a file of it holds."""
    versions = (encode_length_delimited(1, version.encoded) for version in history.versions)
    return b"".join(versions) + history.unknown


def encode_reuse(record: bytes) -> bytes:
    """The details of an entry that holds the record itself.

    >>> encode_reuse(encode_reuse_history(ReuseHistory())).hex()
    '0a00'
    """
    return encode_length_delimited(1, record)


def encode_reuse_file(size_bytes: int, path: str = DETAILS_FILE) -> bytes:
    """The details of an entry whose record is a file."""
    message = pb.FragmentReuseDetails(external=pb.ExternalFile(path=path, size=size_bytes))
    return encode_message("The details of fragment reuse", lambda: message)


def decode_reuse(details: bytes, path: str) -> ReuseHistory | ReuseFile:
    """The record in an entry's details, or the file that has it. ``path`` is that of the manifest."""
    message = decode_message(pb.FragmentReuseDetails, details, path, "the details of fragment reuse")
    match message.WhichOneof("content"):
        case "inline":
            return _history(message.inline, path)
        case "external":
            if not message.external.path or "/" in message.external.path:
                raise CorruptTable(path, (f"fragment reuse names the file {message.external.path!r}",))
            return ReuseFile(message.external.path, message.external.offset, message.external.size)
        case _:
            raise CorruptTable(path, ("the details of fragment reuse say neither what was moved nor in which file",))


def decode_reuse_history(record: bytes, path: str) -> ReuseHistory:
    """The record in a file of it, checked."""
    return _history(decode_message(pb.FragmentReuseHistory, record, path, "the record of fragment reuse"), path)


def _history(message: pb.FragmentReuseHistory, path: str) -> ReuseHistory:
    if message.transitions:
        raise UnsupportedFeature(
            f"{path}: the record of fragment reuse is of a newer release of Lance (transitions). Let that release "
            "optimize the indices, or drop them."
        )
    return ReuseHistory(tuple(_version(each, path) for each in message.versions), unknown_of(message))


def _version(message: pb.FragmentReuseVersion, path: str) -> ReuseVersion:
    groups = tuple(_group(each, path) for each in message.groups)
    ids = [each.id for group in groups for each in group.old] + [each.id for group in groups for each in group.new]
    if len(set(ids)) < len(ids):
        raise CorruptTable(path, (f"fragment reuse at version {message.dataset_version} names a fragment twice",))
    return ReuseVersion(message.dataset_version, groups, message.SerializeToString())


def _group(message: pb.FragmentReuseGroup, path: str) -> AddressMap:
    digests = sorted(message.old_fragments, key=lambda digest: digest.id)
    sizes = [digest.physical_rows for digest in (*digests, *message.new_fragments)]
    ids = [digest.id for digest in (*digests, *message.new_fragments)]
    if max(sizes, default=0) > _ROWS_MAX or max(ids, default=0) > FRAGMENT_ID_MAX:
        raise CorruptTable(path, (f"fragment reuse names fragments {ids} of {sizes} rows",))
    try:
        live = decode_treemap(message.changed_row_addrs, sum(digest.physical_rows for digest in digests))
    except ValueError as error:
        raise CorruptTable(path, (f"the moved rows of fragment reuse can't be decoded: {error}",)) from error
    firsts = np.array([RowAddress.of(digest.id, 0) for digest in digests], np.uint64)
    lasts = np.array([RowAddress.of(digest.id, _ROWS_MAX - 1) for digest in digests], np.uint64)
    begins, ends = np.searchsorted(live, firsts, "left"), np.searchsorted(live, lasts, "right")
    old = tuple(
        _old_rows(digest, RowSet.of(RowAddress.split(live[begin:end])[1]))
        for digest, begin, end in zip(digests, begins.tolist(), ends.tolist(), strict=True)
    )
    group = AddressMap(old, tuple(NewRows(digest.id, digest.physical_rows) for digest in message.new_fragments))
    counted = sum(each.live_rows for each in old)
    problem = group.problem if counted == len(live) else f"{len(live) - counted} of the moved rows are in none of them"
    if problem is not None:
        raise CorruptTable(path, (f"fragment reuse of fragments {[each.id for each in old]}: {problem}",))
    return group


def _old_rows(digest: pb.FragmentDigest, live: RowSet) -> OldRows:
    return OldRows(digest.id, digest.physical_rows, RowSet.full(digest.physical_rows) - live)


def _group_message(group: AddressMap) -> pb.FragmentReuseGroup:
    if group.problem is not None or any(a.id >= b.id for a, b in itertools.pairwise(group.old)):
        raise InternalError(f"Fragment reuse can't say how {group.old} became {group.new}: {group.problem}.")
    return pb.FragmentReuseGroup(
        changed_row_addrs=_live_addresses(group.old),
        old_fragments=[
            pb.FragmentDigest(id=each.id, physical_rows=each.physical_rows, num_deleted_rows=len(each.deleted))
            for each in group.old
        ],
        new_fragments=[pb.FragmentDigest(id=each.id, physical_rows=each.physical_rows) for each in group.new],
    )


def _live_addresses(old: Iterable[OldRows]) -> bytes:
    """The addresses of all live rows as a treemap, with runs where they are shorter."""
    parts = [(each.id, BitMap(range(each.physical_rows)) - each.deleted.bitmap) for each in old if each.live_rows]
    for _, bitmap in parts:
        bitmap.run_optimize()
    return _COUNT.pack(len(parts)) + b"".join(_KEY.pack(id) + encode_bitmap(bitmap) for id, bitmap in parts)
