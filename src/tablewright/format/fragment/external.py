"""Row ids and row versions in files of their own, as releases of 2025 may have written them.

A fragment names path, offset and size instead of holding the bytes. Today's clients neither write nor read that. We
read it: external sequences are loaded when a manifest is read, and the next manifest that is written has them inline.

Format: ``docs/format/table.md#external-sequences``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tablewright.format.fragment.codec import encode_fragment
from tablewright.format.fragment.sequence import FragmentList
from tablewright.format.proto import table_pb2 as pb
from tablewright.format.wire import decode_message

__all__ = ["SequenceFile", "with_external"]


@dataclass(frozen=True, slots=True)
class SequenceFile:
    """Where a sequence is stored; ``path`` is relative to the root of the table."""

    path: str
    offset: int
    size: int


def with_external(fragments: FragmentList, read: Callable[[SequenceFile], bytes]) -> FragmentList:
    """The fragments with all their sequences inline; ``read`` fetches the external ones."""
    outside = np.flatnonzero(fragments.facts.has_external).tolist()
    if not outside:
        return fragments
    raw = list(fragments.raw)
    for position in outside:
        fragment = fragments[position]
        where = f"fragment {fragment.id}: where its row ids or versions lie"
        named = decode_message(pb.FragmentExternals, fragment.unknown, fragments.path, where)
        inline = replace(
            fragment,
            row_ids=_fetched(named, "row_ids", fragment.row_ids, read),
            last_updated_at=_fetched(named, "last_updated_at_versions", fragment.last_updated_at, read),
            created_at=_fetched(named, "created_at_versions", fragment.created_at, read),
            unknown=bytes(named.SerializeToString()),
        )
        raw[position] = encode_fragment(inline)
    return FragmentList(raw, fragments.path)


def _fetched(
    named: pb.FragmentExternals, field: str, inline: bytes | None, read: Callable[[SequenceFile], bytes]
) -> bytes | None:
    """An external sequence. Its entry is removed from ``named``, so that only unknown fields remain there."""
    if not named.HasField(field):
        return inline
    place = getattr(named, field)
    found = SequenceFile(place.path, place.offset, place.size)
    named.ClearField(field)
    return read(found) if inline is None else inline
