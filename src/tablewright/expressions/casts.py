"""Casts between Arrow types as Lance does them: its kernels are DataFusion's, and so are its refusals.

:func:`castable` is Lance's list of casts that a column may go through, found by trying every pair on 14.0.2: integers
to integers, floats to floats, text to text, binary to binary, decimals to decimals, durations, times, and dates and
timestamps among each other (a timestamp also becomes a time); a dictionary counts as its values; a list follows its
items, whatever its size. Values that do not fit are found when they are cast: overflow is an error, fractions of
seconds and digits after the decimal point are lost.

The question is which casts a caller may ask for. Which ones happen without being asked for, and keep every value, is
another (``data/fit_types.py``).
"""

from __future__ import annotations

from typing import TypeGuard

import pyarrow as pa
import pyarrow.types as at

from tablewright.errors import InvalidRequest
from tablewright.expressions.engine import ExpressionError, Frame

__all__ = ["cast_array", "castable", "lance_name"]

_FAMILIES = (
    (at.is_integer,),
    (at.is_floating,),
    (at.is_string, at.is_large_string),
    (at.is_binary, at.is_large_binary),
    (at.is_decimal,),
    (at.is_duration,),
    (at.is_time,),
    (at.is_date, at.is_timestamp),
    (at.is_boolean,),
)
_NAMES = {
    "halffloat": "Float16",
    "float": "Float32",
    "double": "Float64",
    "string": "Utf8",
    "large_string": "LargeUtf8",
    "large_binary": "LargeBinary",
    "bool": "Boolean",
    "string_view": "Utf8View",
    "date32[day]": "Date32",
    "date64[ms]": "Date64",
}


def castable(own: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column of one type may become one of the other.

    >>> castable(pa.int64(), pa.int8()), castable(pa.int64(), pa.float64())
    (True, False)
    """
    if at.is_dictionary(own) or at.is_dictionary(wanted):
        return castable(_values(own), _values(wanted))
    if _is_list(own) and _is_list(wanted):
        sizes = {kind.list_size for kind in (own, wanted) if at.is_fixed_size_list(kind)}
        return len(sizes) < 2 and castable(own.value_type, wanted.value_type)
    if at.is_timestamp(own) and at.is_time(wanted):
        return True
    return any(_is(own, family) and _is(wanted, family) for family in _FAMILIES)


def cast_array(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The values as another type; :class:`InvalidRequest` names the first one that does not fit.

    >>> cast_array(pa.array([1, 2]), pa.int8()).type
    DataType(int8)
    >>> cast_array(pa.array([1024]), pa.int8())
    Traceback (most recent call last):
    tablewright.errors.InvalidRequest: Cast error: Can't cast value 1024 to type Int8
    """
    try:
        frame = Frame(pa.record_batch([array], names=["x"]))
        return frame.values([frame.parse("x").cast(wanted)])[0]
    except ExpressionError as error:
        raise InvalidRequest(str(error)) from error


def lance_name(kind: pa.DataType) -> str:
    """A type as Lance's messages call it.

    >>> lance_name(pa.int32()), lance_name(pa.string()), lance_name(pa.uint8())
    ('Int32', 'Utf8', 'UInt8')
    """
    text = str(kind)
    if at.is_integer(kind):
        return text.replace("uint", "UInt").replace("int", "Int")
    return _NAMES.get(text, text[:1].upper() + text[1:])


def _values(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if at.is_dictionary(kind) else kind


def _is_list(kind: pa.DataType) -> TypeGuard[pa.ListType | pa.LargeListType | pa.FixedSizeListType]:
    return at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind)


def _is(kind: pa.DataType, family: tuple[object, ...]) -> bool:
    return any(matches(kind) for matches in family if callable(matches))
