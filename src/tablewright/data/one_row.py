"""Data files of one row: those that the codec has made before, with other values.

Changes by key write files of one row. The codec takes 0.1 ms for one in a loop and up to 1 ms after a pause, a third of
an update by key, since each of its calls wakes threads. Where all columns have a fixed width and no value is null,
two such files of one schema differ in their values and in nothing else. Fields with several entries of metadata are
left to the codec, which writes these in random order; extension types have such metadata. So:

1. The codec makes the first files of a schema.
2. *Probes* are encoded, rows in which some columns have one bit pattern and the others another: column *i* differs from
   the first probe in those probes whose bit is set in *i* + 1. So the bytes that differ show where each value lies.
3. Further probes, one of them with different bytes in each value, and the row at hand are made in both ways. If a byte
   differs from what the codec makes, or a value does not lie in one place, the codec makes all files of this schema.
4. From then on a file is that of a probe, with the row's values in their places.

Tests: ``tests/unit/data/test_one_row.py``, ``tests/differential/data/test_write.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from tablewright.storage.failures import is_panic

__all__ = ["one_row_file"]

Encode = Callable[[pa.RecordBatch], bytes]

_FILES_BEFORE = 2  # of a schema, made by the codec before probes are worth their time
_COLUMNS_MAX = 1000
_SCHEMAS_MAX = 16
_FIRST, _SECOND = b"\x55", b"\xaa"
_CHECKED = (b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff", bytes(37 * number % 251 for number in range(251)))


@dataclass(frozen=True, slots=True, eq=False)
class _Pattern:
    """A file of one row, and the range of bytes with the value of each column."""

    file: bytes
    places: tuple[tuple[int, int], ...]

    def filled(self, values: Sequence[memoryview]) -> bytes:
        """The file with other values."""
        data = bytearray(self.file)
        for (begin, end), value in zip(self.places, values, strict=True):
            data[begin:end] = value
        return bytes(data)


@dataclass(slots=True, eq=False)
class _Kind:
    """What is known of the files of one schema and version. Mutable: it counts files until it has a pattern, or not."""

    schema: pa.Schema
    version: str
    files: int = 0
    is_probed: bool = False
    pattern: _Pattern | None = None


_kinds: list[_Kind] = []
"""The last ones. There is no lock, since this process may fork: at worst a kind is there twice, or is begun again."""


def one_row_file(row: pa.RecordBatch, schema: pa.Schema, version: str, encode: Encode) -> bytes:
    """The file of this schema and version of the format that ``encode`` makes of a batch of one row.

    The batch has the schema's columns; metadata of fields, which files hold and which choose encodings, may differ.
    """
    kind = _kind_of(schema, version)
    if kind.pattern is not None:
        values = _values(row)
        return encode(row) if values is None else kind.pattern.filled(values)
    file = encode(row)
    kind.files += 1
    if not kind.is_probed and kind.files > _FILES_BEFORE and (values := _values(row)) is not None:
        kind.is_probed = True
        pattern = _probed(schema, encode)
        if pattern is not None and pattern.filled(values) == file:
            kind.pattern = pattern
    return file  # the codec's own, whatever came of the probes


def _kind_of(schema: pa.Schema, version: str) -> _Kind:
    for kind in _kinds:
        if kind.version == version and kind.schema.equals(schema, check_metadata=True):
            return kind
    kind = _Kind(schema, version, is_probed=not _may_have_pattern(schema))
    _kinds[:] = [kind, *_kinds[: _SCHEMAS_MAX - 1]]
    return kind


# ---------------------------------------------------------------------------------------------------------- values
def _may_have_pattern(schema: pa.Schema) -> bool:
    """Whether all columns have a fixed width, and at most one entry of metadata."""
    widths = [_width(field.type) if len(field.metadata or ()) <= 1 else 0 for field in schema]
    return 0 < len(widths) <= _COLUMNS_MAX and all(widths)


def _width(kind: pa.DataType) -> int:
    """The bytes of a value; 0 if they vary, or are not whole bytes."""
    if at.is_fixed_size_list(kind):
        return int(kind.list_size) * _width(kind.value_type)
    is_plain = at.is_primitive(kind) or at.is_decimal(kind) or at.is_fixed_size_binary(kind)
    return kind.bit_width // 8 if is_plain and not at.is_boolean(kind) else 0


def _values(row: pa.RecordBatch) -> list[memoryview] | None:
    """The bytes of each value; ``None`` if one may be null: the codec writes a bitmap for such columns."""
    values = []
    for column in row.columns:
        value = _value(column)
        if value is None:
            return None
        values.append(value)
    return values


def _value(column: pa.Array) -> memoryview | None:
    validity, *values = column.buffers()
    if validity is not None:
        return None
    if isinstance(column, pa.FixedSizeListArray):
        return _value(column.flatten())
    (data,), width = values, column.type.bit_width // 8
    assert data is not None, "the values of a type of fixed width have a buffer"
    return memoryview(data)[column.offset * width : (column.offset + len(column)) * width]


# ---------------------------------------------------------------------------------------------------------- probes
def _probed(schema: pa.Schema, encode: Encode) -> _Pattern | None:
    """The pattern of all files of one row of this schema; ``None`` if they have none, or the codec refuses a probe."""
    try:
        return _pattern(schema, encode)
    except BaseException as error:
        if isinstance(error, Exception) or is_panic(error):
            return None
        raise


def _pattern(schema: pa.Schema, encode: Encode) -> _Pattern | None:
    """The same, where errors of the codec are raised."""
    count = len(schema)
    first = encode(_probe(schema, [_FIRST] * count))
    bytes_of_first = np.frombuffer(first, np.uint8)
    owners = np.zeros(len(first), np.int64)  # of each byte: the number of its column, 0 for none
    for bit in range(count.bit_length()):
        other = encode(_probe(schema, [_SECOND if number >> bit & 1 else _FIRST for number in range(1, count + 1)]))
        if len(other) != len(first):
            return None
        owners |= (np.frombuffer(other, np.uint8) != bytes_of_first).astype(np.int64) << bit
    places = []
    for number, kind in enumerate(schema.types, 1):
        held, width = np.flatnonzero(owners == number), _width(kind)
        if len(held) != width or held[-1] - held[0] + 1 != width:
            return None
        places.append((int(held[0]), int(held[-1]) + 1))
    if np.count_nonzero(owners) != sum([end - begin for begin, end in places]):
        return None
    pattern = _Pattern(first, tuple(places))
    checked = [_probe(schema, [fill] * count) for fill in _CHECKED]
    if any(pattern.filled(_values(probe) or ()) != encode(probe) for probe in checked):
        return None
    return pattern


def _probe(schema: pa.Schema, fills: Sequence[bytes]) -> pa.RecordBatch:
    """A row in which each value repeats the bytes that are given for it."""
    columns = [_filled(kind, 1, fill) for kind, fill in zip(schema.types, fills, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _filled(kind: pa.DataType, count: int, fill: bytes) -> pa.Array:
    if at.is_fixed_size_list(kind):
        items = _filled(kind.value_type, count * kind.list_size, fill)
        return pa.FixedSizeListArray.from_arrays(items, type=kind)
    size = count * kind.bit_width // 8
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer((fill * size)[:size])])
