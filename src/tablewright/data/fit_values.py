"""Values in another type, none of them changed: what :mod:`.fit_types` allows, checked value by value.

Nested arrays are walked: members of structs are found by name and are null where they are missing, lists are rebuilt
around their items. A leaf is cast by Arrow, and what Arrow lets pass silently is looked at here: a float that becomes
infinite, a whole number that a half float rounds. The first value that does not fit is found by halving the array, and
the error names it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from tablewright.data.fit_types import fits, is_any_list
from tablewright.errors import InvalidRequest

__all__ = ["INTO_TABLE", "fit_array"]

_WHOLE_MAX = {16: 2**11, 32: 2**24, 64: 2**53}
"""Up to which number a float of so many bits holds every whole one."""

_SHOWN_MAX = 60
INTO_TABLE = "Clean or cast the column first, or give the table's another type with alter_columns."


class _Misfit(Exception):
    """A value does not become one of the type that is wanted; ``why`` is said where the column is known."""


def fit_array(array: pa.Array, kind: pa.DataType, path: str, remedy: str = INTO_TABLE) -> pa.Array:
    """The values as ``kind``; the error names the column ``path``, the first value that does not fit, the ``remedy``.

    >>> fit_array(pa.array([[1.5, 2.0], None]), pa.list_(pa.float32(), 2), "v").to_pylist()
    [[1.5, 2.0], None]
    >>> fit_array(pa.array([7, 300]), pa.int8(), "x")
    Traceback (most recent call last):
    tablewright.errors.InvalidRequest: Cannot cast column "x" from int64 to int8: the value 300 does not fit. \
Clean or cast the column first, or give the table's another type with alter_columns.
    """
    if array.type == kind:
        return array
    if not fits(array.type, kind):
        raise _refused(array.type, kind, path, "there is no such cast without being asked for", remedy)
    if at.is_null(array.type):
        return pa.nulls(len(array), kind)
    if isinstance(array, pa.ExtensionArray):
        return fit_array(array.storage, kind, path, remedy)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, fit_array(array, kind.storage_type, path, remedy))
    if isinstance(array, pa.DictionaryArray):
        return (
            fit_array(array.dictionary_decode(), kind, path, remedy)
            if not at.is_dictionary(kind)
            else _encoded(fit_array(array.dictionary_decode(), kind.value_type, path, remedy), kind, path, remedy)
        )
    if at.is_dictionary(kind):
        return _encoded(fit_array(array, kind.value_type, path, remedy), kind, path, remedy)
    if at.is_struct(kind) and isinstance(array, pa.StructArray):
        return _struct(array, kind, path, remedy)
    if is_any_list(kind):
        return _list(array, kind, path, remedy)
    if at.is_map(kind) and isinstance(array, pa.MapArray):
        return _map(array, kind, path, remedy)
    return _checked(array, kind, path, remedy, _leaf)


# ------------------------------------------------------------------------------------------------------------ nested
def _struct(array: pa.StructArray, kind: pa.StructType, path: str, remedy: str) -> pa.Array:
    members = []
    below = array.flatten() if array.null_count else []  # there a value below a null struct is null, and fits
    for member in kind:
        index = array.type.get_field_index(member.name)
        if index < 0:
            members.append(pa.nulls(len(array), member.type))
        elif array.type.field(index).type == member.type:
            members.append(array.field(index))
        else:
            own = below[index] if below else array.field(index)
            members.append(fit_array(own, member.type, f"{path}.{member.name}", remedy))
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(members, fields=list(kind), mask=mask)


def _list(array: pa.Array, kind: pa.DataType, path: str, remedy: str) -> pa.Array:
    assert isinstance(array, pa.ListArray | pa.LargeListArray | pa.FixedSizeListArray), "a list becomes a list"
    assert is_any_list(kind), "of another form"
    items = fit_array(array.flatten(), kind.value_type, path, remedy)  # without those below null lists
    if not len(items):
        items = pa.nulls(0, kind.value_type)  # Spark 4.0 sends no memory for no values, which the codec refuses
    mask = array.is_null() if array.null_count else None
    if at.is_fixed_size_list(kind):
        _checked(array, kind, path, remedy, _sized)
        return _vectors(items, kind, mask)
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])
    if at.is_large_list(kind):
        return pa.LargeListArray.from_arrays(offsets, items, type=kind, mask=mask)
    try:
        return pa.ListArray.from_arrays(offsets.cast(pa.int32()), items, type=kind, mask=mask)
    except pa.ArrowInvalid as error:
        raise _refused(array.type, kind, path, f"{error}; give smaller batches", remedy) from error


def _vectors(items: pa.Array, kind: pa.FixedSizeListType, mask: pa.BooleanArray | None) -> pa.Array:
    """Lists of a fixed size around items; null lists have items too, null ones, which are not in ``items``."""
    if mask is None:
        return pa.FixedSizeListArray.from_arrays(items, type=kind)
    valid = ~np.asarray(mask.to_numpy(zero_copy_only=False), np.bool_)
    first = (np.cumsum(valid) - 1) * kind.list_size
    places = (first[:, None] + np.arange(kind.list_size)).ravel()
    taken = items.take(pa.array(places, mask=np.repeat(~valid, kind.list_size)))
    return pa.FixedSizeListArray.from_arrays(taken, type=kind, mask=mask)


def _sized(array: pa.Array, kind: pa.DataType) -> pa.Array:
    assert at.is_fixed_size_list(kind), "the size is that of a vector"
    if pc.not_equal(pc.list_value_length(array), kind.list_size).true_count:
        raise _Misfit
    return array


def _map(array: pa.MapArray, kind: pa.MapType, path: str, remedy: str) -> pa.Array:
    offsets = array.offsets
    first, count = offsets[0].as_py(), offsets[-1].as_py() - offsets[0].as_py()
    keys = fit_array(array.keys.slice(first, count), kind.key_type, f"{path}.{kind.key_field.name}", remedy)
    items = fit_array(array.items.slice(first, count), kind.item_type, f"{path}.{kind.item_field.name}", remedy)
    mask = array.is_null() if array.null_count else None
    return pa.MapArray.from_arrays(pc.subtract(offsets, first), keys, items, type=kind, mask=mask)


def _encoded(array: pa.Array, kind: pa.DictionaryType, path: str, remedy: str) -> pa.Array:
    encoded = array.dictionary_encode()
    assert isinstance(encoded, pa.DictionaryArray), "it was just encoded"
    try:
        indices = encoded.indices.cast(kind.index_type)
    except pa.ArrowInvalid as error:
        why = f"{len(encoded.dictionary)} different values are more than {kind.index_type} counts"
        raise _refused(array.type, kind, path, why, remedy) from error
    return pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=kind.ordered)


# ------------------------------------------------------------------------------------------------------------ leaves
def _leaf(array: pa.Array, kind: pa.DataType) -> pa.Array:
    own = array.type
    if at.is_integer(own) and at.is_floating(kind):
        span = pc.min_max(array)
        if max(-(span["min"].as_py() or 0), span["max"].as_py() or 0) > _WHOLE_MAX[kind.bit_width]:
            raise _Misfit
    elif at.is_integer(own) and at.is_decimal(kind):
        array = array.cast(pa.decimal128(20, 0))  # else Arrow wants as many digits as the type may have
    elif at.is_decimal(own) and at.is_integer(kind):
        array = array.cast(pa.decimal256(own.precision, own.scale))  # Arrow misreads narrower ones
    cast = array.cast(kind)
    if at.is_floating(kind) and not at.is_integer(own):
        infinite = pc.is_inf(cast)
        if (infinite if at.is_decimal(own) else pc.and_not(infinite, pc.is_inf(array))).true_count:
            raise _Misfit
    return cast


def _checked(
    array: pa.Array, kind: pa.DataType, path: str, remedy: str, cast: Callable[[pa.Array, pa.DataType], pa.Array]
) -> pa.Array:
    try:
        return cast(array, kind)
    except (_Misfit, pa.ArrowException) as error:
        bad = _first_bad(array, kind, cast)
        if bad is None:
            raise _refused(array.type, kind, path, str(error), remedy) from error
        raise _refused(array.type, kind, path, f"the value {_shown(bad)} does not fit", remedy) from error


def _first_bad(
    array: pa.Array, kind: pa.DataType, cast: Callable[[pa.Array, pa.DataType], pa.Array]
) -> pa.Scalar | None:
    """The first value that can't be cast: all before it can."""
    while len(array) > 1:
        half = array.slice(0, len(array) // 2)
        array = array.slice(len(half)) if _passes(half, kind, cast) else half
    return array[0] if len(array) and not _passes(array, kind, cast) else None


def _passes(array: pa.Array, kind: pa.DataType, cast: Callable[[pa.Array, pa.DataType], pa.Array]) -> bool:
    try:
        cast(array, kind)
    except (_Misfit, pa.ArrowException):
        return False
    return True


def _shown(value: pa.Scalar) -> str:
    try:
        text = str(value.cast(pa.string()).as_py())  # Python's datetime has no nanoseconds, and not all years
    except pa.ArrowException:
        text = str(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def _refused(own: pa.DataType, kind: pa.DataType, path: str, why: str, remedy: str) -> InvalidRequest:
    return InvalidRequest(f'Cannot cast column "{path}" from {own} to {kind}: {why}. {remedy}')
