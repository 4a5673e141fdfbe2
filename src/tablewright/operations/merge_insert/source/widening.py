"""Which types become which without losing anything: wider numbers, finer times, other forms of text, lists and structs.

A cast from the one to the other keeps every value, or fails (seconds too far away to be counted in nanoseconds). What
is not listed here is refused, as Lance refuses every difference.

The question is which casts need not be asked for. Those that a caller asks for may lose something
(:func:`tablewright.expressions.casts.castable`); rows that are appended are not cast at all
(:mod:`tablewright.format.schema_match`).

Tests: ``tests/unit/operations/merge_insert/source/test_fit.py``, ``tests/differential/test_merge_types.py``.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa
import pyarrow.types as at

__all__ = ["widens"]

Decimal: TypeAlias = "pa.Decimal128Type | pa.Decimal256Type"

_TEXT = (at.is_string, at.is_large_string, at.is_string_view)
_BYTES = (at.is_binary, at.is_large_binary, at.is_binary_view)
_UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_EXACT_BITS = {16: 11, 32: 24, 64: 53}
"""How many bits a float of so many bits has for whole numbers."""


def widens(own: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether every value of type ``own`` is one of type ``wanted``. Members of structs may be left out.

    >>> widens(pa.int32(), pa.int64()), widens(pa.int64(), pa.int32()), widens(pa.int32(), pa.float32())
    (True, False, False)
    """
    if own == wanted or at.is_null(own):
        return True
    if isinstance(own, pa.BaseExtensionType) or isinstance(wanted, pa.BaseExtensionType):
        return _is_json(own) and _is_json(wanted)  # it may lie in strings of any width
    if at.is_dictionary(wanted):
        value = own.value_type if at.is_dictionary(own) else own
        return _is(value, _TEXT) and _is(wanted.value_type, _TEXT)
    if at.is_dictionary(own):
        return widens(own.value_type, wanted)
    if at.is_struct(own) and at.is_struct(wanted):
        return all(_member_widens(member, wanted) for member in own)
    if (at.is_list(own) or at.is_large_list(own)) and (at.is_list(wanted) or at.is_large_list(wanted)):
        return widens(own.value_type, wanted.value_type)
    if at.is_map(own) and at.is_map(wanted):
        return widens(own.key_type, wanted.key_type) and widens(own.item_type, wanted.item_type)
    if at.is_fixed_size_list(own) and at.is_fixed_size_list(wanted):
        return own.list_size == wanted.list_size and widens(own.value_type, wanted.value_type)
    if at.is_decimal(own) and at.is_decimal(wanted):
        return _decimal_widens(own, wanted)
    if at.is_temporal(own) or at.is_temporal(wanted):
        return _time_widens(own, wanted)
    if at.is_integer(own):
        return _integer_widens(own, wanted)
    if at.is_floating(own) and at.is_floating(wanted):
        return bool(own.bit_width <= wanted.bit_width)
    return any(_is(own, family) and _is(wanted, family) for family in (_TEXT, _BYTES))


def _member_widens(member: pa.Field, wanted: pa.StructType) -> bool:
    index = wanted.get_field_index(member.name)
    return index >= 0 and widens(member.type, wanted.field(index).type)


def _integer_widens(own: pa.DataType, wanted: pa.DataType) -> bool:
    unsigned = at.is_unsigned_integer(own)
    bits = own.bit_width if unsigned else own.bit_width - 1
    if at.is_floating(wanted):
        return bool(bits <= _EXACT_BITS[wanted.bit_width])
    if not at.is_integer(wanted) or (at.is_unsigned_integer(wanted) and not unsigned):
        return False
    return bool(bits <= (wanted.bit_width if at.is_unsigned_integer(wanted) else wanted.bit_width - 1))


def _decimal_widens(own: Decimal, wanted: Decimal) -> bool:
    whole_digits = wanted.precision - wanted.scale >= own.precision - own.scale
    return bool(wanted.scale >= own.scale and whole_digits)


def _time_widens(own: pa.DataType, wanted: pa.DataType) -> bool:
    if at.is_date32(own) and at.is_date64(wanted):
        return True
    if at.is_timestamp(own) and at.is_timestamp(wanted):
        return (own.tz == wanted.tz or bool(own.tz and wanted.tz)) and _is_finer(own.unit, wanted.unit)
    if at.is_time(own) and at.is_time(wanted):
        return _is_finer(own.unit, wanted.unit)
    return at.is_duration(own) and at.is_duration(wanted) and _is_finer(own.unit, wanted.unit)


def _is_finer(own: str, wanted: str) -> bool:
    return _UNITS[own] <= _UNITS[wanted]


def _is_json(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "arrow.json"


def _is(kind: pa.DataType, kinds: tuple[object, ...]) -> bool:
    return any(matches(kind) for matches in kinds if callable(matches))
