"""Segments as protobuf messages, validated when decoded.

Every rule that a segment's arithmetic relies on is checked here: bounds in order, holes ascending and inside, a bitmap
of the right length without bits after its end, whole numbers in arrays, nothing beyond 64 bits.

Format: ``docs/format/row-ids.md#segments``.

Tests: ``tests/unit/format/test_row_ids.py``, ``tests/property/test_row_id_codecs.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tablewright.format.many_ranges import ManyRanges
from tablewright.format.proto import rows_pb2
from tablewright.format.segments import (
    Array,
    NumberArray,
    Numbers,
    Range,
    RangeWithBitmap,
    RangeWithHoles,
    Segment,
    SortedArray,
)

__all__ = ["segment_from_proto", "segment_to_proto", "segments_to_proto"]

_LIMIT = 2**64


def segments_to_proto(segment: Segment) -> Iterator[Any]:
    """The messages of a segment: one, or one for each of many ranges."""
    if isinstance(segment, ManyRanges):
        return (segment_to_proto(Range(start, end)) for start, end in segment)
    return iter((segment_to_proto(segment),))


def segment_to_proto(segment: Segment) -> Any:
    """The message of a segment that has one."""
    message: Any = rows_pb2.Segment()
    match segment:
        case Range(start, end):
            message.range.SetInParent()
            message.range.start, message.range.end = start, end
        case RangeWithHoles(start, end, holes):
            message.range_with_holes.start, message.range_with_holes.end = start, end
            message.range_with_holes.holes.CopyFrom(_array_to_proto(holes))
        case RangeWithBitmap(start, end, bitmap):
            message.range_with_bitmap.start, message.range_with_bitmap.end = start, end
            message.range_with_bitmap.bitmap = bitmap
        case SortedArray(numbers):
            message.sorted_array.CopyFrom(_array_to_proto(numbers))
        case Array(numbers):
            message.array.CopyFrom(_array_to_proto(numbers))
    return message


def _array_to_proto(numbers: NumberArray) -> Any:
    message: Any = rows_pb2.NumberArray()
    if numbers.width == 64:
        message.u64.values = numbers.data
        message.u64.SetInParent()
        return message
    part = message.u16 if numbers.width == 16 else message.u32
    part.base, part.offsets = numbers.base, numbers.data
    part.SetInParent()
    return message


def segment_from_proto(message: Any) -> Segment:
    """The checked segment of a message; ``ValueError`` with the reason if it breaks a rule."""
    match message.WhichOneof("shape"):
        case "range":
            return Range(*_bounds(message.range))
        case "range_with_holes":
            return _with_holes(message.range_with_holes)
        case "range_with_bitmap":
            return _with_bitmap(message.range_with_bitmap)
        case "sorted_array":
            ascending = _array_from_proto(message.sorted_array)
            _check_ascending(ascending.values(), "a sorted array")
            return SortedArray(ascending)
        case "array":
            return Array(_array_from_proto(message.array))
    raise ValueError("a segment has no shape that we know")


def _bounds(message: Any) -> tuple[int, int]:
    if message.end < message.start:
        raise ValueError(f"a range ends at {message.end}, before it starts at {message.start}")
    return message.start, message.end


def _with_holes(message: Any) -> RangeWithHoles:
    start, end = _bounds(message)
    holes = _array_from_proto(message.holes)
    values = holes.values()
    _check_ascending(values, "the holes of a range")
    if len(values) and not (start <= int(values[0]) and int(values[-1]) < end):
        raise ValueError(f"a hole lies outside its range {start}..{end}")
    return RangeWithHoles(start, end, holes)


def _with_bitmap(message: Any) -> RangeWithBitmap:
    start, end = _bounds(message)
    bits, size = end - start, len(message.bitmap)
    if size != (bits + 7) // 8:
        raise ValueError(f"a bitmap of {size} bytes can't cover the range {start}..{end}")
    if bits % 8 and message.bitmap[-1] >> (bits % 8):
        raise ValueError(f"the bitmap of the range {start}..{end} has bits after its end")
    return RangeWithBitmap(start, end, message.bitmap)


def _array_from_proto(message: Any) -> NumberArray:
    shape = message.WhichOneof("width")
    if shape is None:
        raise ValueError("an array of numbers has no width that we know")
    width = int(shape.removeprefix("u"))
    part = getattr(message, shape)
    base, data = (0, part.values) if width == 64 else (part.base, part.offsets)
    if len(data) % (width // 8):
        raise ValueError(f"an array of {width}-bit numbers has {len(data)} bytes")
    if base and data and base + int(np.frombuffer(data, dtype=f"<u{width // 8}").max()) >= _LIMIT:
        raise ValueError("a number in an array exceeds 64 bits")
    return NumberArray(width, base, data)


def _check_ascending(values: Numbers, what: str) -> None:
    if np.any(values[1:] <= values[:-1]):
        raise ValueError(f"{what} does not ascend" if what.startswith("a ") else f"{what} do not ascend")
