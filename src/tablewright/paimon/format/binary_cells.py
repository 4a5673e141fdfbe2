"""One column of a BinaryRow: Arrow values as 8-byte words, without a loop over rows.

A field has a *slot* of one word in the fixed part of its row, and may have a *tail* of whole words in the variable
part. Words are little-endian; what a value does not fill is zero.

==========================================  =====================================  ==============================
Arrow type                                  slot                                   tail
==========================================  =====================================  ==============================
bool, int8 … int64, float, double, date     the value in the low bytes             none
time (any unit)                             milliseconds of the day, 4 bytes       none
string, binary of up to 7 bytes             the bytes; the last byte 0x80 + size   none
string, binary of 8 bytes or more           size, offset                           the bytes
decimal of up to 18 digits                  the unscaled value                     none
decimal of 19 to 38 digits                  size, offset                           16 bytes, big-endian, from the left
timestamp[s, ms]: TIMESTAMP(0 … 3)          milliseconds                           none
timestamp[us, ns]: TIMESTAMP(4 … 9)         nanoseconds of the millisecond,        milliseconds
                                            offset
==========================================  =====================================  ==============================

Milliseconds before 1970 are rounded down, as Java's ``Timestamp`` has it: nanoseconds of the millisecond are never
negative. A null has a slot of zero and no tail; except that Java's key projection keeps the tail of wide decimals and
wide timestamps, filled with zeros, and writes its offset. So do we (pypaimon does not). Wide decimals have as few bytes
as hold number and sign, as Java's ``BigInteger`` (pypaimon has one more for -128, -32768 and so on).

Format: ``docs/format/paimon.md#binaryrow``.

Tests: ``tests/unit/paimon/format/test_binary_row.py``, ``tests/property/test_key_hashes.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as at

from tablewright.errors import InvalidRequest

__all__ = ["ByteTail", "Cells", "WordTail", "Words", "cells_of", "is_key_type"]

Words = npt.NDArray[np.uint64]
Counts = npt.NDArray[np.int64]

COMPACT_DIGITS_MAX = 18
DECIMAL_DIGITS_MAX = 38
INLINE_BYTES_MAX = 7
WORD = 8

_MASKS = np.array([(1 << 8 * size) - 1 for size in range(WORD + 1)], np.uint64)
_INLINE_MARKS = np.array([(0x80 | size) << 56 for size in range(INLINE_BYTES_MAX + 1)], np.uint64)
_UNITS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_LOW_THRESHOLDS = np.array([1 << (8 * size - 1) for size in range(1, 9)], np.uint64)
_HIGH_THRESHOLDS = _LOW_THRESHOLDS[:7]


@dataclass(frozen=True, slots=True, eq=False)
class WordTail:
    """A tail of as many words in every row."""

    columns: tuple[Words, ...]

    @property
    def words(self) -> int:
        """Words per row."""
        return len(self.columns)

    def walk(self) -> Iterator[tuple[Counts | None, Words]]:
        """Word after word: the rows that have it (``None``: all), and its values."""
        for column in self.columns:
            yield None, column


@dataclass(frozen=True, slots=True, eq=False)
class ByteTail:
    """A tail of bytes, padded with zeros to whole words; ``words`` says how many each row has.

    ``data`` holds the bytes of all rows and at least one word more, ``starts`` and ``sizes`` count bytes, ``first`` is
    the first word of every row.
    """

    data: Words
    starts: Counts
    sizes: Counts
    words: Counts
    first: Words

    def walk(self) -> Iterator[tuple[Counts | None, Words]]:
        """Word after word: the rows that have it (``None``: all), and its values."""
        longest = int(self.words.max(initial=0))
        rows: Counts | None = None
        starts, sizes, words = self.starts, self.sizes, self.words
        for number in range(longest):
            has = words > number
            if not has.all():
                rows = np.flatnonzero(has) if rows is None else rows[has]
                starts, sizes, words = starts[has], sizes[has], words[has]
            if number:
                yield rows, _gathered(self.data, starts + WORD * number, sizes - WORD * number)
            else:
                yield rows, self.first if rows is None else self.first[rows]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """A column: slots without the offsets of tails, the tail if the type has one, and which rows are null, if any."""

    slots: Words
    tail: WordTail | ByteTail | None = None
    nulls: npt.NDArray[np.bool_] | None = None


def is_key_type(kind: pa.DataType) -> bool:
    """Whether a column of this Arrow type can be part of a key.

    >>> is_key_type(pa.string()), is_key_type(pa.uint8()), is_key_type(pa.list_(pa.int8()))
    (True, False, False)
    """
    if at.is_dictionary(kind):
        return is_key_type(kind.value_type)
    if at.is_decimal(kind):
        return bool(kind.precision <= DECIMAL_DIGITS_MAX)
    return any(test(kind) for test in _KEY_TYPES)


_KEY_TYPES = (
    at.is_boolean,
    at.is_signed_integer,
    at.is_float32,
    at.is_float64,
    at.is_date,
    at.is_time,
    at.is_timestamp,
    at.is_string,
    at.is_large_string,
    at.is_string_view,
    at.is_binary,
    at.is_large_binary,
    at.is_binary_view,
    at.is_fixed_size_binary,
)


def cells_of(name: str, array: pa.Array, kind: pa.DataType | None = None) -> Cells:
    """The cells of a column.

    ``kind`` is the type that the column has in the table, if the array's is only near it: Spark's timestamps are
    microseconds, whatever the table's are.

    >>> [hex(slot) for slot in cells_of("id", pa.array([1, -1], pa.int32())).slots]
    ['0x1', '0xffffffff']
    """
    kind = array.type if kind is None else kind
    for each in (array.type, kind):
        if not is_key_type(each):
            raise _refused(name, each)
    if at.is_dictionary(kind):
        kind = kind.value_type
    if isinstance(array, pa.DictionaryArray):
        array = array.dictionary_decode()
    nulls = ~array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    if at.is_timestamp(kind) and at.is_timestamp(array.type):
        return _timestamps(array, array.type.unit, is_compact=kind.unit in ("s", "ms"), nulls=nulls)
    if at.is_time(kind) and at.is_time(array.type):
        return Cells(_cleared(_times(array, array.type.unit), nulls), None, nulls)
    array = _cast(name, array, _plain(kind))
    if at.is_decimal(array.type):
        return _decimals(name, array, array.type.precision, nulls)
    if at.is_large_binary(array.type) or at.is_binary(array.type):
        return _bytes(array, nulls)
    return Cells(_cleared(_numbers(array), nulls), None, nulls)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type whose buffers are read here."""
    if at.is_decimal(kind):
        return pa.decimal128(kind.precision, kind.scale)
    if at.is_boolean(kind):
        return pa.uint8()
    if at.is_date(kind):
        return pa.date32()
    if at.is_string(kind) or at.is_binary(kind) or at.is_fixed_size_binary(kind):
        return pa.binary()
    is_text = at.is_large_string(kind) or at.is_string_view(kind) or at.is_large_binary(kind) or at.is_binary_view(kind)
    return pa.large_binary() if is_text else kind


def _cast(name: str, array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type.equals(kind):
        return array
    try:
        if at.is_large_string(array.type) and at.is_binary(kind):
            kind = pa.large_binary()
        if at.is_string_view(array.type):
            array = array.cast(pa.large_string())
        return array.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidRequest(
            f"Column {name!r} of type {array.type} can't be a key of type {kind}: {error}. Cast it first."
        ) from error


def _refused(name: str, kind: pa.DataType) -> InvalidRequest:
    return InvalidRequest(
        f"Column {name!r} of type {kind} can't be part of a Paimon key: keys are booleans, signed numbers, decimals of "
        "up to 38 digits, dates, times, timestamps, strings or binaries."
    )


# ------------------------------------------------------------------------------------------------------------- numbers
def _values(array: pa.Array, dtype: str, per_value: int = 1) -> npt.NDArray[Any]:
    """The buffer of an array of fixed width, from its offset on."""
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(0, dtype)
    begin = array.offset * per_value
    return np.frombuffer(memoryview(buffer), dtype)[begin : begin + len(array) * per_value]


def _numbers(array: pa.Array) -> Words:
    """Values by their bits: a negative int has zeros above it."""
    return _values(array, f"<u{array.type.bit_width // 8}").astype(np.uint64)


def _times(array: pa.Array, unit: str) -> Words:
    ticks = _values(array, f"<i{array.type.bit_width // 8}").astype(np.int64)
    per_second = _UNITS_PER_SECOND[unit]
    millis = ticks * (1_000 // per_second) if per_second <= 1_000 else ticks // (per_second // 1_000)
    return millis.view(np.uint64)


def _cleared(slots: Words, nulls: npt.NDArray[np.bool_] | None) -> Words:
    if nulls is not None:
        slots[nulls] = 0
    return slots


def _timestamps(array: pa.Array, unit: str, *, is_compact: bool, nulls: npt.NDArray[np.bool_] | None) -> Cells:
    ticks = _values(array, "<i8")
    per_second = _UNITS_PER_SECOND[unit]
    if per_second <= 1_000:
        millis, nanos = ticks * np.int64(1_000 // per_second), np.zeros(len(ticks), np.int64)
    else:
        millis, rest = np.divmod(ticks, np.int64(per_second // 1_000))
        nanos = rest * np.int64(1_000_000_000 // per_second)
    words = _cleared(millis.view(np.uint64), nulls)
    if is_compact:
        return Cells(words, None, nulls)
    return Cells(_cleared(nanos.view(np.uint64), nulls), WordTail((words,)), nulls)


# ------------------------------------------------------------------------------------------------------------ decimals
def _decimals(name: str, array: pa.Array, precision: int, nulls: npt.NDArray[np.bool_] | None) -> Cells:
    pairs = _values(array, "<u8", 2)
    low, high = _cleared(pairs[0::2].copy(), nulls), _cleared(pairs[1::2].copy(), nulls)
    sign = (high.view(np.int64) >> 63).view(np.uint64)
    if precision <= COMPACT_DIGITS_MAX:
        if np.any((low.view(np.int64) >> 63).view(np.uint64) != high):
            raise InvalidRequest(f"Column {name!r} of type {array.type} holds values of more digits than it may.")
        return Cells(low, None, nulls)
    beyond_high, beyond_low = high ^ sign, low ^ sign
    in_low = np.where(beyond_high > 0, 8, np.searchsorted(_LOW_THRESHOLDS, beyond_low, "right"))
    sizes = 1 + in_low + np.searchsorted(_HIGH_THRESHOLDS, beyond_high, "right")
    left, right = _shifted(high, low, (16 - sizes).astype(np.uint64) * np.uint64(8))
    return Cells(
        _cleared(sizes.astype(np.uint64), nulls),
        WordTail((left.byteswap(), right.byteswap())),
        nulls,
    )


def _shifted(high: Words, low: Words, bits: Words) -> tuple[Words, Words]:
    """128-bit numbers shifted to the left by 0 to 120 bits."""
    is_far, rest = bits >= 64, bits & np.uint64(63)
    carried = (low >> np.uint64(1)) >> (np.uint64(63) - rest)
    near = (high << rest) | carried
    moved = low << rest
    return np.where(is_far, moved, near), np.where(is_far, np.uint64(0), moved)


# --------------------------------------------------------------------------------------------------------------- bytes
def _bytes(array: pa.Array, nulls: npt.NDArray[np.bool_] | None) -> Cells:
    count = len(array)
    _, offsets_buffer, data_buffer = array.buffers()
    if not count or offsets_buffer is None:
        return Cells(np.zeros(count, np.uint64))
    width = "<i8" if at.is_large_binary(array.type) else "<i4"
    offsets = np.frombuffer(memoryview(offsets_buffer), width)[array.offset : array.offset + count + 1].astype(np.int64)
    begin, end = int(offsets[0]), int(offsets[-1])
    data = np.zeros((end - begin + 7) // WORD + 2, np.uint64)
    if end > begin:
        assert data_buffer is not None, "values with bytes have a buffer of them"
        data.view(np.uint8)[: end - begin] = np.frombuffer(memoryview(data_buffer), np.uint8, end - begin, begin)
    starts, sizes = offsets[:-1] - begin, np.diff(offsets)
    if nulls is not None:
        sizes[nulls] = 0
    first = _gathered(data, starts, sizes)
    is_long = sizes > INLINE_BYTES_MAX
    if is_long.all():
        slots = sizes.view(np.uint64)
        return Cells(slots, ByteTail(data, starts, sizes, (sizes + 7) >> 3, first), nulls)
    inline = first | _INLINE_MARKS[np.minimum(sizes, INLINE_BYTES_MAX)]
    slots = _cleared(np.where(is_long, sizes.view(np.uint64), inline), nulls)
    if not is_long.any():
        return Cells(slots, None, nulls)
    return Cells(slots, ByteTail(data, starts, sizes, np.where(is_long, (sizes + 7) >> 3, 0), first), nulls)


def _gathered(data: Words, starts: Counts, sizes: Counts) -> Words:
    """The 8 bytes from each start on, which need not be aligned; those beyond ``sizes`` are zero."""
    places = starts >> 3
    shifts = ((starts & 7) << 3).view(np.uint64)
    words = data.take(places)
    words >>= shifts
    above = data.take(places + 1)
    above <<= np.uint64(1)
    above <<= np.uint64(63) - shifts
    words |= above
    if sizes.min(initial=WORD) < WORD:
        words &= _MASKS.take(np.minimum(sizes, WORD))
    return words
