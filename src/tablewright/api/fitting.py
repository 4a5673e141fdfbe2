"""Whether Python values, of the Arrow type that they would have, can become another type and lose nothing.

``pa.array(values, type)`` cuts fractions, drops members of structs and time zones without a word. So it is asked only
where nothing of the kind can happen: numbers may widen or lose digits of a float, lists take any form of list, structs
may leave out members, times may get finer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

import pyarrow as pa
import pyarrow.types as at

__all__ = ["fits"]

_TEXT: tuple[Callable[[pa.DataType], bool], ...] = (at.is_string, at.is_large_string, at.is_string_view)
_BINARY = (at.is_binary, at.is_large_binary, at.is_binary_view, at.is_fixed_size_binary)
_FINE = ("us", "ns")


def fits(own: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of the inferred type ``own`` may be made ``wanted`` right away.

    >>> fits(pa.list_(pa.float64()), pa.list_(pa.float32(), 2)), fits(pa.float64(), pa.int64())
    (True, False)
    """
    if isinstance(wanted, pa.BaseExtensionType):
        wanted = wanted.storage_type
    if at.is_null(own) or own == wanted:
        return True
    if at.is_dictionary(wanted):
        return fits(own, wanted.value_type)
    if at.is_integer(own):
        return _is(wanted, (at.is_integer, at.is_floating, at.is_decimal))
    if _is_list(own):
        return (_is_list(wanted) and fits(own.value_type, wanted.value_type)) or at.is_map(wanted)
    if at.is_struct(own):
        return at.is_struct(wanted) and all(_member_fits(member, wanted) for member in own)
    if at.is_timestamp(own):
        return at.is_timestamp(wanted) and bool(own.tz) == bool(wanted.tz) and wanted.unit in _FINE
    same_kind = ((at.is_floating, at.is_floating), (at.is_decimal, at.is_decimal), (at.is_date32, at.is_date))
    if any(of(own) and to(wanted) for of, to in same_kind):
        return True
    if at.is_time(own):
        return at.is_time(wanted) and wanted.unit in _FINE
    if at.is_duration(own):
        return at.is_duration(wanted) and wanted.unit in _FINE
    return (_is(own, _TEXT) and _is(wanted, _TEXT)) or (_is(own, _BINARY) and _is(wanted, _BINARY))


def _member_fits(member: pa.Field, wanted: pa.StructType) -> bool:
    index = wanted.get_field_index(member.name)
    return index >= 0 and fits(member.type, wanted.field(index).type)


def _is_list(kind: pa.DataType) -> TypeGuard[pa.ListType | pa.LargeListType | pa.FixedSizeListType]:
    return at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind)


def _is(kind: pa.DataType, kinds: tuple[Callable[[pa.DataType], bool], ...]) -> bool:
    return any(matches(kind) for matches in kinds)
