"""Which types of incoming rows a table's column takes without being asked: one rule for every entry.

Rows may come from Arrow, pandas, polars, numpy, Python values or Spark, by an append, an insert, a merge, an update
with joined data or a Python function. Wherever a column's type differs from the table's, this module decides, and
:mod:`.fit_values` casts:

==========================  =================================================  ======================================
from                        to                                                 refused when a value
==========================  =================================================  ======================================
integers                    integers, decimals, floats                         is out of range; in a float: beyond 2**53
                                                                               (double), 2**24 (float), 2**11 (half)
floats                      floats (digits are rounded), integers              becomes infinite; is not whole
decimals                    decimals, integers, float and double (rounded)     has more digits; is not whole
text of any width           text of any width                                  —
binary of any width         binary of any width, fixed-size binary             has another size
dates                       dates                                              is not a whole day
timestamps, times,          the same in any unit, timestamps with a zone in    has finer digits, or is too far away
durations                   any other zone
lists of any form           lists of any form, if their items fit              has another length than a fixed size
structs, maps               the same, if their members fit                     —
dictionaries                their values, and the other way round              —
null                        everything                                         —
storage of an extension     the extension type, and the other way round        —
==========================  =================================================  ======================================

Everything else is refused before a row is read: text is not parsed, a time zone is not guessed, booleans are no
numbers, floats are no decimals. Whoever wants such a cast asks for it. Two questions are others: which casts a caller
may ask for (``expressions/casts.py``), and which differences Lance itself accepts (``format/schema_match.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeGuard

import pyarrow as pa
import pyarrow.types as at

from tablewright.errors import SchemaMismatch
from tablewright.format.field import BLOB_V2, EXTENSION_METADATA, EXTENSION_NAME
from tablewright.format.schema import Schema, schema_differences

__all__ = ["adopt", "check_fits", "fits", "is_any_list", "refusal"]

AnyList = pa.ListType | pa.LargeListType | pa.FixedSizeListType
Test = Callable[[pa.DataType], bool]

_TEXT: tuple[Test, ...] = (at.is_string, at.is_large_string, at.is_string_view)
_BYTES: tuple[Test, ...] = (at.is_binary, at.is_large_binary, at.is_binary_view, at.is_fixed_size_binary)
_LEAVES: tuple[tuple[tuple[Test, ...], tuple[Test, ...]], ...] = (
    ((at.is_integer,), (at.is_integer, at.is_floating, at.is_decimal)),
    ((at.is_floating,), (at.is_floating, at.is_integer)),
    ((at.is_decimal,), (at.is_decimal, at.is_integer, at.is_float32, at.is_float64)),
    (_TEXT, _TEXT),
    (_BYTES, _BYTES),
    ((at.is_date,), (at.is_date,)),
    ((at.is_time,), (at.is_time,)),
    ((at.is_duration,), (at.is_duration,)),
)
"""Families of types, and those that their values become."""

_EXTENSION = (EXTENSION_NAME.encode(), EXTENSION_METADATA.encode())
_ZONES = "a timestamp without a zone is no instant: say which zone is meant, or drop the zone"
_CAST = "cast the column first if that is meant, or change the table's with alter_columns"


def fits(own: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of type ``own`` may become ``wanted``; some of them may still be refused.

    Members of structs may be left out, in any place.

    >>> fits(pa.list_(pa.float64()), pa.list_(pa.float32(), 2)), fits(pa.string(), pa.int64())
    (True, False)
    """
    if own == wanted or at.is_null(own):
        return True
    if isinstance(own, pa.BaseExtensionType) and isinstance(wanted, pa.BaseExtensionType):
        return own.extension_name == wanted.extension_name == "arrow.json" and fits(
            own.storage_type, wanted.storage_type
        )
    if isinstance(own, pa.BaseExtensionType):
        return fits(own.storage_type, wanted)
    if isinstance(wanted, pa.BaseExtensionType):
        return fits(own, wanted.storage_type)
    if at.is_dictionary(own) or at.is_dictionary(wanted):
        return fits(_values(own), _values(wanted))
    if is_any_list(own) and is_any_list(wanted):
        return not _other_size(own, wanted) and fits(own.value_type, wanted.value_type)
    if at.is_struct(own) and at.is_struct(wanted):
        return all(_member_fits(member, wanted) for member in own)
    if at.is_map(own) and at.is_map(wanted):
        return fits(own.key_type, wanted.key_type) and fits(own.item_type, wanted.item_type)
    if at.is_timestamp(own) and at.is_timestamp(wanted):
        return bool(own.tz) == bool(wanted.tz)
    return any(_is(own, of) and _is(wanted, to) for of, to in _LEAVES)


def adopt(incoming: pa.Schema, table: pa.Schema) -> pa.Schema:
    """``incoming`` with the table's types wherever they fit; what does not keeps its own, to be refused by name.

    >>> adopt(pa.schema({"id": pa.int32(), "x": pa.string()}), pa.schema({"id": pa.int64(), "x": pa.int8()}))
    id: int64
    x: string
    """
    known = {field.name: field for field in table}
    fields = [_field(field, known[field.name]) if field.name in known else field for field in incoming]
    return pa.schema(fields, metadata=incoming.metadata)


def refusal(table: Schema, incoming: pa.Schema) -> SchemaMismatch | None:
    """Why rows of ``incoming`` can't go into a table, all reasons at once and what to do; ``None`` if they can."""
    names = frozenset(incoming.names)
    known = pa.schema([table.arrow_field(column.id) for column in table.top_level if column.name in names])
    adopted = adopt(incoming, known)
    differences = schema_differences(table, adopted)
    return SchemaMismatch((*differences, *_advice(adopted, known))) if differences else None


def check_fits(incoming: pa.Schema, wanted: pa.Schema) -> None:
    """Refuse rows of ``incoming`` that can't all become the columns of ``wanted``, which have the same names."""
    unfit = [
        f"`{field.name}` should have type {field.type} but {incoming.field(field.name).type} can't be cast to it"
        for field in wanted
        if not fits(incoming.field(field.name).type, field.type)
    ]
    if unfit:
        raise SchemaMismatch((*unfit, *_advice(incoming, wanted)))


def is_any_list(kind: pa.DataType) -> TypeGuard[AnyList]:
    """Whether it is a list with offsets of any width, or of a fixed size."""
    return at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind)


def _field(own: pa.Field, wanted: pa.Field) -> pa.Field:
    """The field with the table's type where it fits, and with its extension where it has none or needs none."""
    kind = _type(own.type, wanted.type)
    given, known = _extension(own), _extension(wanted)
    metadata = dict(own.metadata or {})
    if given != known and kind.equals(wanted.type) and not (given and known) and BLOB_V2 not in known.values():
        metadata = {key: value for key, value in metadata.items() if key not in given} | known
    return own.with_type(kind).with_metadata(metadata or None)


def _type(own: pa.DataType, wanted: pa.DataType) -> pa.DataType:
    if own == wanted:
        return own
    if is_any_list(own) and is_any_list(wanted) and not _other_size(own, wanted):
        item = _field(own.value_field, wanted.value_field).with_name(wanted.value_field.name)
        if at.is_fixed_size_list(wanted):
            return pa.list_(item, wanted.list_size)
        return pa.large_list(item) if at.is_large_list(wanted) else pa.list_(item)
    if at.is_struct(own) and at.is_struct(wanted):
        known = {member.name: member for member in wanted}
        return pa.struct([_field(member, known[member.name]) if member.name in known else member for member in own])
    return wanted if fits(own, wanted) else own


def _extension(field: pa.Field) -> dict[bytes, bytes]:
    """What a field's metadata say about an extension type that pyarrow does not know."""
    return {key: value for key, value in (field.metadata or {}).items() if key in _EXTENSION}


def _advice(adopted: pa.Schema, table: pa.Schema) -> Iterable[str]:
    """What to do about columns whose types do not fit."""
    both = [(field.type, table.field(field.name).type) for field in adopted if field.name in table.names]
    unfit = [pair for pair in both if not fits(*pair)]
    if any(at.is_timestamp(own) and at.is_timestamp(wanted) for own, wanted in unfit):
        yield _ZONES
    elif unfit:
        yield _CAST


def _member_fits(member: pa.Field, wanted: pa.StructType) -> bool:
    index = wanted.get_field_index(member.name)
    return index >= 0 and fits(member.type, wanted.field(index).type)


def _values(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if at.is_dictionary(kind) else kind


def _other_size(own: pa.DataType, wanted: pa.DataType) -> bool:
    return at.is_fixed_size_list(own) and at.is_fixed_size_list(wanted) and own.list_size != wanted.list_size


def _is(kind: pa.DataType, kinds: Iterable[Test]) -> bool:
    return any(matches(kind) for matches in kinds)
