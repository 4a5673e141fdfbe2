"""The bytes of a transaction as they are stored: without long row ids and versions that the manifest has, too.

Fragments that stay, and those of a rewrite, have their row lineage in the manifests before and after: no reader needs
it in the transaction.

Tests: ``tests/unit/transaction/test_encoded.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tablewright.format.fragment import Fragment
from tablewright.format.transaction import Delete, Rewrite, RewriteGroup, Transaction, Update, encode_transaction
from tablewright.transaction.lineage import without_lineage

__all__ = ["encoded"]


def encoded(transaction: Transaction, lineage_bytes_max: int) -> bytes:
    """The bytes of a transaction; with more lineage than that, the lineage is left out."""
    match transaction.operation:
        case Delete() | Update() as operation if _lineage_bytes(operation.updated_fragments) > lineage_bytes_max:
            stays = tuple(map(without_lineage, operation.updated_fragments))
            return encode_transaction(replace(transaction, operation=replace(operation, updated_fragments=stays)))
        case Rewrite() as operation if sum(map(_bytes_of_group, operation.groups)) > lineage_bytes_max:
            groups = tuple(map(_short, operation.groups))
            return encode_transaction(replace(transaction, operation=replace(operation, groups=groups)))
        case _:
            return encode_transaction(transaction)


def _lineage_bytes(fragments: Iterable[Fragment]) -> int:
    sequences = (data for f in fragments for data in (f.row_ids, f.created_at, f.last_updated_at) if data is not None)
    return sum(map(len, sequences))


def _bytes_of_group(group: RewriteGroup) -> int:
    return _lineage_bytes(group.old_fragments) + _lineage_bytes(group.new_fragments)


def _short(group: RewriteGroup) -> RewriteGroup:
    return replace(
        group,
        old_fragments=tuple(map(without_lineage, group.old_fragments)),
        new_fragments=tuple(map(without_lineage, group.new_fragments)),
    )
