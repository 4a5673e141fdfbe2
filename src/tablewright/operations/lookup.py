"""Lookups of scans: the few rows that an index knows (:mod:`tablewright.reading.lookup`) are read without a plan.

1. *Recognise* a filter of one column, in a scan without other wishes.
2. *Look up* its rows. Where there are many, or no index knows them, ``None`` is returned, and the scan is planned as
   any other.
3. *Read* the rows. What is read for some columns holds for all versions with the same schema, and is kept.

Results are those of the scan (:mod:`tablewright.operations.scan`), in the same order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import pyarrow as pa

from tablewright.data.prefetch import spread
from tablewright.format.blobs import as_descriptions
from tablewright.format.fragment import Fragment
from tablewright.format.row_set import Offsets
from tablewright.indices.rows import RowsByFragment
from tablewright.operations.scan import ScanOptions
from tablewright.reading.known_rows import KnownReads, KnownRows, read_known_numbers
from tablewright.reading.lookup import LookupFilter, plan_lookup, recognised
from tablewright.reading.projection import select_columns
from tablewright.snapshot.snapshot import Snapshot
from tablewright.snapshot.standing import while_it_stands
from tablewright.storage.together import answers_slowly

__all__ = ["lookup_count", "lookup_table"]

_READS_MAX = 64


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


def _table(snapshot: Snapshot, reads: KnownReads, rows: RowsByFragment) -> pa.Table:
    every = snapshot.fragments
    places = sorted((every.position(id), chosen.to_numpy()) for id, chosen in rows.items())
    first_rows = every.first_rows
    found = [(every[position], int(first_rows[position]), offsets) for position, offsets in places]
    batches = read_known_numbers(snapshot, reads, found) if len(found) > 1 else None
    if batches is None:
        batches = [batch for part in _each(snapshot, reads, found) for batch in part]
    return pa.Table.from_batches(batches, reads.plan.selection.schema)


def _each(
    snapshot: Snapshot, reads: KnownReads, found: Sequence[tuple[Fragment, int, Offsets]]
) -> Iterable[list[pa.RecordBatch]]:
    """The rows of each fragment. The codec reads all of them at the same time."""
    if len(found) > 1 and answers_slowly(snapshot.world.store):
        return spread(lambda each: KnownRows(snapshot, reads, *each).batches(), found)
    begun = [KnownRows(snapshot, reads, *each) for each in found]
    return [part.batches() for part in begun]
