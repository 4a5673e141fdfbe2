"""Columns out of a table that is joined by a key: new ones for every row, or new values of columns that are there.

It is a left join: rows of ours without a partner get null (or keep their values, in an update). Of several rows with
one key the last counts, and a null key finds a null key, as in Lance. Keys, and new values, take the table's types as
rows at every other entry do (:mod:`tablewright.data.fit_types`). The other table is held in memory, hashed once (by
pandas) and probed batch by batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.types as at

from tablewright.data.conform import conform
from tablewright.data.fit_types import fits
from tablewright.expressions.casts import lance_name
from tablewright.expressions.scope import SYSTEM_COLUMNS
from tablewright.format.row_address import RowAddress
from tablewright.format.schema import Schema
from tablewright.operations.columns.plan import ColumnsPlan, plan_columns
from tablewright.operations.columns.schema import InvalidColumns, add_to_schema, as_column_errors
from tablewright.reading.projection import Path
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["Join", "JoinedColumns", "Lookup", "Patch", "PatchedColumns"]

Positions = npt.NDArray[np.int64]


class Lookup:
    """Rows of a table by key. ``values`` are its other columns.

    >>> lookup = Lookup(pa.table({"k": [1, 2, 2], "v": ["a", "b", "c"]}), "k")
    >>> lookup.take(lookup.find(pa.array([2, 9]))).to_pydict()
    {'v': ['c', None]}
    """

    def __init__(self, table: pa.Table, key: str) -> None:
        self._table, self._key = table, key
        keys = _whole(table.column(key))
        self.key_type: pa.DataType = keys.type
        self.values: pa.Table = table.drop_columns([key]).combine_chunks()
        comparable, is_null = _comparable(keys)
        known = np.flatnonzero(~is_null)
        index = pd.Index(comparable[known])
        last = ~index.duplicated(keep="last")
        self._index, self._places = index[last], known[last]
        nulls = np.flatnonzero(is_null)
        self._null_place = int(nulls[-1]) if len(nulls) else -1
        self._index.get_indexer(self._index[:0])  # hashed now, before threads share it

    def fitted(self, key: pa.DataType, values: pa.Schema | None = None) -> Lookup:
        """The same rows with keys, and perhaps values, in other types; a value that does not fit is refused."""
        others = self.values.schema if values is None else values
        if self.key_type == key and self.values.schema.equals(others):
            return self
        schema = pa.schema([pa.field(self._key, key), *others])
        rows = [conform(batch, schema) for batch in self._table.select(schema.names).to_batches()]
        return Lookup(pa.Table.from_batches(rows, schema), self._key)

    def find(self, keys: pa.Array) -> Positions:
        """The position of each key's row, -1 where there is none."""
        comparable, is_null = _comparable(keys)
        found = self._index.get_indexer(pd.Index(comparable))
        places = np.where(found < 0, -1, np.append(self._places, -1)[found])
        places[is_null] = self._null_place
        return places

    def take(self, places: Positions) -> pa.RecordBatch:
        """The rows at these positions; null at -1."""
        taken = self.values.take(pa.array(places, mask=places < 0))
        return pa.RecordBatch.from_arrays([_whole(column) for column in taken.columns], schema=self.values.schema)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _comparable(keys: pa.Array) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.bool_]]:
    """Keys as values that hash alike where they are alike, and which of them are null."""
    if at.is_dictionary(keys.type):
        keys = keys.cast(keys.type.value_type)
    if at.is_temporal(keys.type):
        keys = keys.view(pa.int32() if keys.type.bit_width == 32 else pa.int64())
    if at.is_boolean(keys.type) or at.is_floating(keys.type):
        keys = keys.cast(pa.uint8() if at.is_boolean(keys.type) else pa.float64())
    is_null = keys.is_null().to_numpy(zero_copy_only=False)
    if at.is_integer(keys.type) or at.is_floating(keys.type):
        return keys.fill_null(0).to_numpy(zero_copy_only=False), is_null
    return np.array(keys.to_pylist(), object), is_null


def _fitting_key(table: Schema, left: str, lookup: Lookup, where: str) -> pa.DataType:
    """The type of our key, if the other's fits."""
    kind = table.to_arrow().field(left).type if left in table.names else SYSTEM_COLUMNS.get(left)
    if kind is None:
        raise InvalidColumns(f"Invalid user input: Column {left} does not exist in the left side {where}.")
    if not fits(lookup.key_type, kind):
        raise InvalidColumns(
            f"Invalid user input: Index column type mismatch: expected {lance_name(lookup.key_type)}, got "
            f"{lance_name(kind)}. Cast the key of the joined data to {kind}."
        )
    if at.is_nested(kind):
        raise InvalidColumns(f"Invalid user input: Column {left} of type {kind} can't be a key.")
    if not lookup.values.num_columns:
        raise InvalidColumns("Invalid user input: the joined data have no column besides the key.")
    return kind


# -------------------------------------------------------------------------------------------------- new columns
@dataclass(frozen=True, slots=True)
class JoinedColumns:
    """The columns of the partner that each row has."""

    lookup: Lookup
    key: str

    @property
    def paths(self) -> tuple[Path, ...]:
        return ((self.key,),)

    @property
    def schema(self) -> pa.Schema:
        return self.lookup.values.schema

    def compute(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return self.lookup.take(self.lookup.find(batch.column(self.key)))


@dataclass(frozen=True, slots=True)
class Join:
    """New columns from a joined table; ``where`` is what messages call our side."""

    lookup: Lookup
    left_on: str
    where: str = "dataset"

    def plan(self, snapshot: Snapshot) -> ColumnsPlan:
        """Decide them on a version of the table."""
        with as_column_errors():
            lookup = self.lookup.fitted(_fitting_key(snapshot.schema, self.left_on, self.lookup, self.where))
            known = frozenset(snapshot.schema.names)
            both = [name for name in lookup.values.column_names if name in known]
            if both:
                raise InvalidColumns(
                    f"Invalid user input: Column {both[0]} exists in both sides of the {self.where}: exists in left "
                    f"side {self.where} and right side dataset."
                )
            added = add_to_schema(snapshot.manifest, lookup.values.schema)
            computation = JoinedColumns(lookup, self.left_on)
            return plan_columns(snapshot, "Merge", added.after, added.new, computation)


# -------------------------------------------------------------------------------------------------- new values
@dataclass(frozen=True, slots=True)
class PatchedColumns:
    """Columns as they are, with the partner's values in rows that have one; ``matched`` gets these rows' offsets."""

    lookup: Lookup
    key: str
    schema: pa.Schema
    matched: list[Positions] = field(default_factory=list)

    @property
    def paths(self) -> tuple[Path, ...]:
        names = dict.fromkeys([*self.schema.names, self.key, "_rowaddr"])
        return tuple((name,) for name in names)

    def compute(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        places = self.lookup.find(batch.column(self.key))
        hits = np.flatnonzero(places >= 0)
        addresses = batch.column("_rowaddr").to_numpy(zero_copy_only=False)
        self.matched.append(RowAddress.split(addresses[hits])[1])
        if not len(hits):
            return batch.select(self.schema.names)
        new = self.lookup.take(places[hits])
        order = np.arange(batch.num_rows)
        order[hits] = batch.num_rows + np.arange(len(hits))
        chosen = pa.array(order)
        arrays = [pa.concat_arrays([batch.column(n), new.column(n)]).take(chosen) for n in self.schema.names]
        return pa.RecordBatch.from_arrays(arrays, names=self.schema.names)


@dataclass(frozen=True, slots=True)
class Patch:
    """New values of existing columns from a joined table, for one fragment."""

    lookup: Lookup
    left_on: str

    def plan(self, snapshot: Snapshot) -> ColumnsPlan:
        """Decide them on a version of the table."""
        with as_column_errors():
            table = snapshot.schema
            key = _fitting_key(table, self.left_on, self.lookup, "fragment")
            given, known = Schema.from_arrow(self.lookup.values.schema).to_arrow(), table.to_arrow()
            for column in given:
                if column.name not in known.names:
                    raise InvalidColumns(
                        f"Invalid user input: Column {column.name} in right side fragment does not exist in left side "
                        "fragment."
                    )
                kind = known.field(column.name).type
                if not fits(column.type, kind):
                    raise InvalidColumns(
                        f"Invalid user input: Column {column.name} should have type {kind} but type was {column.type}. "
                        "Cast it first."
                    )
            written = table.project_ids(table.node_ids(given.names))
            schema = written.to_arrow().remove_metadata()
            nullable = pa.schema([field.with_nullable(True) for field in schema])
            lookup = self.lookup.fitted(key, nullable)
            return plan_columns(snapshot, "Update", table, written, PatchedColumns(lookup, self.left_on, schema))
