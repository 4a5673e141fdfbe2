from __future__ import annotations

from typing import Any

import pytest
from tests.unit.format.samples import fragment

from tablewright.errors import CorruptTable, InternalError, UnsupportedFeature
from tablewright.format.proto import transaction_pb2 as pb
from tablewright.format.transaction import (
    Append,
    Operation,
    ReserveFragments,
    Restore,
    Rewrite,
    Transaction,
    UnknownOperation,
    Update,
    UpdateMemWalState,
    decode_transaction,
    encode_transaction,
)

STRANGER = b"\xc2\xbb\x01\x03abc"


def _transaction(operation: Operation, **changes: Any) -> Transaction:
    return Transaction(read_version=3, uuid="u", operation=operation, **changes)


def _operation(**arm: Any) -> Operation:
    return decode_transaction(pb.Transaction(uuid="u", **arm).SerializeToString(), "x").operation


def test_operations_without_content_keep_their_kind() -> None:
    for operation in (
        Append(fragments=()),
        Rewrite(groups=()),
        Restore(version=0),
        ReserveFragments(num_fragments=0),
        UpdateMemWalState(),
        UnknownOperation(field_number=150),
    ):
        transaction = _transaction(operation)
        assert decode_transaction(encode_transaction(transaction), "x") == transaction


def test_properties_and_tag() -> None:
    transaction = _transaction(Restore(version=1), properties={"__lance_commit_message": "hi"}, tag="t")
    assert decode_transaction(encode_transaction(transaction), "x") == transaction


def test_equal_values_give_equal_bytes() -> None:
    one = _transaction(Restore(version=1), properties={"a": "1", "b": "2"})
    two = _transaction(Restore(version=1), properties={"b": "2", "a": "1"})
    assert encode_transaction(one) == encode_transaction(two)


def test_a_kind_that_we_do_not_know_is_kept() -> None:
    data = pb.Transaction(read_version=3, uuid="u").SerializeToString() + STRANGER[:0] + b"\xa2\x07\x02hi"
    transaction = decode_transaction(data + b"\x30\x01", "x")
    assert transaction.operation == UnknownOperation(field_number=116, raw=b"hi")
    assert transaction.unknown == b"\x30\x01"
    assert pb.Transaction.FromString(encode_transaction(transaction)) == pb.Transaction.FromString(data + b"\x30\x01")


@pytest.mark.parametrize("data", [b"", b"\x08\x03", b"\x0a\xff", b"\xa0\x07\x05", b"\xa2\x07\x00\xaa\x07\x00"])
def test_no_operation_is_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptTable, match="Corrupt table file x: the transaction"):
        decode_transaction(data, "x")


def test_unknown_fields_survive_at_every_level() -> None:
    message = pb.Transaction.FromString(
        encode_transaction(
            _transaction(
                Update(
                    updated_fragments=(fragment(1),),
                    new_fragments=(fragment(),),
                )
            )
        )
    )
    levels = (message, message.update, message.update.new_fragments[0], message.update.updated_fragments[0].files[0])
    for level in levels:
        level.MergeFromString(STRANGER)
    data = message.SerializeToString()
    assert data.count(STRANGER) == len(levels)
    assert encode_transaction(decode_transaction(data, "x")) == data


def test_broken_parts_are_corrupt() -> None:
    for update in (pb.Update(updated_fragment_offset_bitmaps={1: b"x"}), pb.Update.FromString(b"\x38\x09")):
        with pytest.raises(CorruptTable, match="x: the update can't be decoded"):
            _operation(update=update)
    with pytest.raises(CorruptTable, match="index uuid"):
        _operation(rewrite=pb.Rewrite(rewritten_indices=[{}]))
    with pytest.raises(CorruptTable, match="x: field"):
        _operation(project=pb.Project(schema=[{"id": 1, "name": "a", "parent_id": 9, "logical_type": "int64"}]))
    with pytest.raises(UnsupportedFeature, match="data overlays"):
        _operation(append=pb.Append(fragments=[{"overlays": [b""]}]))


def test_a_value_that_does_not_fit_is_our_mistake() -> None:
    with pytest.raises(InternalError, match="Transaction u can't be encoded"):
        encode_transaction(_transaction(Restore(version=-1)))
