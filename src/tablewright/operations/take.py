"""Take: rows by position, row id or address, in the order asked for, any number of times.

1. Every row asked for becomes a fragment and a physical offset. Positions count live rows in the table's order, so they
   go through the running totals of live rows and the deletion vectors; a stable row id is looked up in the row-id index
   of the version (``snapshot/row_id_index.py``), an address says it already.
2. Each fragment reads its distinct offsets once, ascending: dense ones as ranges, sparse ones row by row.
3. The rows are put into the order asked for.

As in pylance, ids of deleted rows are left out, and so are stable row ids that no row has. A position or an address
outside the table is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.checks import listed, whole_number
from tablewright.data.number_rows import FEW_ROWS, are_read_here
from tablewright.data.prefetch import prefetch
from tablewright.data.read import Rows, no_columns
from tablewright.errors import InvalidRequest
from tablewright.format.blobs import as_descriptions
from tablewright.format.fragment import Fragment
from tablewright.format.row_address import Addresses, RowAddress
from tablewright.reading.fragment import FragmentScan, ReadPlan
from tablewright.reading.projection import select_members
from tablewright.reading.run import ahead_of_codec
from tablewright.snapshot.snapshot import Snapshot
from tablewright.snapshot.standing import while_it_stands

__all__ = [
    "positions_within",
    "sample",
    "take_addresses",
    "take_fragment_positions",
    "take_positions",
    "take_row_ids",
    "whole_numbers",
]

Columns = Sequence[str] | Mapping[str, str] | None
Indices = npt.NDArray[np.int64]
P = ParamSpec("P")


def _told_if_cleaned_up(take: Callable[P, pa.Table]) -> Callable[P, pa.Table]:
    """Missing files of a version that was cleaned up are its own error. The version is the first argument."""

    @wraps(take)
    def taken(*args: P.args, **kwargs: P.kwargs) -> pa.Table:
        snapshot = args[0]
        assert isinstance(snapshot, Snapshot)
        with while_it_stands(snapshot):
            return take(*args, **kwargs)

    return taken


@_told_if_cleaned_up
def take_positions(snapshot: Snapshot, indices: Any, columns: Columns = None) -> pa.Table:
    """Rows by their position among the live rows of the table."""
    ends = np.cumsum(snapshot.fragments.live_rows)
    total = int(ends[-1]) if len(ends) else 0
    positions = positions_within(indices, total, f"version {snapshot.version} of the table")
    fragments = np.searchsorted(ends, positions, side="right")
    ranks = positions - snapshot.fragments.first_rows[fragments]
    offsets = ranks.copy()
    for index in _distinct(fragments):
        here = fragments == index
        offsets[here] = _offsets_of(snapshot, snapshot.fragments[index], ranks[here])
    return _gather(snapshot, fragments, offsets, columns)


@_told_if_cleaned_up
def take_fragment_positions(snapshot: Snapshot, fragment: Fragment, indices: Any, columns: Columns = None) -> pa.Table:
    """Rows by their position among the live rows of one fragment."""
    positions = positions_within(indices, fragment.live_rows, f"fragment {fragment.id}")
    offsets = _offsets_of(snapshot, fragment, positions)
    index = _index_of(snapshot, fragment.id)
    return _gather(snapshot, np.full(len(offsets), index, np.int64), offsets, columns)


@_told_if_cleaned_up
def take_row_ids(snapshot: Snapshot, row_ids: Any, columns: Columns = None) -> pa.Table:
    """Rows by row id: the stable one, or the address where the table has none. Ids of deleted rows are left out."""
    if not snapshot.manifest.stable_row_ids:
        return take_addresses(snapshot, row_ids, columns)
    ids = whole_numbers(row_ids, "row id").astype(np.uint64)
    addresses, found = snapshot.addresses_of(ids)
    fragment_ids, offsets = RowAddress.split(addresses[found])
    return _gather(snapshot, _positions_of(snapshot, fragment_ids), offsets, columns)


@_told_if_cleaned_up
def take_addresses(snapshot: Snapshot, addresses: Any, columns: Columns = None) -> pa.Table:
    """Rows by address (:class:`~tablewright.format.row_address.RowAddress`). Deleted rows are left out."""
    numbers = whole_numbers(addresses, "row address").astype(np.uint64)
    fragment_ids, offsets = RowAddress.split(numbers)
    fragments = np.zeros(len(numbers), np.int64)
    live = np.ones(len(numbers), np.bool_)
    for fragment_id in _distinct(fragment_ids):
        here = fragment_ids == fragment_id
        index = _index_of(snapshot, fragment_id)
        fragment = snapshot.fragments[index]
        _check_range(offsets[here], fragment.physical_rows, f"fragment {fragment_id}")
        fragments[here] = index
        live[here] = _is_live(snapshot, fragment, offsets[here])
    return _gather(snapshot, fragments[live], offsets[live], columns)


def sample(
    snapshot: Snapshot, num_rows: int, columns: Columns = None, *, randomize_order: bool = True, seed: int | None = None
) -> pa.Table:
    """``num_rows`` different rows, chosen at random (from ``seed``, else from the world's ids)."""
    total = snapshot.fragments.total_live_rows
    num_rows = whole_number(num_rows, "num_rows", minimum=None)
    if not 0 <= num_rows <= total:
        raise InvalidRequest(f"Sample larger than population or is negative: {num_rows} of {total} rows.")
    chance = np.random.default_rng(snapshot.world.ids.u64() if seed is None else whole_number(seed, "seed"))
    positions = chance.choice(total, num_rows, replace=False) if num_rows else np.zeros(0, np.int64)
    return take_positions(snapshot, positions if randomize_order else np.sort(positions), columns)


# --------------------------------------------------------------------------------------------------------- where
def positions_within(indices: Any, rows: int, where: str) -> Indices:
    """Any sequence of positions as an array; one that is not among ``rows`` is :class:`InvalidRequest`."""
    positions = whole_numbers(indices, "position")
    _check_range(positions, rows, where)
    return positions


def whole_numbers(values: Any, what: str) -> Indices:
    """Any sequence of whole numbers as an array. Those of 2**63 and more look negative: view them as uint64."""
    if isinstance(values, pa.ChunkedArray | pa.Array):
        values = _without_nulls(values, what)
    elif not isinstance(values, np.ndarray) or not values.ndim:
        values = listed(values, f"{what}s")
    try:
        array = np.asarray(values) if len(values) else np.zeros(0, np.int64)
    except ValueError:
        raise InvalidRequest(f"Invalid user input: each {what} is a whole number, got nested lists.") from None
    if array.dtype.kind == "f" and all(isinstance(value, int) and 0 <= value < 2**64 for value in values):
        array = np.array(values, np.uint64)  # numpy falls back to floats beyond 2**63
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidRequest(f"Invalid user input: each {what} is a whole number.")
    if array.dtype.kind == "i" and len(array) and int(array.min()) < 0:
        raise InvalidRequest(f"Invalid user input: a {what} can't be negative, got {int(array.min())}.")
    return array.astype(np.uint64).view(np.int64)


def _without_nulls(values: pa.Array | pa.ChunkedArray, what: str) -> npt.NDArray[Any]:
    if not len(values):
        return np.zeros(0, np.int64)
    if not pa.types.is_integer(values.type):
        raise InvalidRequest(f"Invalid user input: each {what} is a whole number, got Arrow's {values.type}.")
    if values.null_count:
        raise InvalidRequest(f"Invalid user input: a {what} can't be null, got {values.null_count} nulls.")
    numbers: npt.NDArray[Any] = values.to_numpy()
    return numbers


def _check_range(positions: Indices, rows: int, where: str) -> None:
    highest = int(positions.view(np.uint64).max()) if len(positions) else -1
    if highest >= rows:
        raise InvalidRequest(f"Invalid user input: row {highest} is out of range: {where} has {rows} rows.")


def _distinct(numbers: npt.NDArray[Any]) -> list[int]:
    """The different numbers, ascending; most takes are from one fragment."""
    if not len(numbers) or numbers.min() == numbers.max():
        return [int(number) for number in numbers[:1]]
    return [int(number) for number in np.unique(numbers)]


def _index_of(snapshot: Snapshot, fragment_id: int) -> int:
    if not snapshot.fragments.has(fragment_id):
        raise InvalidRequest(
            f"Invalid user input: the row address belongs to non-existent fragment: {fragment_id}. "
            f"Version {snapshot.version} has {len(snapshot.fragments)} fragments."
        )
    return snapshot.fragments.position(fragment_id)


def _offsets_of(snapshot: Snapshot, fragment: Fragment, ranks: Indices) -> Indices:
    """The physical offsets of live rows, given by their rank among the live rows."""
    vector = snapshot.deletion_vector(fragment)
    return ranks if vector is None else vector.nth_absent(ranks)


def _is_live(snapshot: Snapshot, fragment: Fragment, offsets: Indices) -> npt.NDArray[np.bool_]:
    vector = snapshot.deletion_vector(fragment)
    return np.ones(len(offsets), np.bool_) if vector is None else ~vector.contains(offsets)


def _positions_of(snapshot: Snapshot, fragment_ids: npt.NDArray[np.uint64]) -> Indices:
    """The position of each fragment in the list; all of them are there."""
    ids = snapshot.fragments.ids
    order = np.argsort(ids, kind="stable")
    return order[np.searchsorted(ids[order], fragment_ids)]


# ---------------------------------------------------------------------------------------------------------- read
def _gather(snapshot: Snapshot, fragments: Indices, offsets: Indices, columns: Columns) -> pa.Table:
    """The rows at fragment positions and offsets, in the order given.

    They are sorted as addresses with positions for fragment ids: the order of the fragments in the list counts.
    """
    table = as_descriptions(snapshot.schema)
    selection = select_members(table, columns)
    places, inverse = np.unique(RowAddress.join(fragments, offsets), return_inverse=True)
    plan = ReadPlan.of_known_rows(table, selection)
    runs = _runs(snapshot, plan, places)
    are_few = len(places) <= FEW_ROWS and are_read_here(snapshot, plan.shapes()[1])
    found_in = ahead_of_codec(_complete, runs, lambda run: run[0]) if are_few else prefetch(_complete, runs)
    batches = [batch for completed in found_in for batch in completed]
    if not selection.outputs:
        return pa.Table.from_batches([no_columns(len(offsets))])
    found = pa.Table.from_batches(batches, selection.schema)
    return found if _in_order(inverse) else found.take(pa.array(inverse))


def _runs(snapshot: Snapshot, plan: ReadPlan, places: Addresses) -> Iterator[tuple[FragmentScan, Rows]]:
    shapes = plan.shapes()
    starts = snapshot.fragments.first_rows
    owners, offsets = RowAddress.split(places)
    begins = np.flatnonzero(np.diff(owners, prepend=owners[:1] + 1)) if len(owners) else np.zeros(0, np.int64)
    ends = [*begins[1:].tolist(), len(places)][: len(begins)]
    for index, begin, end in zip(owners[begins].tolist(), begins.tolist(), ends, strict=True):
        scan = FragmentScan(snapshot, plan, shapes, snapshot.fragments[index], int(starts[index]))
        for rows in scan.windows(Rows(no_columns(end - begin), chosen=offsets[begin:end])):
            yield scan, rows


def _complete(run: tuple[FragmentScan, Rows]) -> list[pa.RecordBatch]:
    scan, rows = run
    return scan.complete(rows)


def _in_order(inverse: Indices) -> bool:
    return bool(np.array_equal(inverse, np.arange(len(inverse))))
