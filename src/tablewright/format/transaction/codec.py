"""Transactions as bytes: protobuf messages to values and back.

Each kind of operation has one function per direction, listed in two tables. Old spellings are read and never written:
an ungrouped rewrite becomes one group, settings in the old style become the new changes, lists of offsets become
bitmaps.

Format: ``docs/format/transactions.md#messages``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet

from tablewright.errors import CorruptTable
from tablewright.format.proto import transaction_pb2 as pb
from tablewright.format.transaction import rows, settings
from tablewright.format.transaction.values import (
    Append,
    Clone,
    CreateIndex,
    DataOverlay,
    DataReplacement,
    Delete,
    Merge,
    Operation,
    Overwrite,
    Project,
    ReserveFragments,
    Restore,
    Rewrite,
    Transaction,
    UnknownOperation,
    Update,
    UpdateBases,
    UpdateConfig,
    UpdateMemWalState,
)
from tablewright.format.wire import decode_message, encode_length_delimited, encode_message, unknown_of

__all__ = ["decode_transaction", "encode_transaction"]

_FIRST_OPERATION = 100
_LENGTH_DELIMITED = 2

_ARMS: dict[type, str] = {
    Append: "append",
    Delete: "delete",
    Overwrite: "overwrite",
    CreateIndex: "create_index",
    Rewrite: "rewrite",
    Merge: "merge",
    Restore: "restore",
    ReserveFragments: "reserve_fragments",
    Update: "update",
    Project: "project",
    UpdateConfig: "update_config",
    DataReplacement: "data_replacement",
    UpdateMemWalState: "update_mem_wal_state",
    Clone: "clone",
    UpdateBases: "update_bases",
    DataOverlay: "data_overlay",
}
_RAW_ARMS: dict[str, type[UpdateMemWalState] | type[DataOverlay]] = {
    "update_mem_wal_state": UpdateMemWalState,
    "data_overlay": DataOverlay,
}
_ENCODERS: dict[type, Callable[[Any], Any]] = {**rows.ENCODERS, **settings.ENCODERS}
_DECODERS: dict[str, Callable[[Any, str], Operation]] = {**rows.DECODERS, **settings.DECODERS}


def encode_transaction(transaction: Transaction) -> bytes:
    """The transaction as a protobuf message: the bytes of its file, and of the section in the manifest file."""
    return encode_message(f"Transaction {transaction.uuid}", lambda: _to_message(transaction))


def decode_transaction(data: bytes, path: str) -> Transaction:
    """The transaction in ``data``. ``path`` names the file that the bytes come from.

    Raises :class:`CorruptTable` for what is no transaction, and :class:`UnsupportedFeature` for fragments whose rows
    are kept in a way that we can't read.
    """
    message = decode_message(pb.Transaction, data, path, "the transaction")
    arm = message.WhichOneof("operation")
    unknown = unknown_of(message)
    operation: Operation
    if arm is None:
        operation, unknown = _unknown_operation(message, path)
    elif arm in _RAW_ARMS:
        operation = _RAW_ARMS[arm](raw=getattr(message, arm))
    else:
        operation = _DECODERS[arm](getattr(message, arm), path)
    return Transaction(
        read_version=message.read_version,
        uuid=message.uuid,
        operation=operation,
        properties=dict(message.transaction_properties),
        tag=message.tag,
        unknown=unknown,
    )


def _to_message(transaction: Transaction) -> pb.Transaction:
    message = pb.Transaction(
        read_version=transaction.read_version,
        uuid=transaction.uuid,
        tag=transaction.tag,
        transaction_properties=dict(transaction.properties) or None,
    )
    operation = transaction.operation
    match operation:
        case UnknownOperation():
            message.MergeFromString(encode_length_delimited(operation.field_number, operation.raw))
        case UpdateMemWalState() | DataOverlay():
            setattr(message, _ARMS[type(operation)], operation.raw)
        case _:
            arm = getattr(message, _ARMS[type(operation)])
            arm.CopyFrom(_ENCODERS[type(operation)](operation))
            arm.MergeFromString(operation.unknown)
            arm.SetInParent()
    message.MergeFromString(transaction.unknown)
    return message


def _unknown_operation(message: pb.Transaction, path: str) -> tuple[UnknownOperation, bytes]:
    """The operation of a kind that we do not know, and the other unknown fields."""
    strangers = [one for one in UnknownFieldSet(message) if one.field_number >= _FIRST_OPERATION]
    if len(strangers) != 1 or strangers[0].wire_type != _LENGTH_DELIMITED:
        raise CorruptTable(path, ("the transaction has no operation",))
    operation = UnknownOperation(field_number=strangers[0].field_number, raw=bytes(strangers[0].data))
    rest = pb.Transaction()
    rest.MergeFromString(
        unknown_of(message).replace(encode_length_delimited(operation.field_number, operation.raw), b"", 1)
    )
    return operation, unknown_of(rest)
