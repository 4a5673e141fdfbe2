"""Lookups of scans: the few rows that an index knows (:mod:`tablewright.reading.lookup`) are read without a plan.

1. *Recognise* a filter of one column, in a scan without other wishes.
2. *Look up* its rows. Where they are many, or large, or no index knows them, ``None`` is returned, and the scan is
   planned as any other.
3. *Read* the rows. What is read for some columns holds for all versions with the same schema, and is kept.

Results are those of the scan (:mod:`tablewright.operations.scan`), in the same order.
"""

from __future__ import annotations

from collections.abc import Hashable

import pyarrow as pa

from tablewright.format.blobs import as_descriptions
from tablewright.indices.rows import RowsByFragment
from tablewright.operations.scan import ScanOptions
from tablewright.reading.known_rows import KnownReads, KnownRows, read_known_rows
from tablewright.reading.lookup import LookupFilter, plan_lookup, recognised
from tablewright.reading.projection import select_columns
from tablewright.snapshot.snapshot import Snapshot
from tablewright.snapshot.standing import while_it_stands

__all__ = ["lookup_count", "lookup_table"]

_READS_MAX = 64
_BYTES_MAX = 64 << 20  # of more, a scan reads one batch after the other


_reads: dict[Hashable, KnownReads] = {}


def lookup_table(snapshot: Snapshot, options: ScanOptions) -> pa.Table | None:
    """The rows of a scan; ``None`` if it is no lookup, and has to be planned."""
    wish = _wish(snapshot, options)
    if wish is None:
        return None
    reads = _read_plan(snapshot, options)
    with while_it_stands(snapshot):
        lookup = plan_lookup(snapshot, wish)
        rows = None if lookup is None else lookup.rows()
        wanted = None if rows is None else _known_rows(snapshot, rows)
        if wanted is None or reads.bytes_of(wanted) > _BYTES_MAX:
            return None
        return pa.Table.from_batches(read_known_rows(snapshot, reads, wanted), reads.plan.selection.schema)


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
def _read_plan(snapshot: Snapshot, options: ScanOptions) -> KnownReads:
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
    if len(_reads) >= _READS_MAX:
        _reads.clear()
    reads = _reads[key] = KnownReads.of(table, selection)
    return reads


def _known_rows(snapshot: Snapshot, rows: RowsByFragment) -> list[KnownRows]:
    """Rows in the order of the table."""
    every = snapshot.fragments
    first_rows = every.first_rows
    places = sorted((every.position(id), chosen) for id, chosen in rows.items() if chosen)
    return [KnownRows(every[at], int(first_rows[at]), chosen.to_numpy()) for at, chosen in places]
