"""Stable row ids switched on for a table that has none: a change of metadata alone.

Every row that exists takes its present *address* (``format/row_address.py``) as its row id, deleted ones too, and new
ids begin above all addresses that were ever given, at the first one of the next fragment id. So

- indices, which hold addresses, hold row ids from now on without a change, and entries of rows that are long gone name
  ids that no row will ever have;
- no id is given twice, also if the table is restored to a version before and switched on again: ids come with new
  fragments, and a fragment never has more rows than an address has offsets.

The version that switches it on counts as the one in which all these rows were created and last updated: earlier
versions did not record it. (Version 1, which clients assume if nothing is stored, would claim a history that is not
known.)

To other writers it is a *Merge* of all fragments with the schema as it was: they retry what names old rows by address,
and appends pass. As ours the transaction is recognised by a property, and needs no conflict rule: what it does
follows from the newest version alone, so it is made again on that.

Format: ``docs/format/row-ids.md#stable-row-ids``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tablewright.errors import CommitConflict, InvalidRequest
from tablewright.format.fragment import FragmentList
from tablewright.format.limits import FRAGMENT_ID_MAX
from tablewright.format.manifest import Manifest
from tablewright.format.row_address import RowAddress
from tablewright.format.row_id_ranges import encode_ranges
from tablewright.format.row_ids import VersionSequence, encode_versions
from tablewright.format.transaction import Merge, Transaction

__all__ = ["enable_row_ids", "enables_row_ids", "first_row_id", "switched_on"]

_MARK = "tablewright.enable_stable_row_ids"
_REUSE = "__lance_frag_reuse"


def enables_row_ids(transaction: Transaction) -> bool:
    """Whether this transaction switches stable row ids on."""
    return isinstance(transaction.operation, Merge) and transaction.properties.get(_MARK) == "true"


def enable_row_ids(manifest: Manifest, uuid: str) -> Transaction:
    """The transaction that switches stable row ids on for this version, which has none."""
    _check(manifest)
    fragments = manifest.fragments.with_lineage(_addresses(manifest.fragments))
    merge = Merge(fragments=fragments, schema=manifest.schema, preserves_nullability=True)
    return Transaction(read_version=manifest.version, uuid=uuid, operation=merge, properties={_MARK: "true"})


def switched_on(manifest: Manifest) -> Manifest:
    """The manifest with row ids; they and the versions are made from the fragments that it has now."""
    _check(manifest)
    fragments, version = manifest.fragments, manifest.version + 1
    known: dict[int, bytes] = {}
    for rows in np.unique(fragments.physical_rows).tolist():
        known[rows] = encode_versions(VersionSequence.constant(rows, version))
    versions = [known[rows] for rows in fragments.physical_rows.tolist()]
    return replace(
        manifest,
        fragments=fragments.with_lineage(_addresses(fragments), versions),
        stable_row_ids=True,
        next_row_id=first_row_id(manifest),
    )


def first_row_id(manifest: Manifest) -> int:
    """The first id for new rows: above all addresses that were ever given."""
    highest = -1 if manifest.max_fragment_id is None else manifest.max_fragment_id
    return max(manifest.next_row_id, int(RowAddress.of(highest + 1)))


def _addresses(fragments: FragmentList) -> list[bytes]:
    """The row ids of each fragment: the addresses of its rows."""
    starts = RowAddress.join(fragments.ids, np.zeros(len(fragments), np.int64))
    return encode_ranges(starts, starts + fragments.physical_rows)


def _check(manifest: Manifest) -> None:
    if manifest.stable_row_ids:
        raise CommitConflict("Merge", "Merge", manifest.version, reason="stable row ids are on already")
    if (manifest.max_fragment_id or 0) >= FRAGMENT_ID_MAX:
        raise InvalidRequest(
            "This table has used up its fragment ids: no row id is left above its addresses. Copy its rows into a new "
            "table with write_dataset."
        )
    uncounted = manifest.fragments.ids[manifest.fragments.physical_rows == 0]
    if len(uncounted):
        raise InvalidRequest(
            f"Fragment {int(uncounted[0])} does not say how many rows it has, so they can't get ids. "
            "Compact the table first."
        )
    if any(index.name == _REUSE for index in manifest.indices):
        raise InvalidRequest(
            "A compaction deferred its work on the indices, which still name rows where they were before it. "
            "Run optimize_indices() first, so that addresses can become row ids."
        )
