"""Lookups of scans: the few rows that an index knows (:mod:`tablewright.reading.lookup`) are read without a plan.

1. *Recognise* a filter of one column, in a scan without other wishes.
2. *Look up* its rows. Where there are many, or no index knows them, ``None`` is returned, and the scan is planned as
   any other.
3. *Read* the rows. What is read for some columns holds for all versions with the same schema, and is kept.

Results are those of the scan (:mod:`tablewright.operations.scan`), in the same order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from tablewright.data.prefetch import spread
from tablewright.data.read import FragmentReader, Rows, beside
from tablewright.data.shape import ReadShape
from tablewright.data.system_columns import SystemColumns
from tablewright.format.blobs import as_descriptions
from tablewright.format.row_set import Offsets
from tablewright.format.schema import Schema
from tablewright.indices.rows import RowsByFragment
from tablewright.operations.scan import ScanOptions
from tablewright.reading.fragment import ReadPlan
from tablewright.reading.lookup import LookupFilter, plan_lookup, recognised
from tablewright.reading.projection import select_columns
from tablewright.snapshot.snapshot import Snapshot
from tablewright.snapshot.standing import while_it_stands
from tablewright.storage.together import answers_slowly

__all__ = ["lookup_count", "lookup_table"]

_READS_MAX = 64


@dataclass(frozen=True, slots=True, eq=False)
class _Reads:
    """What is read of rows for some columns, in all versions that have this schema."""

    table: Schema
    plan: ReadPlan
    shape: ReadShape


_reads: dict[Hashable, _Reads] = {}


def lookup_table(snapshot: Snapshot, options: ScanOptions) -> pa.Table | None:
    """The rows of a scan; ``None`` if it is no lookup, and has to be planned."""
    wish = _wish(snapshot, options)
    if wish is None:
        return None
    reads = _read_plan(snapshot, options)
    with while_it_stands(snapshot):
        lookup = plan_lookup(snapshot, wish)
        rows = None if lookup is None else lookup.rows()
        return None if rows is None else _table(snapshot, reads, rows)


def lookup_count(snapshot: Snapshot, options: ScanOptions) -> int | None:
    """How many rows a scan has; ``None`` if it is no lookup."""
    wish = _wish(snapshot, options)
    if wish is None:
        return None
    if options.columns is not None:
        _read_plan(snapshot, options)  # columns that are not there are refused
    with while_it_stands(snapshot):
        lookup = plan_lookup(snapshot, wish)
        return None if lookup is None else lookup.count()


def _wish(snapshot: Snapshot, options: ScanOptions) -> LookupFilter | None:
    """The filter of a scan without other wishes."""
    if not isinstance(options.columns, list | tuple | None):
        return None
    if options.limit is not None or options.offset or options.order_by is not None or options.fragments is not None:
        return None
    if options.include_deleted_rows or options.blob_handling is not None:
        return None
    return recognised(snapshot, options.filter, options.use_scalar_index)


# --------------------------------------------------------------------------------------------------------------- read
def _read_plan(snapshot: Snapshot, options: ScanOptions) -> _Reads:
    """What is read for the columns that are wanted; unknown ones are refused here."""
    table = as_descriptions(snapshot.schema)
    columns = None if options.columns is None else tuple(options.columns)
    key = (id(table), columns, options.with_row_id, options.with_row_address)
    kept = _reads.get(key)
    if kept is not None and kept.table is table:
        return kept
    selection = select_columns(
        table, options.columns, with_row_id=options.with_row_id, with_row_address=options.with_row_address
    )
    plan = ReadPlan.of_known_rows(table, selection)
    reads = _Reads(table, plan, plan.shapes()[1])
    if len(_reads) >= _READS_MAX:
        _reads.clear()
    _reads[key] = reads
    return reads


def _table(snapshot: Snapshot, reads: _Reads, rows: RowsByFragment) -> pa.Table:
    every = snapshot.fragments
    found = sorted((every.position(id), chosen.to_numpy()) for id, chosen in rows.items())
    if len(found) > 1 and answers_slowly(snapshot.world.store):
        parts = spread(lambda each: _Part(snapshot, reads, *each).batches(), found)
    else:
        begun = [_Part(snapshot, reads, position, offsets) for position, offsets in found]
        parts = [part.batches() for part in begun]
    return pa.Table.from_batches([batch for part in parts for batch in part], reads.plan.selection.schema)


class _Part:
    """The rows of one fragment. The codec reads them from the moment this is made."""

    def __init__(self, snapshot: Snapshot, reads: _Reads, position: int, offsets: Offsets) -> None:
        self._snapshot, self._reads, self._position, self._rows = snapshot, reads, position, len(offsets)
        self._fragment = snapshot.fragments[position]
        self._reader = FragmentReader(snapshot, self._fragment, reads.shape)
        self._parts = self._reader.start_at(offsets)

    def batches(self) -> list[pa.RecordBatch]:
        """The rows as asked for."""
        plan = self._reads.plan
        found = _rows(self._parts, self._rows)
        self._reader.release()
        batches = [rows.batch for rows in found]
        if plan.rest.system:
            first = int(self._snapshot.fragments.first_rows[self._position])
            system = SystemColumns(self._snapshot, self._fragment, first)
            batches = [beside(rows.batch, system.batch(plan.rest.system, rows.offsets)) for rows in found]
        return [plan.selection.shape(batch) for batch in batches]


def _rows(parts: Iterator[Rows], count: int) -> list[Rows]:
    """Parts of this many rows in all: the codec is not asked for the end, which costs as much as a part."""
    found: list[Rows] = []
    while count > 0 and (part := next(parts, None)) is not None:
        found.append(part)
        count -= len(part)
    return found
