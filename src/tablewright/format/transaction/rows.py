"""Codecs of the operations that change rows: append, delete, overwrite, rewrite, merge, update, data replacement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tablewright.errors import CorruptTable
from tablewright.format.fragment import (
    Fragment,
    FragmentList,
    data_file_from_message,
    data_file_to_message,
    fragment_from_message,
    fragment_to_message,
)
from tablewright.format.index import (
    index_file_from_message,
    index_file_to_message,
    uuid_from_message,
    uuid_to_message,
)
from tablewright.format.manifest_codec import base_path_from_message, base_path_to_message
from tablewright.format.proto import table_pb2 as table_pb
from tablewright.format.proto import transaction_pb2 as pb
from tablewright.format.row_set import RowSet
from tablewright.format.schema import schema_from_proto, schema_to_proto
from tablewright.format.transaction.values import (
    Append,
    BloomFilter,
    DataReplacement,
    DataReplacementGroup,
    Delete,
    KeyExistenceFilter,
    Merge,
    Overwrite,
    Rewrite,
    RewriteGroup,
    RewrittenIndex,
    Update,
    UpdateMode,
)
from tablewright.format.wire import unknown_of

__all__ = ["DECODERS", "ENCODERS"]


def _fragments(messages: Iterable[Any], path: str) -> tuple[Fragment, ...]:
    return tuple(fragment_from_message(message, path) for message in messages)


def _messages(fragments: Iterable[Fragment]) -> list[Any]:
    if isinstance(fragments, FragmentList):
        return [table_pb.Fragment.FromString(data) for data in fragments.raw]
    return [fragment_to_message(fragment) for fragment in fragments]


# --------------------------------------------------------------------------------------- append, delete, overwrite


def _encode_append(value: Append) -> pb.Append:
    return pb.Append(fragments=_messages(value.fragments))


def _decode_append(message: pb.Append, path: str) -> Append:
    return Append(fragments=_fragments(message.fragments, path), unknown=unknown_of(message))


def _encode_delete(value: Delete) -> pb.Delete:
    return pb.Delete(
        updated_fragments=_messages(value.updated_fragments),
        deleted_fragment_ids=value.deleted_fragment_ids,
        predicate=value.predicate,
    )


def _decode_delete(message: pb.Delete, path: str) -> Delete:
    return Delete(
        updated_fragments=_fragments(message.updated_fragments, path),
        deleted_fragment_ids=tuple(message.deleted_fragment_ids),
        predicate=message.predicate,
        unknown=unknown_of(message),
    )


def _encode_overwrite(value: Overwrite) -> pb.Overwrite:
    return pb.Overwrite(
        fragments=_messages(value.fragments),
        schema=schema_to_proto(value.schema),
        schema_metadata=dict(value.schema.metadata),
        config_upsert_values=dict(value.config_upsert_values),
        initial_bases=[base_path_to_message(base) for base in value.initial_bases],
    )


def _decode_overwrite(message: pb.Overwrite, path: str) -> Overwrite:
    return Overwrite(
        fragments=_fragments(message.fragments, path),
        schema=schema_from_proto(message.schema, message.schema_metadata, path),
        config_upsert_values=dict(message.config_upsert_values),
        initial_bases=tuple(base_path_from_message(base) for base in message.initial_bases),
        unknown=unknown_of(message),
    )


# --------------------------------------------------------------------------------------------------- rewrite, merge


def _encode_rewrite(value: Rewrite) -> pb.Rewrite:
    return pb.Rewrite(
        groups=[_encode_group(group) for group in value.groups],
        rewritten_indices=[_encode_rewritten(index) for index in value.rewritten_indices],
    )


def _decode_rewrite(message: pb.Rewrite, path: str) -> Rewrite:
    groups = [
        RewriteGroup(
            old_fragments=_fragments(group.old_fragments, path),
            new_fragments=_fragments(group.new_fragments, path),
            unknown=unknown_of(group),
        )
        for group in message.groups
    ]
    if message.old_fragments or message.new_fragments:
        old, new = _fragments(message.old_fragments, path), _fragments(message.new_fragments, path)
        groups.append(RewriteGroup(old_fragments=old, new_fragments=new))
    return Rewrite(
        groups=tuple(groups),
        rewritten_indices=tuple(_decode_rewritten(index, path) for index in message.rewritten_indices),
        unknown=unknown_of(message),
    )


def _encode_group(group: RewriteGroup) -> pb.RewriteGroup:
    message = pb.RewriteGroup(
        old_fragments=_messages(group.old_fragments), new_fragments=_messages(group.new_fragments)
    )
    message.MergeFromString(group.unknown)
    return message


def _encode_rewritten(index: RewrittenIndex) -> pb.RewrittenIndex:
    message = pb.RewrittenIndex(
        old_id=uuid_to_message(index.old_id),
        new_id=uuid_to_message(index.new_id),
        new_index_version=index.new_index_version,
        new_index_files=[index_file_to_message(file) for file in index.new_index_files],
    )
    if index.details_type_url is not None:
        message.new_index_details.type_url = index.details_type_url
        message.new_index_details.value = index.details_value
        message.new_index_details.SetInParent()
    message.MergeFromString(index.unknown)
    return message


def _decode_rewritten(message: pb.RewrittenIndex, path: str) -> RewrittenIndex:
    has_details = message.HasField("new_index_details")
    return RewrittenIndex(
        old_id=uuid_from_message(message.old_id, path),
        new_id=uuid_from_message(message.new_id, path),
        details_type_url=message.new_index_details.type_url if has_details else None,
        details_value=message.new_index_details.value,
        new_index_version=message.new_index_version,
        new_index_files=tuple(index_file_from_message(file) for file in message.new_index_files),
        unknown=unknown_of(message),
    )


def _encode_merge(value: Merge) -> pb.Merge:
    return pb.Merge(
        fragments=_messages(value.fragments),
        schema=schema_to_proto(value.schema),
        schema_metadata=dict(value.schema.metadata),
        preserves_nullability=value.preserves_nullability,
    )


def _decode_merge(message: pb.Merge, path: str) -> Merge:
    return Merge(
        fragments=_fragments(message.fragments, path),
        schema=schema_from_proto(message.schema, message.schema_metadata, path),
        preserves_nullability=message.preserves_nullability,
        unknown=unknown_of(message),
    )


# ------------------------------------------------------------------------------------------- update, data replacement


def _encode_update(value: Update) -> Any:
    message: Any = pb.Update(
        removed_fragment_ids=value.removed_fragment_ids,
        updated_fragments=_messages(value.updated_fragments),
        new_fragments=_messages(value.new_fragments),
        fields_modified=value.fields_modified,
        compacted_sstables=value.compacted_sstables,
        fields_for_preserving_frag_bitmap=value.fields_for_preserving_frag_bitmap,
        inserted_rows=None if value.inserted_rows is None else _encode_filter(value.inserted_rows),
        updated_fragment_offset_bitmaps={id: rows.to_bytes() for id, rows in value.updated_fragment_offsets.items()}
        or None,
    )
    message.update_mode = int(value.update_mode)
    return message


def _decode_update(message: pb.Update, path: str) -> Update:
    offsets = {fragment: RowSet.of(one.values) for fragment, one in message.updated_fragment_offsets.items()}
    try:
        update_mode = UpdateMode(message.update_mode)
        for fragment, bitmap in message.updated_fragment_offset_bitmaps.items():
            offsets[fragment] = RowSet.from_bytes(bitmap)
    except ValueError as error:
        raise CorruptTable(path, (f"the update can't be decoded: {error}",)) from error
    return Update(
        removed_fragment_ids=tuple(message.removed_fragment_ids),
        updated_fragments=_fragments(message.updated_fragments, path),
        new_fragments=_fragments(message.new_fragments, path),
        fields_modified=tuple(message.fields_modified),
        fields_for_preserving_frag_bitmap=tuple(message.fields_for_preserving_frag_bitmap),
        update_mode=update_mode,
        inserted_rows=_decode_filter(message.inserted_rows) if message.HasField("inserted_rows") else None,
        updated_fragment_offsets=offsets,
        compacted_sstables=tuple(message.compacted_sstables),
        unknown=unknown_of(message),
    )


def _encode_filter(value: KeyExistenceFilter) -> pb.KeyExistenceFilter:
    message = pb.KeyExistenceFilter(field_ids=value.field_ids)
    if value.exact is not None:
        message.exact.key_hashes.extend(value.exact)
        message.exact.SetInParent()
    elif value.bloom is not None:
        bloom = value.bloom
        message.bloom.bitmap = bloom.bitmap
        message.bloom.num_bits = bloom.num_bits
        message.bloom.number_of_items = bloom.number_of_items
        message.bloom.probability = bloom.probability
        message.bloom.MergeFromString(bloom.unknown)
        message.bloom.SetInParent()
    message.MergeFromString(value.unknown)
    return message


def _decode_filter(message: pb.KeyExistenceFilter) -> KeyExistenceFilter:
    arm = message.WhichOneof("keys")
    bloom = message.bloom
    return KeyExistenceFilter(
        field_ids=tuple(message.field_ids),
        exact=tuple(message.exact.key_hashes) if arm == "exact" else None,
        bloom=BloomFilter(
            bitmap=bloom.bitmap,
            num_bits=bloom.num_bits,
            number_of_items=bloom.number_of_items,
            probability=bloom.probability,
            unknown=unknown_of(bloom),
        )
        if arm == "bloom"
        else None,
        unknown=unknown_of(message),
    )


def _encode_replacement(value: DataReplacement) -> pb.DataReplacement:
    return pb.DataReplacement(replacements=[_encode_replaced(group) for group in value.replacements])


def _encode_replaced(group: DataReplacementGroup) -> pb.DataReplacementGroup:
    message = pb.DataReplacementGroup(fragment_id=group.fragment_id, new_file=data_file_to_message(group.new_file))
    message.MergeFromString(group.unknown)
    return message


def _decode_replacement(message: pb.DataReplacement, path: str) -> DataReplacement:
    return DataReplacement(
        replacements=tuple(
            DataReplacementGroup(
                fragment_id=group.fragment_id,
                new_file=data_file_from_message(group.new_file),
                unknown=unknown_of(group),
            )
            for group in message.replacements
        ),
        unknown=unknown_of(message),
    )


ENCODERS: dict[type, Callable[[Any], Any]] = {
    Append: _encode_append,
    Delete: _encode_delete,
    Overwrite: _encode_overwrite,
    Rewrite: _encode_rewrite,
    Merge: _encode_merge,
    Update: _encode_update,
    DataReplacement: _encode_replacement,
}
"""Value to message, by the class of the operation. Its unknown fields are put back by the caller."""

DECODERS: dict[str, Callable[[Any, str], Any]] = {
    "append": _decode_append,
    "delete": _decode_delete,
    "overwrite": _decode_overwrite,
    "rewrite": _decode_rewrite,
    "merge": _decode_merge,
    "update": _decode_update,
    "data_replacement": _decode_replacement,
}
"""Message to value, by the name of the operation's field in the transaction."""
