"""Minimum and maximum statistics of files and row groups, as :class:`~tablewright.paimon.pruning.Bound`.

*Of data files*: the manifest has them in BinaryRows, for the columns that it names or, if it names none, for all of the
file's schema. Writers shorten texts and round times there, each in its own way, so only those of whole numbers
and dates are used.

*Of row groups*: the footer of a Parquet file has them. What Arrow's reader does not trust it does not show.

A column that a file lacks is null in all of its rows; one that was widened since then has bounds that are cast as its
values are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as at

from tablewright.paimon.columns import Source
from tablewright.paimon.format.binary_row import fixed_field
from tablewright.paimon.format.manifest import DataFile
from tablewright.paimon.format.schema import TableSchema
from tablewright.paimon.format.types import Field
from tablewright.paimon.pruning import Bound, is_bounded

__all__ = ["bounds_of_files", "bounds_of_row_groups"]

_RAW: dict[str, pa.DataType] = {
    "INT32": pa.int32(),
    "INT64": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
}


# ---------------------------------------------------------------------------------------------------------------- files
def bounds_of_files(
    files: Sequence[DataFile], schemas: Mapping[int, TableSchema], table: TableSchema, columns: Sequence[str]
) -> dict[str, Bound]:
    """What manifests say about some columns in each of some files."""
    groups: dict[tuple[int, tuple[str, ...] | None], list[int]] = {}
    for number, file in enumerate(files):
        if file.write_cols is None:
            groups.setdefault((file.schema_id, file.stats_columns), []).append(number)
    bounds = {}
    for name in columns:
        field = table.field(name)
        if at.is_integer(field.type.to_arrow()) or at.is_date(field.type.to_arrow()):
            bounds[name] = _of_column(field, files, schemas, groups)
    return bounds


def _of_column(
    field: Field,
    files: Sequence[DataFile],
    schemas: Mapping[int, TableSchema],
    groups: Mapping[tuple[int, tuple[str, ...] | None], Sequence[int]],
) -> Bound:
    """One column. ``groups`` are files of one schema whose statistics are of the same columns."""
    kind = field.type.to_arrow()
    lows, highs, missing = pa.nulls(len(files), kind), pa.nulls(len(files), kind), np.zeros(len(files), np.bool_)
    for (schema_id, stats_columns), members in groups.items():
        fields = schemas[schema_id].fields
        written = next((each for each in fields if each.id == field.id), None)
        if written is None:
            missing[members] = True
            continue
        stored = written.type.to_arrow()
        names = [each.name for each in fields] if stats_columns is None else list(stats_columns)
        if names.count(written.name) == 1 and _same_family(stored, kind):
            place = (names.index(written.name), len(names), stored, kind)
            lows = _placed(lows, members, _cells([files[number].stats_low for number in members], *place))
            highs = _placed(highs, members, _cells([files[number].stats_high for number in members], *place))
    return Bound(low=lows, high=highs, only_nulls=missing)


def _cells(rows: Sequence[bytes], index: int, arity: int, stored: pa.DataType, kind: pa.DataType) -> pa.Array:
    """One field of many rows, as the table's type; null where a row says so, or is none."""
    slots, is_null = fixed_field(rows, index, arity)
    raw = np.frombuffer(slots, f"<i{stored.bit_width // 8}")[:: 64 // stored.bit_width]
    return _cast(pa.array(raw, mask=is_null), stored, kind)


def _placed(array: pa.Array, places: Sequence[int], values: pa.Array) -> pa.Array:
    mask = np.zeros(len(array), np.bool_)
    mask[places] = True
    return pc.replace_with_mask(array, pa.array(mask), values)


# ----------------------------------------------------------------------------------------------------------- row groups
def bounds_of_row_groups(file: pq.FileMetaData, schema: pa.Schema, sources: Sequence[Source]) -> dict[str, Bound]:
    """What the footer of a Parquet file, whose columns are those of ``schema``, says about its row groups."""
    groups = [file.row_group(index) for index in range(file.num_row_groups)]
    places: dict[str, list[int]] = {}
    for index in range(file.num_columns):
        places.setdefault(file.schema.column(index).path, []).append(index)
    bounds = {}
    for source in sources:
        kind = source.field.type.to_arrow()
        if source.name is None:
            everywhere = np.ones(len(groups), np.bool_)
            nothing = pa.nulls(len(groups), kind if is_bounded(kind) else pa.null())
            bounds[source.field.name] = Bound(low=nothing, high=nothing, only_nulls=everywhere)
        elif is_bounded(kind) and len(places.get(source.name, ())) == 1 and source.name in schema.names:
            stored = schema.field(source.name).type
            if _same_family(stored, kind):
                chunks = [group.column(places[source.name][0]) for group in groups]
                bounds[source.field.name] = _of_chunks(chunks, stored, kind)
    return bounds


def _of_chunks(chunks: Sequence[pq.ColumnChunkMetaData], stored: pa.DataType, kind: pa.DataType) -> Bound:
    known = [chunk.statistics if chunk.is_stats_set else None for chunk in chunks]
    ranged = [each if each is not None and each.has_min_max else None for each in known]
    counts = [each.null_count if each is not None and each.has_null_count else None for each in known]
    pairs = list(zip(counts, chunks, strict=True))
    raw = _RAW.get(chunks[0].physical_type if chunks else "", pa.binary() if at.is_string(stored) else None)
    lows, highs = ([None if each is None else getattr(each, end) for each in ranged] for end in ("min_raw", "max_raw"))
    return Bound(
        low=_values(lows, raw, stored, kind),
        high=_values(highs, raw, stored, kind),
        only_nulls=np.array([count == chunk.num_values for count, chunk in pairs], np.bool_),
    )


def _values(values: list[Any], raw: pa.DataType | None, stored: pa.DataType, kind: pa.DataType) -> pa.Array:
    """Values of Parquet's physical types as the table's; null for all if they are of another type.

    Some writers store NaN, which is no bound.
    """
    if raw is None:
        return pa.nulls(len(values), kind)
    if at.is_binary(raw):
        values = [value.encode() if isinstance(value, str) else value for value in values]
    try:
        array = pa.array([None if value != value else value for value in values], raw)
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.nulls(len(values), kind)
    return _cast(array, stored, kind)


def _cast(raw: pa.Array, stored: pa.DataType, kind: pa.DataType) -> pa.Array:
    try:
        return raw.cast(stored).cast(kind)
    except pa.ArrowInvalid:
        return pa.nulls(len(raw), kind)


def _same_family(stored: pa.DataType, kind: pa.DataType) -> bool:
    """Whether a cast from one to the other keeps the order, and values as they are."""
    families = (at.is_signed_integer, at.is_floating, at.is_string, at.is_date32, at.is_timestamp)
    return any(family(stored) and family(kind) for family in families)
