"""Paimon's BinaryRow: how keys are hashed, and how partitions lie in manifests.

A row of *n* fields is a run of 8-byte words, little-endian:

1. null words: byte 0 is the kind of row (0: insert), then a bit per field, field *i* at bit *i + 8*; a second word from
   57 fields on;
2. a slot per field;
3. the tails of fields that have one, in the order of the fields (:mod:`.binary_cells` says which).

Many rows are encoded at once, column by column, and stay columns (:class:`BinaryRows`): hashing them needs no
row-wise copy. Single rows, of which a manifest has few, are decoded to Python values. In manifests a row
has its number of fields before it, as 4 bytes in big-endian order.

Types are Arrow's: ``timestamp[ms]`` is ``TIMESTAMP(3)``, ``time32[ms]`` is ``TIME``, whatever its precision.

Format: ``docs/format/paimon.md#binaryrow``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as at

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.paimon.format.binary_cells import (
    COMPACT_DIGITS_MAX,
    INLINE_BYTES_MAX,
    WORD,
    ByteTail,
    Cells,
    Words,
    WordTail,
    cells_of,
    is_key_type,
)

__all__ = [
    "BinaryRows",
    "decode_partition",
    "decode_row",
    "encode_partition",
    "encode_row",
    "encode_rows",
    "fixed_field",
]

HEADER_BITS = 8
_ROW_KINDS = 4
_DECIMAL_BYTES_MAX = 16
_MILLIS_PER_DAY = 86_400_000
_EXACT = Context(prec=100)
_FORMATS = {1: "b", 2: "h", 4: "i", 8: "q"}
_UNITS_PER_MILLI = {"us": 1_000, "ns": 1_000_000}


def null_words(fields: int) -> int:
    """The number of null words of a row of ``fields`` fields.

    >>> null_words(0), null_words(56), null_words(57)
    (1, 1, 2)
    """
    return (fields + 63 + HEADER_BITS) // 64


# ------------------------------------------------------------------------------------------------------------- encoding
@dataclass(frozen=True, slots=True, eq=False)
class BinaryRows:
    """Many rows as columns of words: ``nulls`` (``None`` where all are zero), ``slots``, then ``tails``."""

    count: int
    nulls: tuple[Words | None, ...]
    slots: tuple[Words, ...]
    tails: tuple[WordTail | ByteTail, ...]

    @property
    def lengths(self) -> int | npt.NDArray[np.int64]:
        """The bytes of each row, as one number where all are as long."""
        words: int | npt.NDArray[np.int64] = len(self.nulls) + len(self.slots)
        for tail in self.tails:
            words = words + tail.words
        return WORD * words

    def to_arrow(self) -> pa.Array:
        """The rows as bytes, side by side.

        >>> encode_rows(pa.record_batch({"id": pa.array([42], pa.int32())})).to_arrow()[0].as_py().hex()
        '00000000000000002a00000000000000'
        """
        lengths = np.broadcast_to(np.asarray(self.lengths, np.int64), self.count)
        offsets = np.zeros(self.count + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        data = np.zeros(int(offsets[-1]) // WORD, np.uint64)
        begins = offsets[:-1] // WORD
        for number, word in enumerate((*self.nulls, *self.slots)):
            if word is not None:
                data[begins + number] = word
        at_tail = begins + (len(self.nulls) + len(self.slots))
        for tail in self.tails:
            for number, (rows, word) in enumerate(tail.walk()):
                data[(at_tail if rows is None else at_tail[rows]) + number] = word
            at_tail = at_tail + tail.words
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_binary(), self.count, buffers)


def encode_rows(rows: pa.RecordBatch, types: Sequence[pa.DataType] | None = None) -> BinaryRows:
    """The rows of a batch, all of its columns being fields.

    ``types`` are the types of the table's columns, where those of the batch may differ: a timestamp in microseconds is
    encoded as the ``TIMESTAMP(3)`` that it is in the table. A column that no key can have is an
    :class:`InvalidRequest`.
    """
    if types is not None and len(types) != rows.num_columns:
        raise InvalidRequest(f"There are {rows.num_columns} columns and {len(types)} types.")
    kinds: Sequence[pa.DataType | None] = types or [None] * rows.num_columns
    fields = [cells_of(name, rows.column(i), kinds[i]) for i, name in enumerate(rows.schema.names)]
    nulls = _null_words(fields, rows.num_rows)
    cursor: Any = WORD * (len(nulls) + len(fields))
    slots, tails = [], []
    for cells in fields:
        slot = cells.slots
        if cells.tail is not None:
            offsets = np.uint64(cursor << 32) if isinstance(cursor, int) else (cursor << 32).view(np.uint64)
            has_tail = cells.tail.words
            slot = slot | (offsets if isinstance(has_tail, int) else np.where(has_tail > 0, offsets, np.uint64(0)))
            cursor = cursor + WORD * has_tail
            tails.append(cells.tail)
        slots.append(slot)
    return BinaryRows(rows.num_rows, nulls, tuple(slots), tuple(tails))


def _null_words(fields: Sequence[Cells], count: int) -> tuple[Words | None, ...]:
    words: list[Words | None] = [None] * null_words(len(fields))
    for index, cells in enumerate(fields):
        if cells.nulls is not None:
            number, bit = divmod(index + HEADER_BITS, 64)
            word = words[number]
            word = np.zeros(count, np.uint64) if word is None else word
            words[number] = word | (cells.nulls.astype(np.uint64) << np.uint64(bit))
    return tuple(words)


def encode_row(values: Sequence[Any], types: Sequence[pa.DataType]) -> bytes:
    """One row of Python values.

    >>> encode_row((1, "a"), (pa.int32(), pa.string())).hex()
    '000000000000000001000000000000006100000000000081'
    """
    if len(values) != len(types):
        raise InvalidRequest(f"A row of {len(types)} fields has {len(values)} values: {tuple(values)!r}.")
    if not types:
        return bytes(WORD)
    try:
        arrays = [pa.array([value], kind) for value, kind in zip(values, types, strict=True)]
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        listed = ", ".join(map(str, types))
        raise InvalidRequest(f"The values {tuple(values)!r} are not of the types {listed}: {error}.") from error
    batch = pa.RecordBatch.from_arrays(arrays, [f"field {index}" for index in range(len(types))])
    return encode_rows(batch).to_arrow()[0].as_py()  # type: ignore[no-any-return]


def encode_partition(values: Sequence[Any], types: Sequence[pa.DataType]) -> bytes:
    """A partition as manifests hold it: the number of fields, then the row.

    >>> encode_partition((), ()).hex()
    '000000000000000000000000'
    """
    return struct.pack(">i", len(types)) + encode_row(values, types)


# ------------------------------------------------------------------------------------------------------------- decoding
def decode_partition(data: bytes, types: Sequence[pa.DataType], path: str = "a manifest") -> tuple[Any, ...]:
    """The values of a partition in a manifest; :class:`CorruptTable` naming ``path`` for anything else.

    >>> types = (pa.string(), pa.date32())
    >>> decode_partition(encode_partition(("a long partition", None), types), types)
    ('a long partition', None)
    """
    fields = struct.unpack_from(">i", data)[0] if len(data) >= struct.calcsize(">i") else None
    if fields != len(types):
        raise CorruptTable(path, (f"a partition has {fields} fields where the table has {len(types)}",))
    return decode_row(data[4:], types, path)


def fixed_field(rows: Sequence[bytes], index: int, fields: int) -> tuple[bytes, npt.NDArray[np.bool_]]:
    """The slots of one field of many rows as manifests have them, 8 bytes each; and where it is null, or the row none.

    >>> one, other = encode_partition((7, None), (pa.int32(),) * 2), encode_partition((8,), (pa.int32(),))
    >>> slots, is_null = fixed_field([one, other], 0, 2)
    >>> slots[:8].hex(), is_null.tolist()
    ('0700000000000000', [False, True])
    """
    head, begin = struct.pack(">i", fields), 4 + WORD * (null_words(fields) + index)
    flag, bit = divmod(HEADER_BITS + index, 8)
    shortest = 4 + WORD * (null_words(fields) + fields)
    whole = [len(row) >= shortest and row.startswith(head) for row in rows]
    slots = b"".join(row[begin : begin + WORD] if ok else bytes(WORD) for row, ok in zip(rows, whole, strict=True))
    is_null = [not ok or row[4 + flag] >> bit & 1 for row, ok in zip(rows, whole, strict=True)]
    return slots, np.array(is_null, np.bool_)


def decode_row(data: bytes, types: Sequence[pa.DataType], path: str = "a binary row") -> tuple[Any, ...]:
    """The values of one row; :class:`CorruptTable` naming ``path`` for bytes that are none.

    >>> decode_row(bytes.fromhex("000000000000000068656c6c6f000085"), (pa.string(),))
    ('hello',)
    """
    for index, kind in enumerate(types):
        if not is_key_type(kind):
            raise InvalidRequest(f"Field {index} of type {kind} can't be read from a row of Paimon's.")
    try:
        return _decode(bytes(data), types)
    except (ValueError, OverflowError, ArithmeticError, pa.ArrowException) as error:
        raise CorruptTable(path, (f"the row {_short(data)} can't be decoded: {error}",)) from error


def _decode(data: bytes, types: Sequence[pa.DataType]) -> tuple[Any, ...]:
    begin = WORD * null_words(len(types))
    if len(data) % WORD or len(data) < begin + WORD * len(types):
        raise ValueError(f"{len(data)} bytes are no row of {len(types)} fields")
    if data[0] >= _ROW_KINDS:
        raise ValueError(f"there is no kind of row {data[0]}")
    bits = int.from_bytes(data[:begin], "little") >> HEADER_BITS
    return tuple(
        None if bits >> index & 1 else _value(data, begin + WORD * index, begin + WORD * len(types), kind)
        for index, kind in enumerate(types)
    )


def _value(data: bytes, at_slot: int, tails: int, kind: pa.DataType) -> Any:
    """The value of a field; no tail begins before ``tails``."""
    if at.is_dictionary(kind):
        kind = kind.value_type
    slot = data[at_slot : at_slot + WORD]
    if at.is_decimal(kind):
        return _decimal(data, slot, tails, kind)
    if at.is_timestamp(kind):
        return _timestamp(data, slot, tails, kind)
    if at.is_string(kind) or at.is_large_string(kind) or at.is_string_view(kind):
        return _text(data, slot, tails).decode()
    if at.is_binary(kind) or at.is_large_binary(kind) or at.is_binary_view(kind) or at.is_fixed_size_binary(kind):
        return _text(data, slot, tails)
    if at.is_boolean(kind):
        return slot[0] != 0
    if at.is_floating(kind):
        return struct.unpack_from("<f" if at.is_float32(kind) else "<d", slot)[0]
    if at.is_date(kind):
        return pa.scalar(struct.unpack_from("<i", slot)[0], pa.int32()).cast(pa.date32()).as_py()
    if at.is_time(kind):
        millis = struct.unpack_from("<i", slot)[0]
        if not 0 <= millis < _MILLIS_PER_DAY:
            raise ValueError(f"a day has no millisecond {millis}")
        return pa.scalar(millis, pa.int32()).cast(pa.time32("ms")).as_py()
    return struct.unpack_from("<" + _FORMATS[kind.bit_width // 8], slot)[0]


def _tail(data: bytes, slot: bytes, tails: int, size: int) -> bytes:
    offset = struct.unpack_from("<I", slot, 4)[0]
    if offset < tails or offset % WORD or offset + size > len(data):
        raise ValueError(f"{size} bytes at {offset} lie outside of its {len(data)} bytes")
    return data[offset : offset + size]


def _text(data: bytes, slot: bytes, tails: int) -> bytes:
    if slot[-1] & 0x80:
        size = slot[-1] & 0x7F
        if size > INLINE_BYTES_MAX:
            raise ValueError(f"{size} bytes can't lie in a slot")
        return slot[:size]
    return _tail(data, slot, tails, struct.unpack_from("<I", slot)[0])


def _decimal(data: bytes, slot: bytes, tails: int, kind: pa.Decimal128Type | pa.Decimal256Type) -> Decimal:
    if kind.precision <= COMPACT_DIGITS_MAX:
        unscaled = int.from_bytes(slot, "little", signed=True)
    else:
        size = struct.unpack_from("<I", slot)[0]
        if not 1 <= size <= _DECIMAL_BYTES_MAX:
            raise ValueError(f"a decimal has {size} bytes")
        unscaled = int.from_bytes(_tail(data, slot, tails, size), "big", signed=True)
    if abs(unscaled) >= 10**kind.precision:
        raise ValueError(f"a decimal has more than {kind.precision} digits")
    return Decimal(unscaled).scaleb(-kind.scale, _EXACT)


def _timestamp(data: bytes, slot: bytes, tails: int, kind: pa.TimestampType) -> Any:
    if kind.unit in ("s", "ms"):
        millis = int.from_bytes(slot, "little", signed=True)
        ticks = millis if kind.unit == "ms" else millis // 1_000
    else:
        nanos = struct.unpack_from("<I", slot)[0]
        if nanos >= _UNITS_PER_MILLI["ns"]:
            raise ValueError(f"a millisecond has no nanosecond {nanos}")
        millis = int.from_bytes(_tail(data, slot, tails, WORD), "little", signed=True)
        per_milli = _UNITS_PER_MILLI[kind.unit]
        ticks = millis * per_milli + nanos * per_milli // _UNITS_PER_MILLI["ns"]
    return pa.scalar(ticks, pa.int64()).cast(kind).as_py()


def _short(data: bytes) -> str:
    text = bytes(data[:40]).hex()
    return text if len(data) <= 40 else f"{text}… ({len(data)} bytes)"
