"""Time and totals of a version, from its manifest file: what a list of all versions shows.

The manifests of consecutive versions begin with the same bytes: the schema, and the fragments up to the first that
changed. So each is compared with the one before it, and only what follows the common part is parsed and summed up:

1. The two messages are compared byte by byte up to the first difference.
2. The fragments that end before it are taken over: their sums are known, by position.
3. The rest, together with the fields before the fragments, is a message of its own; its fragments are read.

Schema, indices and settings are not looked at: opening the version does that.

Format: ``docs/format/table.md#manifest-fields``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tablewright.errors import CorruptTable, UnsupportedFeature
from tablewright.format.envelope import manifest_section
from tablewright.format.flags import check_readable
from tablewright.format.fragment.facts import FragmentFacts, facts_of
from tablewright.format.naming import parse_manifest_name
from tablewright.format.proto import table_pb2 as pb
from tablewright.format.wire import Ints, Longs, decode_message, encode_length_delimited
from tablewright.format.wire_walk import NotWhole, walk

__all__ = ["Summary", "Totals", "summarise"]

_NS_PER_S = 1_000_000_000
_FRAGMENTS = 2
_LENGTH_DELIMITED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over all fragments of a version."""

    data_file_rows: int
    deletion_file_rows: int
    deletion_files: int
    data_files: int
    files_size: int
    fragments: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Summary:
    """One version, and what the next one can take over.

    ``ends[n]`` is the position after the first ``n`` fragments in ``message``, ``sums[n]`` are their totals; both are
    empty where the fragments do not follow each other.
    """

    version: int
    timestamp_ns: int
    totals: Totals
    message: bytes
    ends: Ints
    sums: Longs


def summarise(data: bytes, path: str, before: Summary | None = None) -> Summary:
    """The version in the bytes of a manifest file; quicker if ``before`` is a similar one.

    Raises :class:`CorruptTable` for what is no manifest, :class:`UnsupportedFeature` for a table that we can't read.
    """
    message = manifest_section(data, path)
    known, at = _in_common(message, before)
    rest = message[: int(before.ends[0])] + message[at:] if before is not None and known else message
    shell = decode_message(pb.ManifestShell, rest, path, "the manifest")
    _check(shell, path)
    fragments = list(shell.fragments)
    facts = facts_of(fragments)
    if facts.broken.any():
        raise CorruptTable(path, tuple(facts.problems()))
    start = at if known else _first_fragment(message)
    ends = _ends(message, start, fragments)
    sums = _sums(facts)
    if before is not None and known:
        ends = np.concatenate((before.ends[:known], ends))
        sums = np.concatenate((before.sums[:known], sums + before.sums[known]))
    return Summary(
        version=shell.version,
        timestamp_ns=shell.timestamp.seconds * _NS_PER_S + shell.timestamp.nanos,
        totals=_totals(sums[-1], known + len(fragments)),
        message=message,
        ends=ends,
        sums=sums,
    )


def _in_common(message: bytes, before: Summary | None) -> tuple[int, int]:
    """How many fragments both begin with, and where those end."""
    if before is None or len(before.ends) <= 1:
        return 0, 0
    end = int(before.ends[-1])
    if message[:end] != before.message[:end]:
        size = min(len(message), end)
        ours, theirs = (np.frombuffer(each, np.uint8, size) for each in (message, before.message))
        differs = ours != theirs
        end = int(differs.argmax()) if differs.any() else size
    known = max(0, int(np.searchsorted(before.ends, end, side="right")) - 1)
    return known, int(before.ends[known])


def _check(shell: pb.ManifestShell, path: str) -> None:
    check_readable(shell.reader_feature_flags, path)
    if shell.HasField("fragment_tree"):
        raise UnsupportedFeature(f"The fragments in {path} are kept as a tree, which we can't read.")
    named = parse_manifest_name(path)
    if named and named[0] != shell.version:
        raise CorruptTable(path, (f"it says version {shell.version}, its name says {named[0]}",))
    if not 0 <= shell.timestamp.nanos < _NS_PER_S:
        raise CorruptTable(path, (f"the time of the commit has {shell.timestamp.nanos} nanoseconds",))


def _first_fragment(message: bytes) -> int:
    """Where the field of the first fragment begins; -1 if there is none, or something else than the schema before."""
    at = 0
    try:
        for number, kind, _, end in walk(message, 0, len(message)):
            if number == _FRAGMENTS or kind != _LENGTH_DELIMITED:
                return at if kind == _LENGTH_DELIMITED else -1
            at = end
    except NotWhole:  # a group, which protobuf passes over
        pass
    return -1


def _ends(message: bytes, start: int, fragments: Sequence[bytes]) -> Ints:
    """``start``, and the end of each fragment's field; empty if they do not follow each other from there on."""
    fields = [encode_length_delimited(_FRAGMENTS, fragment) for fragment in fragments]
    if start < 0 or not message.startswith(b"".join(fields), start):
        return np.zeros(0, np.int64)
    return np.cumsum([start, *map(len, fields)], dtype=np.int64)


def _sums(facts: FragmentFacts) -> Longs:
    """Row ``n``: the totals of the first ``n`` fragments."""
    columns = np.zeros((len(facts) + 1, 5), np.uint64)
    columns[1:, 0], columns[1:, 1], columns[1:, 2] = facts.physical_rows, facts.deleted_rows, facts.has_deletion
    np.add.at(columns[1:, 3], facts.file_row, np.uint64(1))
    np.add.at(columns[1:, 4], facts.file_row, facts.file_bytes)
    return np.cumsum(columns, axis=0, dtype=np.uint64)


def _totals(sums: Longs, fragments: int) -> Totals:
    rows, deleted_rows, deletion_files, data_files, size = sums.tolist()
    return Totals(
        data_file_rows=rows,
        deletion_file_rows=deleted_rows,
        deletion_files=deletion_files,
        data_files=data_files,
        files_size=size,
        fragments=fragments,
    )
