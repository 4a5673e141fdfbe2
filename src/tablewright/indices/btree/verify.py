"""Cheap consistency checks of an index against the table.

A merge relies on the index: rows that it names are replaced, keys that it does not find are inserted. A damaged index
would lose or duplicate rows, so these are checked:

- *its size*: an index has at least as many entries as there are live rows in the fragments that it covers;
- *its ids*: none belongs to a fragment or row that the table never had;
- *its pages*: some begin and end with the values that the lookup says (:meth:`BTreeIndex.check_pages`);
- *its hits*: no row has two keys, and some of the rows are read: up to 64 in up to 4 fragments, evenly chosen, must
  hold the key that the index found there.

What this does not detect: an index that leaves out single keys, or names a few wrong rows among very many.

Tests: ``tests/differential/indices/btree/test_verify.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablewright.data.number_files import is_number
from tablewright.data.number_rows import read_number_rows
from tablewright.data.prefetch import prefetch
from tablewright.data.read import read_fragment
from tablewright.data.shape import read_shape
from tablewright.format.fragment import Fragment
from tablewright.format.row_address import Addresses, RowAddress
from tablewright.indices.btree.keys import fitted
from tablewright.indices.btree.order import Longs, equal_values, order_of
from tablewright.snapshot.snapshot import Snapshot

__all__ = ["problems_of_hits", "problems_of_ids", "problems_of_size"]

_FRAGMENTS_MAX = 4
_ROWS_MAX = 64


def problems_of_size(num_entries: int, live_rows: int) -> Iterator[str]:
    """Too few entries for the live rows of the covered fragments."""
    if num_entries < live_rows:
        yield f"it has {num_entries} entries where the fragments that it covers have {live_rows} rows"


def problems_of_ids(snapshot: Snapshot, ids: Addresses, *, are_addresses: bool) -> Iterator[str]:
    """Ids that the table has never assigned."""
    if not len(ids):
        return
    highest = RowAddress(ids.max())
    if are_addresses and highest.fragment_id > (snapshot.manifest.max_fragment_id or 0):
        yield f"it names rows of fragment {highest.fragment_id}, which the table never had"
    if not are_addresses and highest >= snapshot.manifest.next_row_id:
        yield f"it names row id {highest}, which the table has not given yet"


def problems_of_hits(
    snapshot: Snapshot, field_id: int, keys: pa.Array, positions: Longs, addresses: Addresses
) -> Iterator[str]:
    """Rows that do not hold the key that was found there; some of them are read."""
    owners, offsets = RowAddress.split(addresses)
    yield from _rows_of_several_keys(keys, positions, addresses)

    asked = _some(np.unique(owners), _FRAGMENTS_MAX).tolist()

    def wrong_row(fragment_id: int) -> str | None:
        here = np.flatnonzero(owners == np.uint64(fragment_id))
        hits = _some(here[np.unique(offsets[here], return_index=True)[1]], _ROWS_MAX // len(asked))
        stored = _values(snapshot, snapshot.fragments.by_id(fragment_id), field_id, offsets[hits])
        wrong = _different(stored, fitted(keys.take(pa.array(positions[hits])), _plain(stored.type)))
        if not len(wrong):
            return None
        hit = hits[wrong[0]]
        return (
            f"it names row {int(offsets[hit])} of fragment {fragment_id} for the key "
            f"{keys[int(positions[hit])].as_py()!r}, but the row holds {stored[int(wrong[0])].as_py()!r}"
        )

    in_turn = is_number(_plain(keys.type))  # read without the codec: threads would wait for each other
    found = list(map(wrong_row, asked) if in_turn else prefetch(wrong_row, asked))
    yield from [problem for problem in found if problem is not None][:1]


def _rows_of_several_keys(keys: pa.Array, positions: Longs, addresses: Addresses) -> Iterator[str]:
    order = np.argsort(addresses, kind="stable")
    again = _some(np.flatnonzero(addresses[order][1:] == addresses[order][:-1]), _ROWS_MAX)
    if not len(again):
        return
    one, other = (keys.take(pa.array(positions[order[places]])) for places in (again, again + 1))
    if len(wrong := _different(one, fitted(other, _plain(one.type)))):
        first, second = one[int(wrong[0])].as_py(), other[int(wrong[0])].as_py()
        yield f"it names the same row for the keys {first!r} and {second!r}"


def _values(snapshot: Snapshot, fragment: Fragment, field_id: int, offsets: Longs) -> pa.Array:
    """The values of one field at ascending offsets; members of structs are taken out of them."""
    schema = snapshot.schema
    wanted = schema.project_ids([field_id])
    numbers = read_number_rows(snapshot, fragment, read_shape(schema, wanted), offsets)
    if numbers is not None:
        return numbers.column(0)
    batches = list(read_fragment(snapshot, fragment, schema, wanted, offsets=offsets))
    column = pa.chunked_array([batch.column(0) for batch in batches]).combine_chunks()
    while isinstance(column, pa.StructArray):
        column = column.flatten()[0]
    return column


def _different(stored: pa.Array, keys: pa.Array) -> Longs:
    """Where two arrays differ in the order of the index, in which -0.0 is not 0.0 and NaN equals itself."""
    stored = fitted(stored, _plain(stored.type))
    valid = stored.is_valid().to_numpy(zero_copy_only=False)
    different = ~valid
    order = order_of(stored.type)
    if order is not None and valid.any():
        there = pa.array(np.flatnonzero(valid))
        same = equal_values(order.values(stored.take(there)), order.values(keys.take(there)))
        different[np.flatnonzero(valid)[~same]] = True
    return np.flatnonzero(different)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values themselves: without extension and dictionary."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _some(values: npt.NDArray[np.generic], count: int) -> npt.NDArray[np.generic]:
    """At most ``count`` of the values, evenly spread, the first and the last among them."""
    if len(values) <= count:
        return values
    return values[np.linspace(0, len(values) - 1, count).astype(np.int64)]
