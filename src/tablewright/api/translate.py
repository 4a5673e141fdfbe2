"""Between the user's ``LanceOperation`` objects and the frozen operations of ``format.transaction``, both ways.

Tests: ``tests/unit/api/test_commit_batch.py``, ``tests/differential/test_change_transactions.py``.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from tablewright.api.metadata import DataFile, FragmentMetadata
from tablewright.api.operation import DatasetBasePath, Index, LanceOperation, Transaction
from tablewright.api.schema import LanceSchema
from tablewright.checks import whole_number
from tablewright.errors import InvalidRequest, UnsupportedFeature
from tablewright.format import transaction as values
from tablewright.format.fragment import Fragment
from tablewright.format.manifest import BasePath
from tablewright.format.row_set import RowSet
from tablewright.format.schema import Schema

__all__ = ["from_operation", "from_transaction", "to_operation"]

_MODES = {
    "": values.UpdateMode.REWRITE_ROWS,
    "rewrite_rows": values.UpdateMode.REWRITE_ROWS,
    "rewrite_columns": values.UpdateMode.REWRITE_COLUMNS,
}


def from_transaction(transaction: values.Transaction) -> Transaction:
    """The user's object for a frozen transaction."""
    operation = from_operation(transaction.operation)
    return Transaction(transaction.read_version, operation, transaction.uuid, dict(transaction.properties))


def _fragments(metadata: Any) -> tuple[Fragment, ...]:
    if isinstance(metadata, str | bytes) or not isinstance(metadata, Iterable):
        raise InvalidRequest(f"fragments must be an iterable of FragmentMetadata, got {type(metadata)}.")
    found = tuple(metadata)
    wrong = [item for item in found if not isinstance(item, FragmentMetadata)]
    if wrong:
        raise InvalidRequest(f"fragments must be FragmentMetadata, got {type(wrong[0])}.")
    return tuple(item.to_fragment() for item in found)


def _schema(schema: LanceSchema | pa.Schema) -> Schema:
    if isinstance(schema, LanceSchema):
        return schema.value
    if not isinstance(schema, pa.Schema):
        raise InvalidRequest(f"The operation needs a pyarrow.Schema or a LanceSchema, got {schema!r}.")
    return Schema.from_arrow(schema)


def _map_update(update: LanceOperation.UpdateMap | dict[str, str | None] | None) -> values.MapUpdate | None:
    if update is None:
        return None
    if isinstance(update, dict):
        return values.MapUpdate(entries=dict(update), replace=False)
    return values.MapUpdate(entries=dict(update.updates), replace=update.replace)


def to_operation(operation: Any) -> values.Operation:
    """The frozen operation that a user's object stands for."""
    match operation:
        case LanceOperation.Append():
            return values.Append(fragments=_fragments(operation.fragments))
        case LanceOperation.Overwrite():
            bases = tuple(
                BasePath(id=base.id or position, path=base.path, name=base.name, is_dataset_root=base.is_dataset_root)
                for position, base in enumerate(operation.initial_bases or (), 1)
            )
            fragments = _fragments(operation.fragments)
            return values.Overwrite(fragments=fragments, schema=_schema(operation.new_schema), initial_bases=bases)
        case LanceOperation.Delete():
            return values.Delete(
                updated_fragments=_fragments(operation.updated_fragments),
                deleted_fragment_ids=tuple(operation.deleted_fragment_ids),
                predicate=operation.predicate,
            )
        case LanceOperation.Restore():
            return values.Restore(version=whole_number(operation.version, "version"))
        case LanceOperation.Merge():
            return values.Merge(
                fragments=_fragments(operation.fragments),
                schema=_schema(operation.schema),
                preserves_nullability=operation.preserves_nullability,
            )
        case LanceOperation.Project():
            return values.Project(
                schema=_schema(operation.schema), preserves_nullability=operation.preserves_nullability
            )
        case LanceOperation.Update():
            return _update(operation)
        case LanceOperation.Rewrite():
            return _rewrite(operation)
        case LanceOperation.DataReplacement():
            return values.DataReplacement(
                replacements=tuple(
                    values.DataReplacementGroup(fragment_id=group.fragment_id, new_file=group.new_file.to_value())
                    for group in operation.replacements
                )
            )
        case LanceOperation.CreateIndex():
            return values.CreateIndex(
                new_indices=tuple(index.to_value() for index in operation.new_indices),
                removed_indices=tuple(index.to_value() for index in operation.removed_indices),
            )
        case LanceOperation.UpdateConfig():
            fields = {id: _map_update(update) for id, update in (operation.field_metadata_updates or {}).items()}
            return values.UpdateConfig(
                config_updates=_map_update(operation.config_updates),
                table_metadata_updates=_map_update(operation.table_metadata_updates),
                schema_metadata_updates=_map_update(operation.schema_metadata_updates),
                field_metadata_updates={id: update for id, update in fields.items() if update is not None},
            )
        case LanceOperation.ReserveFragments():
            return values.ReserveFragments(num_fragments=operation.num_fragments)
        case LanceOperation.BaseOperation():
            raise UnsupportedFeature(f"This release does not write {type(operation).__name__} operations.")
        case _:
            raise InvalidRequest(f"operation must be a LanceOperation or a Transaction, got {type(operation)}.")


def _update(operation: LanceOperation.Update) -> values.Update:
    mode = operation.update_mode.lower()
    if mode not in _MODES:
        raise InvalidRequest(f"Unknown update_mode {operation.update_mode!r}: use 'rewrite_rows' or 'rewrite_columns'.")
    if not mode and operation.fields_modified:
        mode = (
            "rewrite_columns"  # the metadata that LanceFragment.update_columns returns are committed without saying so
        )
    return values.Update(
        removed_fragment_ids=tuple(operation.removed_fragment_ids),
        updated_fragments=_fragments(operation.updated_fragments),
        new_fragments=_fragments(operation.new_fragments),
        fields_modified=tuple(operation.fields_modified),
        fields_for_preserving_frag_bitmap=tuple(operation.fields_for_preserving_frag_bitmap),
        update_mode=_MODES[mode],
        updated_fragment_offsets=_row_sets(operation.updated_fragment_offsets or {}),
    )


def _row_sets(offsets: Mapping[int, bytes]) -> dict[int, RowSet]:
    try:
        return {id: RowSet.from_bytes(data) for id, data in offsets.items()}
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"updated_fragment_offsets must hold the bytes of Roaring bitmaps: {error}.") from error


def _rewrite(operation: LanceOperation.Rewrite) -> values.Rewrite:
    groups = tuple(
        values.RewriteGroup(
            old_fragments=_fragments(group.old_fragments), new_fragments=_fragments(group.new_fragments)
        )
        for group in operation.groups
    )
    indices = tuple(
        values.RewrittenIndex(
            old_id=uuids.UUID(index.old_id),
            new_id=uuids.UUID(index.new_id),
            details_type_url=index.new_details_type_url or None,
            details_value=index.new_details_value,
            new_index_version=index.new_index_version,
        )
        for index in operation.rewritten_indices
    )
    return values.Rewrite(groups=groups, rewritten_indices=indices)


def _metadata(fragments: Iterable[Fragment]) -> list[FragmentMetadata]:
    return [FragmentMetadata.of(fragment) for fragment in fragments]


def _update_map(update: values.MapUpdate | None) -> LanceOperation.UpdateMap | None:
    return None if update is None else LanceOperation.UpdateMap(dict(update.entries), update.replace)


def from_operation(operation: values.Operation) -> LanceOperation.BaseOperation:
    """The user's object for a frozen operation."""
    match operation:
        case values.Append():
            return LanceOperation.Append(_metadata(operation.fragments))
        case values.Overwrite():
            bases = [DatasetBasePath(b.path, b.name, b.is_dataset_root, b.id) for b in operation.initial_bases]
            return LanceOperation.Overwrite(
                LanceSchema(operation.schema), _metadata(operation.fragments), bases or None
            )
        case values.Delete():
            updated = _metadata(operation.updated_fragments)
            return LanceOperation.Delete(updated, list(operation.deleted_fragment_ids), operation.predicate)
        case values.Restore():
            return LanceOperation.Restore(operation.version)
        case values.Merge():
            schema = LanceSchema(operation.schema)
            return LanceOperation.Merge(_metadata(operation.fragments), schema, operation.preserves_nullability)
        case values.Project():
            return LanceOperation.Project(LanceSchema(operation.schema), operation.preserves_nullability)
        case values.Update(updated_fragment_offsets=offsets):
            return LanceOperation.Update(
                removed_fragment_ids=list(operation.removed_fragment_ids),
                updated_fragments=_metadata(operation.updated_fragments),
                new_fragments=_metadata(operation.new_fragments),
                fields_modified=list(operation.fields_modified),
                fields_for_preserving_frag_bitmap=list(operation.fields_for_preserving_frag_bitmap),
                update_mode=operation.update_mode.name.lower(),
                updated_fragment_offsets={id: rows.to_bytes() for id, rows in offsets.items()} or None,
            )
        case values.Rewrite():
            return LanceOperation.Rewrite(
                [
                    LanceOperation.RewriteGroup(_metadata(g.old_fragments), _metadata(g.new_fragments))
                    for g in operation.groups
                ],
                [
                    LanceOperation.RewrittenIndex(
                        str(i.old_id), str(i.new_id), i.details_type_url or "", i.details_value, i.new_index_version
                    )
                    for i in operation.rewritten_indices
                ],
            )
        case values.DataReplacement():
            return LanceOperation.DataReplacement(
                [
                    LanceOperation.DataReplacementGroup(group.fragment_id, DataFile.of(group.new_file))
                    for group in operation.replacements
                ]
            )
        case values.CreateIndex():
            new, removed = operation.new_indices, operation.removed_indices
            return LanceOperation.CreateIndex(
                [Index.of(index) for index in new], [Index.of(index) for index in removed]
            )
        case values.UpdateConfig():
            fields = {
                id: LanceOperation.UpdateMap(dict(u.entries), u.replace)
                for id, u in operation.field_metadata_updates.items()
            }
            return LanceOperation.UpdateConfig(
                _update_map(operation.config_updates),
                _update_map(operation.table_metadata_updates),
                _update_map(operation.schema_metadata_updates),
                fields or None,
            )
        case values.ReserveFragments():
            return LanceOperation.ReserveFragments(operation.num_fragments)
        case _:
            return LanceOperation.Other(type(operation).__name__, operation)
