"""Codecs of the operations that change no rows: schema, indices, settings, versions, base paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tablewright.errors import CorruptTable
from tablewright.format.index import index_from_message, index_to_message
from tablewright.format.manifest_codec import base_path_from_message, base_path_to_message
from tablewright.format.proto import transaction_pb2 as pb
from tablewright.format.schema import schema_from_proto, schema_to_proto
from tablewright.format.transaction.values import (
    Clone,
    CreateIndex,
    MapUpdate,
    Project,
    ReserveFragments,
    Restore,
    UpdateBases,
    UpdateConfig,
)
from tablewright.format.wire import unknown_of

__all__ = ["DECODERS", "ENCODERS"]

_OLD_CONFIG = ("upsert_values", "delete_keys", "schema_metadata", "field_metadata")
_NEW_CONFIG = ("config_updates", "table_metadata_updates", "schema_metadata_updates", "field_metadata_updates")


def _encode_create_index(value: CreateIndex) -> pb.CreateIndex:
    return pb.CreateIndex(
        new_indices=[index_to_message(index) for index in value.new_indices],
        removed_indices=[index_to_message(index) for index in value.removed_indices],
    )


def _decode_create_index(message: pb.CreateIndex, path: str) -> CreateIndex:
    return CreateIndex(
        new_indices=tuple(index_from_message(index, path) for index in message.new_indices),
        removed_indices=tuple(index_from_message(index, path) for index in message.removed_indices),
        unknown=unknown_of(message),
    )


def _encode_project(value: Project) -> pb.Project:
    return pb.Project(schema=schema_to_proto(value.schema), preserves_nullability=value.preserves_nullability)


def _decode_project(message: pb.Project, path: str) -> Project:
    return Project(
        schema=schema_from_proto(message.schema, {}, path),
        preserves_nullability=message.preserves_nullability,
        unknown=unknown_of(message),
    )


def _encode_restore(value: Restore) -> pb.Restore:
    return pb.Restore(version=value.version)


def _decode_restore(message: pb.Restore, path: str) -> Restore:
    return Restore(version=message.version, unknown=unknown_of(message))


def _encode_reserve(value: ReserveFragments) -> pb.ReserveFragments:
    return pb.ReserveFragments(num_fragments=value.num_fragments)


def _decode_reserve(message: pb.ReserveFragments, path: str) -> ReserveFragments:
    return ReserveFragments(num_fragments=message.num_fragments, unknown=unknown_of(message))


# --------------------------------------------------------------------------------------------------------- settings


def _encode_config(value: UpdateConfig) -> pb.UpdateConfig:
    message = pb.UpdateConfig()
    for name in _NEW_CONFIG[:-1]:
        change: MapUpdate | None = getattr(value, name)
        if change is not None:
            getattr(message, name).CopyFrom(_encode_map_update(change))
            getattr(message, name).SetInParent()
    for field_id, change in value.field_metadata_updates.items():
        message.field_metadata_updates[field_id].CopyFrom(_encode_map_update(change))
    return message


def _decode_config(message: pb.UpdateConfig, path: str) -> UpdateConfig:
    present = {field.name for field, _ in message.ListFields()}
    if present.intersection(_OLD_CONFIG):
        if present.intersection(_NEW_CONFIG):
            raise CorruptTable(path, ("the change of settings mixes the old and the new style",))
        return _decode_old_config(message)
    changes = {name: _decode_map_update(getattr(message, name)) for name in _NEW_CONFIG[:-1] if name in present}
    return UpdateConfig(
        **changes,
        field_metadata_updates={
            field_id: _decode_map_update(change) for field_id, change in message.field_metadata_updates.items()
        },
        unknown=unknown_of(message),
    )


def _decode_old_config(message: pb.UpdateConfig) -> UpdateConfig:
    """In the old style settings were changed key by key, metadata always replaced."""
    settings: dict[str, str | None] = {**message.upsert_values, **dict.fromkeys(message.delete_keys)}
    schema = dict(message.schema_metadata)
    return UpdateConfig(
        config_updates=MapUpdate(entries=settings) if settings else None,
        schema_metadata_updates=MapUpdate(entries=schema, replace=True) if schema else None,
        field_metadata_updates={
            field_id: MapUpdate(entries=dict(old.metadata), replace=True)
            for field_id, old in message.field_metadata.items()
        },
        unknown=unknown_of(message),
    )


def _encode_map_update(change: MapUpdate) -> pb.MapUpdate:
    message = pb.MapUpdate(
        update_entries=[pb.MapEntry(key=key, value=value) for key, value in change.entries.items()],
        replace=change.replace,
    )
    message.MergeFromString(change.unknown)
    return message


def _decode_map_update(message: pb.MapUpdate) -> MapUpdate:
    return MapUpdate(
        entries={entry.key: entry.value if entry.HasField("value") else None for entry in message.update_entries},
        replace=message.replace,
        unknown=unknown_of(message),
    )


# ----------------------------------------------------------------------------------------------------------- places


def _encode_clone(value: Clone) -> pb.Clone:
    return pb.Clone(
        is_shallow=value.is_shallow,
        ref_name=value.ref_name,
        ref_version=value.ref_version,
        ref_path=value.ref_path,
        branch_name=value.branch_name,
    )


def _decode_clone(message: pb.Clone, path: str) -> Clone:
    return Clone(
        is_shallow=message.is_shallow,
        ref_name=message.ref_name if message.HasField("ref_name") else None,
        ref_version=message.ref_version,
        ref_path=message.ref_path,
        branch_name=message.branch_name if message.HasField("branch_name") else None,
        unknown=unknown_of(message),
    )


def _encode_bases(value: UpdateBases) -> pb.UpdateBases:
    return pb.UpdateBases(new_bases=[base_path_to_message(base) for base in value.new_bases])


def _decode_bases(message: pb.UpdateBases, path: str) -> UpdateBases:
    return UpdateBases(
        new_bases=tuple(base_path_from_message(base) for base in message.new_bases), unknown=unknown_of(message)
    )


ENCODERS: dict[type, Callable[[Any], Any]] = {
    CreateIndex: _encode_create_index,
    Project: _encode_project,
    Restore: _encode_restore,
    ReserveFragments: _encode_reserve,
    UpdateConfig: _encode_config,
    Clone: _encode_clone,
    UpdateBases: _encode_bases,
}
"""Value to message, by the class of the operation. Its unknown fields are put back by the caller."""

DECODERS: dict[str, Callable[[Any, str], Any]] = {
    "create_index": _decode_create_index,
    "project": _decode_project,
    "restore": _decode_restore,
    "reserve_fragments": _decode_reserve,
    "update_config": _decode_config,
    "clone": _decode_clone,
    "update_bases": _decode_bases,
}
"""Message to value, by the name of the operation's field in the transaction."""
