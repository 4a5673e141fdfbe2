"""JSON columns: data files hold them in a binary form (Databend's JSONB), readers see text.

The codec encodes text when it writes, but hands out the binary form when it reads, so decoding is ours:

- A value begins with a header of 32 bits: the kind (array, object, scalar) in the top three, a count in the rest.
- Then one entry of 32 bits per value (for objects: per key, then per value): a type in bits 28 to 30, a length in the
  lower 28. Then the bytes of all of them, one after the other. Keys are sorted.
- A number is a byte with its type in the upper half, then 0, 1, 2, 4 or 8 bytes. All is big-endian.

This loops over values in Python: there is nothing that could do it for a whole column.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from decimal import Decimal

import pyarrow as pa

from tablewright.errors import CorruptTable

__all__ = ["decode_json_array", "decode_jsonb"]

_ARRAY, _OBJECT, _SCALAR = 0x80000000, 0x40000000, 0x20000000
_KIND, _COUNT = 0xE0000000, 0x1FFFFFFF
_TYPE, _LENGTH = 0x70000000, 0x0FFFFFFF
_NULL, _STRING, _NUMBER, _FALSE, _TRUE, _CONTAINER = (code << 28 for code in range(6))
_SPECIAL = {0x00: "0", 0x10: "NaN", 0x20: "Infinity", 0x30: "-Infinity"}


def decode_json_array(array: pa.Array, kind: pa.JsonType, where: str) -> pa.Array:
    """A column of binary values as JSON text of the extension type ``kind``."""
    try:
        texts = [None if value is None else decode_jsonb(value) for value in array.to_pylist()]
    except (struct.error, ValueError, IndexError, RecursionError) as error:
        raise CorruptTable(where, (f"a JSON value can't be decoded: {error}",)) from error
    return pa.ExtensionArray.from_storage(kind, pa.array(texts, kind.storage_type))


def decode_jsonb(data: bytes) -> str:
    """The JSON text of one binary value.

    >>> decode_jsonb(bytes.fromhex("40000001 10000001 20000002 61 5001"))
    '{"a":1}'
    """
    return _container(memoryview(data))


def _container(data: memoryview) -> str:
    (header,) = struct.unpack_from(">I", data)
    kind, count = header & _KIND, header & _COUNT
    if kind == _SCALAR:
        return "".join(_values(data, 1))
    if kind == _ARRAY:
        return "[" + ",".join(_values(data, count)) + "]"
    if kind == _OBJECT:
        texts = list(_values(data, 2 * count))
        pairs = zip(texts[:count], texts[count:], strict=True)
        return "{" + ",".join(f"{key}:{value}" for key, value in pairs) + "}"
    raise ValueError(f"unknown kind {header >> 29}")


def _values(data: memoryview, count: int) -> Iterator[str]:
    at = 4 + 4 * count
    if at > len(data):
        raise ValueError(f"it claims {count} entries in {len(data)} bytes")
    for (entry,) in struct.iter_unpack(">I", data[4:at]):
        length = entry & _LENGTH
        if at + length > len(data):
            raise ValueError(f"an entry claims {length} bytes of which {len(data) - at} are there")
        yield _value(entry & _TYPE, data[at : at + length])
        at += length


def _value(kind: int, data: memoryview) -> str:
    if kind == _NULL:
        return "null"
    if kind == _TRUE:
        return "true"
    if kind == _FALSE:
        return "false"
    if kind == _STRING:
        return json.dumps(str(data, "utf-8"), ensure_ascii=False)
    if kind == _NUMBER:
        return _number(data)
    if kind == _CONTAINER:
        return _container(data)
    raise ValueError(f"unknown type {kind >> 28}")


def _number(data: memoryview) -> str:
    kind, digits = data[0], data[1:]
    if kind in _SPECIAL:
        return _SPECIAL[kind]
    if kind in (0x40, 0x50):
        return str(int.from_bytes(digits, "big", signed=kind == 0x40))
    if kind == 0x60:
        value: float = struct.unpack(">d", digits)[0]
        return _float(value) if math.isfinite(value) else "null"
    raise ValueError(f"unknown number {kind:#x}")


def _float(value: float) -> str:
    """The shortest text that reads as the same number; small exponents spelled as Lance does (1e-7, 0.00001)."""
    mantissa, _, exponent = repr(value).partition("e-")
    if not exponent:
        return mantissa
    return f"{Decimal(repr(value)):f}" if exponent == "05" else f"{mantissa}e-{int(exponent)}"
