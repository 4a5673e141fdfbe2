from __future__ import annotations

from typing import Any

import pytest

from tablewright.errors import CorruptTable
from tablewright.format.proto import transaction_pb2 as pb
from tablewright.format.transaction import (
    MapUpdate,
    Operation,
    UpdateConfig,
    decode_transaction,
)


def _operation(**arm: Any) -> Operation:
    return decode_transaction(pb.Transaction(uuid="u", **arm).SerializeToString(), "x").operation


def test_settings_in_the_old_style() -> None:
    old = pb.UpdateConfig(
        upsert_values={"a": "1"},
        delete_keys=["b"],
        schema_metadata={"s": "2"},
        field_metadata={3: pb.OldFieldMetadata(metadata={"f": "4"})},
    )
    assert _operation(update_config=old) == UpdateConfig(
        config_updates=MapUpdate(entries={"a": "1", "b": None}),
        schema_metadata_updates=MapUpdate(entries={"s": "2"}, replace=True),
        field_metadata_updates={3: MapUpdate(entries={"f": "4"}, replace=True)},
    )


def test_settings_in_both_styles_are_corrupt() -> None:
    both = pb.UpdateConfig(upsert_values={"a": "1"}, config_updates=pb.MapUpdate())
    with pytest.raises(CorruptTable, match="mixes the old and the new style"):
        _operation(update_config=both)
