from __future__ import annotations

from typing import Any

from tablewright.format.proto import transaction_pb2 as pb
from tablewright.format.transaction import (
    Operation,
    Rewrite,
    Update,
    decode_transaction,
)


def _operation(**arm: Any) -> Operation:
    return decode_transaction(pb.Transaction(uuid="u", **arm).SerializeToString(), "x").operation


def test_an_ungrouped_rewrite_is_one_group() -> None:
    message = pb.Rewrite(old_fragments=[{"id": 1}], new_fragments=[{"id": 2}])
    operation = _operation(rewrite=message)
    assert isinstance(operation, Rewrite)
    (group,) = operation.groups
    assert [one.id for one in group.old_fragments] == [1]
    assert [one.id for one in group.new_fragments] == [2]


def test_lists_of_offsets_become_bitmaps() -> None:
    operation = _operation(update=pb.Update(updated_fragment_offsets={4: pb.OffsetList(values=[7, 2])}))
    assert isinstance(operation, Update)
    assert list(operation.updated_fragment_offsets[4]) == [2, 7]
