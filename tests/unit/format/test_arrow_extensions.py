"""Extension types become metadata and come back, also those that a user registered."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.format.arrow_extensions import metadata_of, with_extension_types

NAME, DETAILS = b"ARROW:extension:name", b"ARROW:extension:metadata"


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        (pa.field("x", pa.int8()), {}),
        (pa.field("x", pa.int8(), metadata={"a": "b"}), {b"a": b"b"}),
        (pa.field("x", pa.uuid()), {NAME: b"arrow.uuid", DETAILS: b""}),
        (pa.field("x", pa.uuid(), metadata={"a": "b"}), {b"a": b"b", NAME: b"arrow.uuid", DETAILS: b""}),
        (pa.field("x", pa.json_(pa.string())), {NAME: b"arrow.json", DETAILS: b""}),
    ],
    ids=str,
)
def test_metadata_of_a_field(field: pa.Field, expected: dict[bytes, bytes]) -> None:
    assert metadata_of(field) == expected


def test_known_types_come_back_and_others_stay_metadata() -> None:
    plain = pa.schema(
        [
            pa.field("known", pa.binary(16), metadata={NAME: b"arrow.uuid", DETAILS: b""}),
            pa.field("unknown", pa.int8(), metadata={NAME: b"ours.money", DETAILS: b"EUR"}),
            pa.field("wrong", pa.int8(), metadata={NAME: b"arrow.uuid", DETAILS: b""}),
        ],
        metadata={"about": "it"},
    )
    typed = with_extension_types(plain)
    assert typed.types == [pa.uuid(), pa.int8(), pa.int8()]
    assert typed.field("unknown").metadata == plain.field("unknown").metadata
    assert typed.field("wrong").metadata == plain.field("wrong").metadata
    assert typed.metadata == {b"about": b"it"}
