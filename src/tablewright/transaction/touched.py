"""What an operation touches: fragments, fields, keys. Pure functions for the conflict rules."""

from __future__ import annotations

from collections.abc import Iterable

from tablewright.format.fragment import TOMBSTONE, Fragment, FragmentList
from tablewright.format.index import IndexMetadata
from tablewright.format.row_set import RowSet
from tablewright.format.schema import Schema
from tablewright.format.transaction import (
    DataReplacement,
    Delete,
    MapUpdate,
    Merge,
    Operation,
    Rewrite,
    Update,
    UpdateConfig,
    UpdateMode,
)

__all__ = [
    "changed_config_keys",
    "changed_fragments",
    "covered_fragments",
    "dropped_fields",
    "patched_offsets",
    "removed_fragments",
    "replaced_fields",
    "updated_by_id",
]


def _ids(fragments: Iterable[Fragment]) -> frozenset[int]:
    if isinstance(fragments, FragmentList):
        return frozenset(fragments.ids.tolist())
    return frozenset(fragment.id for fragment in fragments)


def removed_fragments(operation: Operation) -> frozenset[int]:
    """Ids of existing fragments that this operation takes out of the table."""
    match operation:
        case Delete():
            return frozenset(operation.deleted_fragment_ids)
        case Update():
            return frozenset(operation.removed_fragment_ids)
        case Rewrite():
            return frozenset().union(*(_ids(group.old_fragments) for group in operation.groups))
        case _:
            return frozenset()


def updated_by_id(operation: Operation) -> dict[int, Fragment]:
    """The new metadata of existing fragments that this operation keeps but changes."""
    match operation:
        case Delete() | Update():
            return {fragment.id: fragment for fragment in operation.updated_fragments}
        case _:
            return {}


def changed_fragments(operation: Operation) -> frozenset[int]:
    """Ids of existing fragments that this operation removes or changes."""
    match operation:
        case DataReplacement():
            return frozenset(replacement.fragment_id for replacement in operation.replacements)
        case Merge():
            return _ids(operation.fragments)
        case _:
            return removed_fragments(operation) | frozenset(updated_by_id(operation))


def patched_offsets(operation: Operation) -> dict[int, RowSet | None]:
    """Rows whose columns this operation changed in place, per fragment; ``None`` if it does not say which."""
    match operation:
        case DataReplacement():
            return dict.fromkeys(changed_fragments(operation))
        case Update() if operation.update_mode == UpdateMode.REWRITE_COLUMNS:
            known = operation.updated_fragment_offsets
            return {id: known.get(id) for id in updated_by_id(operation)}
        case _:
            return {}


def replaced_fields(operation: DataReplacement) -> dict[int, frozenset[int]]:
    """Field ids whose column files are replaced, per fragment."""
    fields: dict[int, frozenset[int]] = {}
    for replacement in operation.replacements:
        live = frozenset(field for field in replacement.new_file.fields if field != TOMBSTONE)
        fields[replacement.fragment_id] = fields.get(replacement.fragment_id, frozenset()) | live
    return fields


def dropped_fields(wanted: Iterable[int], schema: Schema) -> frozenset[int]:
    """Those of ``wanted`` field ids that ``schema`` no longer has."""
    return frozenset(wanted) - schema.ids


def covered_fragments(index: IndexMetadata) -> frozenset[int] | None:
    """Fragments that an index covers; ``None`` if it does not say."""
    return None if index.coverage is None else frozenset(index.coverage)


def _keys(update: MapUpdate | None) -> frozenset[str]:
    return frozenset() if update is None else frozenset(update.entries)


def changed_config_keys(operation: UpdateConfig) -> frozenset[tuple[str, str]]:
    """Every key of the table's config or metadata that is written or removed, qualified by its map.

    A replaced map touches all its keys, which is written as the key ``*``.
    """
    maps = {"config": operation.config_updates, "table": operation.table_metadata_updates}
    keys = {(name, key) for name, update in maps.items() for key in _keys(update)}
    keys |= {(name, "*") for name, update in maps.items() if update is not None and update.replace}
    return frozenset(keys)
