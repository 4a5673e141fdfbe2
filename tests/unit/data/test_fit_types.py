"""Which types become which, and what the refusal says."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.data.fit_types import adopt, check_fits, fits, refusal
from tablewright.errors import SchemaMismatch
from tablewright.format.schema import Schema

FITS = [
    (pa.int8(), pa.int64()),
    (pa.int64(), pa.int8()),
    (pa.int32(), pa.uint64()),
    (pa.int64(), pa.float64()),
    (pa.int64(), pa.float16()),
    (pa.int64(), pa.decimal128(5, 2)),
    (pa.float64(), pa.float32()),
    (pa.float64(), pa.int64()),
    (pa.decimal128(20, 0), pa.uint64()),
    (pa.decimal128(5, 3), pa.decimal256(50, 1)),
    (pa.decimal128(2, 1), pa.float64()),
    (pa.string(), pa.large_string()),
    (pa.string_view(), pa.string()),
    (pa.binary(), pa.binary(4)),
    (pa.binary(4), pa.large_binary()),
    (pa.date32(), pa.date64()),
    (pa.timestamp("ns"), pa.timestamp("us")),
    (pa.timestamp("ms", "UTC"), pa.timestamp("us", "Asia/Tokyo")),
    (pa.time64("ns"), pa.time32("s")),
    (pa.duration("ms"), pa.duration("ns")),
    (pa.null(), pa.list_(pa.int8(), 2)),
    (pa.string(), pa.json_()),
    (pa.json_(pa.large_string()), pa.json_()),
    (pa.uuid(), pa.binary(16)),
    (pa.dictionary(pa.int32(), pa.string()), pa.large_string()),
    (pa.int8(), pa.dictionary(pa.int32(), pa.int64())),
    (pa.list_(pa.float64()), pa.list_(pa.float32(), 2)),
    (pa.large_list(pa.int8()), pa.list_(pa.int64())),
    (pa.list_(pa.float32(), 2), pa.list_(pa.float64())),
    (pa.struct({"a": pa.int8()}), pa.struct({"a": pa.int64(), "b": pa.string()})),
    (pa.map_(pa.string(), pa.int8()), pa.map_(pa.large_string(), pa.int64())),
]
REFUSED = [
    (pa.int64(), pa.string()),
    (pa.string(), pa.int64()),
    (pa.string(), pa.binary()),
    (pa.float64(), pa.decimal128(5, 2)),
    (pa.timestamp("us"), pa.timestamp("us", "UTC")),
    (pa.timestamp("us", "UTC"), pa.timestamp("us")),
    (pa.date32(), pa.timestamp("us")),
    (pa.time64("us"), pa.duration("us")),
    (pa.list_(pa.float32(), 2), pa.list_(pa.float32(), 3)),
    (pa.list_(pa.string()), pa.list_(pa.float32(), 2)),
    (pa.struct({"c": pa.int8()}), pa.struct({"a": pa.int64()})),
    (pa.bool_(), pa.int8()),
    (pa.int8(), pa.bool_()),
    (pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.int8())),
    (pa.uuid(), pa.json_()),
    (pa.month_day_nano_interval(), pa.duration("ns")),
]


@pytest.mark.parametrize(("own", "wanted"), FITS, ids=str)
def test_types_that_fit(own: pa.DataType, wanted: pa.DataType) -> None:
    assert fits(own, wanted)
    assert refusal(Schema.from_arrow(pa.schema({"x": wanted})), pa.schema({"x": own})) is None
    check_fits(pa.schema({"x": own}), pa.schema({"x": wanted}))


@pytest.mark.parametrize(("own", "wanted"), REFUSED, ids=str)
def test_types_that_do_not(own: pa.DataType, wanted: pa.DataType) -> None:
    assert not fits(own, wanted)
    with pytest.raises(SchemaMismatch, match=r"`x` should have type .* can't be cast to it; "):
        check_fits(pa.schema({"x": own}), pa.schema({"x": wanted}))


def test_a_refusal_says_what_to_do() -> None:
    table = Schema.from_arrow(pa.schema({"id": pa.int64(), "at": pa.timestamp("us", "UTC")}))
    found = refusal(table, pa.schema({"id": pa.string()}))
    assert found is not None and found.differences == (
        "`id` should have type int64 but type was string",
        "cast the column first if that is meant, or change the table's with alter_columns",
    )
    zoned = refusal(table, pa.schema({"at": pa.timestamp("us")}))
    assert zoned is not None and zoned.differences[1].startswith("a timestamp without a zone is no instant")
    unknown = refusal(table, pa.schema({"no": pa.int8()}))
    assert unknown is not None and unknown.differences == ("fields did not match, missing=[], unexpected=[no]",)


def test_only_what_does_not_fit_is_named() -> None:
    table = pa.schema({"s": pa.struct({"a": pa.int64(), "b": pa.list_(pa.float32(), 2), "c": pa.int8()})})
    own = pa.schema({"s": pa.struct({"c": pa.string(), "b": pa.list_(pa.float64()), "a": pa.int8()})})
    adopted = adopt(own, table).field("s").type
    assert [(member.name, member.type) for member in adopted] == [
        ("c", pa.string()),
        ("b", pa.list_(pa.float32(), 2)),
        ("a", pa.int64()),
    ]
    found = refusal(Schema.from_arrow(table), own)
    assert found is not None
    assert found.differences[0] == "`s` had mismatched children: `s.c` should have type int8 but type was string"


EXTENSION = {"ARROW:extension:name": "a.b", "ARROW:extension:metadata": "1"}


def test_an_extension_type_that_pyarrow_does_not_know() -> None:
    """It is in the field's metadata only: plain values take it, another one is refused."""
    named = pa.field("x", pa.int64(), metadata=EXTENSION)
    other = pa.field("x", pa.int32(), metadata=EXTENSION | {"ARROW:extension:name": "c.d"})
    plain = pa.field("x", pa.int32())
    assert refusal(Schema.from_arrow(pa.schema([named])), pa.schema([plain])) is None
    assert refusal(Schema.from_arrow(pa.schema([plain])), pa.schema([named])) is None
    assert refusal(Schema.from_arrow(pa.schema([named])), pa.schema([other])) is not None
