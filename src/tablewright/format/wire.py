"""Protobuf input and output: parsing that raises only our errors, unknown fields as bytes, varints, a columnar scanner.

*Unknown fields.* A message may carry fields of a newer release. :func:`unknown_of` returns exactly those, serialised;
a codec keeps them beside the value, and ``MergeFromString`` puts them back when the value is written.

*Scanning.* A manifest may hold a hundred thousand fragments of which one commit looks at three. :func:`scan` reads
chosen top-level fields of many small messages at once, without one Python object per message:

1. Every message has a cursor into one shared buffer; all cursors start at the first byte of their message.
2. A round reads one field of every message that is not yet at its end: tag, then value or length, by array arithmetic.
3. Wanted numbers and places are noted in columns (of several occurrences the last counts, as in protobuf), the cursors
   move past the field, and the next round begins. There are as many rounds as the longest message has fields.

A message whose fields do not end exactly at its last byte is marked in ``bad``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError, EncodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from tablewright.errors import CorruptTable, InternalError

__all__ = [
    "Scan",
    "Spans",
    "as_buffer",
    "decode_message",
    "encode_length_delimited",
    "encode_message",
    "encode_varint",
    "field_sizes",
    "put_fields",
    "scan",
    "unknown_of",
]

M = TypeVar("M")
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Longs = npt.NDArray[np.uint64]

_VARINT, _LENGTH = 0, 2
_VARINT_BYTES_MAX = 10
_PADDING = b"\0" * (2 * _VARINT_BYTES_MAX)
_CONTINUES = np.uint64(0x8080808080808080)
_BYTES_BY_STOP = np.uint64(0x0102030405060708)
_CLOSE_GAPS = tuple(
    (np.uint64(keep), np.uint64(move), np.uint64(shift))
    for keep, move, shift in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)


def decode_message(kind: type[M], data: bytes, path: str, what: str) -> M:
    """Parse ``data`` as one message. Anything that is not such a message is :class:`CorruptTable`."""
    parse: Callable[[bytes], M] = getattr(kind, "FromString")  # noqa: B009  (generated at import time)
    try:
        return parse(data)
    except (DecodeError, ValueError) as error:
        raise CorruptTable(path, (f"{what} ({len(data)} bytes) can't be decoded: {error}",)) from error


def encode_message(what: str, build: Callable[[], Any]) -> bytes:
    """Serialise the message that ``build`` makes, maps in order of their keys: equal values give equal bytes.

    A value that does not fit its field is a mistake of ours: :class:`InternalError`.
    """
    try:
        return bytes(build().SerializeToString(deterministic=True))
    except (EncodeError, ValueError, TypeError, OverflowError) as error:
        raise InternalError(f"{what} can't be encoded: {error}") from error


def encode_varint(number: int) -> bytes:
    """A whole number as protobuf writes it: seven bits a byte, the lowest first.

    >>> encode_varint(300).hex()
    'ac02'
    """
    groups = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def encode_length_delimited(number: int, payload: bytes) -> bytes:
    """A field of bytes: its tag, the length, the payload.

    >>> encode_length_delimited(2, b"ab").hex()
    '12026162'
    """
    return encode_varint(number << 3 | _LENGTH) + encode_varint(len(payload)) + payload


def field_sizes(values: Longs, *, optional: bool = False) -> Ints:
    """Bytes of each number as a field: one for the tag and one per seven bits; none for an optional zero."""
    sizes = np.full(len(values), 2, np.int64)
    for bits in range(7, 64, 7):
        sizes += values >= np.uint64(1 << bits)
    return np.where(values == 0, 0, sizes) if optional else sizes


def put_fields(out: npt.NDArray[np.uint8], at: Ints, tag: int, values: Longs, sizes: Ints) -> None:
    """Write tag and varint of every number that has a size."""
    out[at[sizes > 0]] = tag
    for number in range(1, int(sizes.max(initial=0))):
        here = sizes > number
        group = ((values[here] >> np.uint64(7 * (number - 1))) & np.uint64(0x7F)).astype(np.uint8)
        goes_on = (sizes[here] > number + 1).astype(np.uint8) << 7
        out[at[here] + number] = group | goes_on


def unknown_of(message: Any) -> bytes:
    """The serialised fields of ``message`` that our .proto files do not name; cheap when there are none."""
    if not len(UnknownFieldSet(message)):
        return b""
    rest = type(message)()
    rest.CopyFrom(message)
    for descriptor, _ in message.ListFields():
        rest.ClearField(descriptor.name)
    return bytes(rest.SerializeToString())


@dataclass(frozen=True, slots=True)
class Spans:
    """Where a length-delimited field was met, a row per occurrence: message, first byte, byte after the last."""

    rows: Ints
    starts: Ints
    ends: Ints


@dataclass(frozen=True, slots=True)
class Scan:
    """What :func:`scan` found: a column per wanted number, the places of wanted spans, and which messages are bad."""

    numbers: dict[int, Longs]
    present: dict[int, Bools]
    spans: dict[int, Spans]
    bad: Bools


def as_buffer(messages: Sequence[bytes]) -> tuple[npt.NDArray[np.uint8], Ints, Ints]:
    """All messages in one buffer (padded, so that a read past the last byte stays inside), their starts and ends."""
    lengths = np.fromiter(map(len, messages), dtype=np.int64, count=len(messages))
    ends = np.cumsum(lengths, dtype=np.int64)
    buffer = np.frombuffer(b"".join((*messages, _PADDING)), dtype=np.uint8)
    return buffer, ends - lengths, ends


def scan(
    buffer: npt.NDArray[np.uint8],
    starts: Ints,
    ends: Ints,
    *,
    numbers: Sequence[int] = (),
    spans: Sequence[int] = (),
) -> Scan:
    """Read the top-level fields of all messages ``buffer[starts[i]:ends[i]]`` in rounds (see the module's text).

    ``numbers`` are varint fields (absent ones read 0), ``spans`` length-delimited ones. A wanted field that comes with
    another wire type is passed over, as protobuf does. The columns are undefined for a bad message. The buffer needs
    20 spare bytes after the last end.
    """
    count = len(starts)
    found = {number: np.zeros(count, np.uint64) for number in numbers}
    present = {number: np.zeros(count, np.bool_) for number in numbers}
    pieces: dict[int, list[tuple[Ints, Ints, Ints]]] = {number: [] for number in spans}
    bad = np.zeros(count, np.bool_)

    rows = np.flatnonzero(starts < ends)
    cursor, limit = starts[rows], ends[rows]
    while len(rows):
        tags, cursor, good = _read_varints(buffer, cursor, limit)
        after = np.zeros_like(cursor)
        kinds = _distinct(tags)
        for tag in kinds:
            number, kind = tag >> 3, tag & 7
            mine: Ints | slice = slice(None) if len(kinds) == 1 else np.flatnonzero(good & (tags == tag))
            value, begin, end, whole = _read_field(buffer, kind if number else -1, cursor[mine], limit[mine])
            good[mine] &= whole
            after[mine] = end
            if kind == _VARINT and number in found:
                found[number][rows[mine]] = value
                present[number][rows[mine]] = True
            elif kind == _LENGTH and number in pieces:
                pieces[number].append((rows[mine], begin, end))
        bad[rows[~good]] = True
        on = good & (after < limit)
        rows, cursor, limit = rows[on], after[on], limit[on]
    return Scan(found, present, {number: _join(parts) for number, parts in pieces.items()}, bad)


def _distinct(tags: Longs) -> list[int]:
    first, highest = int(tags[0]), int(tags.max())
    if highest == first and int(tags.min()) == first:
        return [first]
    if highest < 1 << 16:
        return [int(tag) for tag in np.flatnonzero(np.bincount(tags.astype(np.int64)))]
    return [int(tag) for tag in np.unique(tags)]


def _read_field(buffer: npt.NDArray[np.uint8], kind: int, cursor: Ints, limit: Ints) -> tuple[Longs, Ints, Ints, Bools]:
    """The field of one wire type that begins at each cursor: number, first byte, byte after it, whether it is whole."""
    match kind:
        case 0:  # varint
            value, behind, complete = _read_varints(buffer, cursor, limit)
            return value, cursor, behind, complete
        case 2:  # length-delimited
            size, begin, complete = _read_varints(buffer, cursor, limit)
            complete &= size <= (limit - begin).clip(0).astype(np.uint64)
            return size, begin, begin + np.where(complete, size, 0).astype(np.int64), complete
        case 1 | 5:  # eight or four bytes
            end = cursor + (8 if kind == 1 else 4)
            return np.zeros(len(cursor), np.uint64), cursor, end, end <= limit
        case _:  # groups, and what is no wire type
            return np.zeros(len(cursor), np.uint64), cursor, cursor, np.zeros(len(cursor), np.bool_)


def _join(parts: list[tuple[Ints, Ints, Ints]]) -> Spans:
    if not parts:
        none = np.zeros(0, np.int64)
        return Spans(none, none, none)
    rows, starts, ends = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Spans(rows, starts, ends)


def _read_varints(buffer: npt.NDArray[np.uint8], cursor: Ints, limit: Ints) -> tuple[Longs, Ints, Bools]:
    """One varint per cursor: its value, the position after it, and whether it ended before its limit.

    The eight bytes from each cursor on are taken as one number. Its lowest clear continuation bit marks the last byte;
    what lies above is masked away, and three shifts close the gaps between the groups of seven bits.
    """
    first = buffer[cursor]
    if first.size == 0 or int(first.max()) < 0x80:
        return first.astype(np.uint64), cursor + 1, cursor < limit
    windows: Longs = np.ndarray(shape=(len(buffer) - 7,), dtype="<u8", buffer=buffer, strides=(1,))
    word = windows[cursor]
    stop = ~word & _CONTINUES
    stop &= np.negative(stop)
    size = ((stop >> np.uint64(7)) * _BYTES_BY_STOP) >> np.uint64(56)
    word &= (stop ^ (stop - np.uint64(1))) & ~_CONTINUES
    for keep, move, shift in _CLOSE_GAPS:
        word = (word & keep) | ((word & move) >> shift)
    long = np.flatnonzero(size == 0)
    behind = cursor + size.astype(np.int64)
    if len(long):
        word[long], behind[long] = _read_long_varints(buffer, cursor[long])
    return word, behind, (behind > cursor) & (behind <= limit)


def _read_long_varints(buffer: npt.NDArray[np.uint8], cursor: Ints) -> tuple[Longs, Ints]:
    """Varints of nine or ten bytes; one that has not ended by then stays where it began."""
    parts = buffer[cursor[:, np.newaxis] + np.arange(_VARINT_BYTES_MAX)].astype(np.uint64)
    shifts = np.arange(_VARINT_BYTES_MAX, dtype=np.uint64) * np.uint64(7)
    size = np.where(parts[:, 8] < 0x80, 9, 10)
    inside = np.arange(_VARINT_BYTES_MAX) < size[:, np.newaxis]
    value = np.bitwise_or.reduce(np.where(inside, (parts & np.uint64(0x7F)) << shifts, 0), axis=1).astype(np.uint64)
    ends = (parts[:, 8] < 0x80) | (parts[:, 9] < 0x02)
    return value, cursor + np.where(ends, size, 0)
