"""Binary rows: the golden keys, odd shapes of arrays, what is refused, and single rows both ways."""

from __future__ import annotations

import datetime as dt
import json
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.unit.paimon.format.bucket_model import slow_row

from tablewright.errors import CorruptTable, InvalidRequest
from tablewright.paimon.format.binary_row import (
    decode_partition,
    decode_row,
    encode_partition,
    encode_row,
    encode_rows,
)
from tablewright.paimon.format.key_hash import hash_keys, hash_rows
from tablewright.paimon.format.murmur import hash_row

GOLDEN = json.loads((Path(__file__).parents[3] / "golden" / "paimon" / "golden.json").read_text())
CASES = {case["key"]: case for case in GOLDEN["key_hashes"]["cases"]}
NEW_YEAR = dt.datetime(2024, 1, 1)
KINDS = {
    "int": pa.int32(), "bigint": pa.int64(), "smallint": pa.int16(), "tinyint": pa.int8(), "string": pa.string(),
    "double": pa.float64(), "boolean": pa.bool_(),
}  # fmt: skip
SPECIAL: dict[str, tuple[pa.DataType, Any]] = {
    "boolean true": (pa.bool_(), True),
    "date 2024-01-01 (19723)": (pa.date32(), NEW_YEAR.date()),
    "timestamp(3) 2024-01-01T00:00:00": (pa.timestamp("ms"), NEW_YEAR),
    "timestamp(6) 2024-01-01T00:00:00.000001": (pa.timestamp("us"), NEW_YEAR.replace(microsecond=1)),
    "decimal(10,2) 123.45": (pa.decimal128(10, 2), Decimal("123.45")),
    "decimal(20,2) 123.45": (pa.decimal128(20, 2), Decimal("123.45")),
    "binary 010203": (pa.binary(), b"\1\2\3"),
}


def fields_of(key: str) -> list[tuple[pa.DataType, Any]]:
    """The fields that a golden file describes in words: ``(int 1, string 'a')``."""
    if key == "empty row":
        return []
    if key in SPECIAL:
        return [SPECIAL[key]]
    fields = []
    for text in key.strip("()").split(", "):
        name, value = text.split(" ", 1)
        fields.append((KINDS[name], None if value == "null" else value[1:-1] if value[0] == "'" else json.loads(value)))
    return fields


@pytest.mark.parametrize("key", CASES)
def test_golden_keys(key: str) -> None:
    fields, case = fields_of(key), CASES[key]
    types, values = [kind for kind, _ in fields], [value for _, value in fields]
    row = bytes.fromhex(case["binary_row_hex"])
    # One of many rows, so that it does not begin where its array does.
    batch = pa.RecordBatch.from_arrays(
        [pa.array([None, value, value], kind) for kind, value in fields] or [pa.nulls(3)],
        [f"f{number}" for number in range(len(fields))] or ["none"],
    ).slice(1)
    rows = encode_rows(batch if fields else batch.select([]))
    assert rows.to_arrow().to_pylist() == [row, row]
    assert hash_rows(rows).tolist() == [case["hash_int32"]] * 2
    assert hash_row(row) == case["hash_int32"]
    assert encode_row(values, types) == row == slow_row(values, types)
    assert decode_row(row, types) == tuple(values)


def test_golden_has_all_keys() -> None:
    assert len(CASES) == 36


def test_arrays_of_any_shape_give_the_same_rows() -> None:
    texts = ["", "a", "1234567", "12345678", None, "hello wörld, a long one", "x" * 100] * 3
    plain = pa.array(texts)
    expected = [slow_row([text], [pa.string()]) for text in texts]
    hashes = [hash_row(row) for row in expected]
    padded = pa.array(["before", *texts, "behind"])
    shapes = {
        "plain": plain,
        "sliced": padded.slice(1, len(texts)),
        "large": plain.cast(pa.large_string()),
        "view": plain.cast(pa.string_view()),
        "dictionary": plain.dictionary_encode(),
        "binary": plain.cast(pa.binary()),
        "large binary": plain.cast(pa.large_binary()),
        "binary view": plain.cast(pa.binary()).cast(pa.binary_view()),
    }
    for name, array in shapes.items():
        rows = encode_rows(pa.record_batch({"key": array}))
        assert rows.to_arrow().to_pylist() == expected, name
        assert hash_keys([array]).tolist() == hashes, name
    chunks = pa.chunked_array([plain.slice(0, 2), plain.slice(2, 0), plain.slice(2, 9), plain.slice(11)])
    numbers = pa.chunked_array([pa.array(range(5)), pa.array(range(5, len(texts)))])
    together = hash_keys({"text": chunks, "number": numbers})
    kinds = [pa.string(), pa.int64()]
    assert together.tolist() == [hash_row(slow_row(row, kinds)) for row in zip(texts, range(len(texts)), strict=True)]
    fixed = pa.array([b"123", None, b"abc"], pa.binary(3))
    assert encode_rows(pa.record_batch({"k": fixed})).to_arrow().to_pylist() == [
        slow_row([value], [pa.binary()]) for value in (b"123", None, b"abc")
    ]


def test_what_lies_under_a_null_is_not_hashed() -> None:
    offsets, data = pa.py_buffer(struct.pack("<3i", 0, 20, 40)), pa.py_buffer(b"x" * 40)
    hidden = pa.Array.from_buffers(pa.string(), 2, [pa.py_buffer(b"\x02"), offsets, data])
    assert hash_keys([hidden]).tolist() == hash_keys([pa.array([None, "x" * 20])]).tolist()
    number = pa.Array.from_buffers(pa.int64(), 1, [pa.py_buffer(b"\0"), pa.py_buffer(struct.pack("<q", 9))])
    assert hash_keys([number]).tolist() == hash_keys([pa.array([None], pa.int64())]).tolist()


@pytest.mark.parametrize("count", [55, 56, 57, 119, 120, 121])
def test_rows_of_many_fields(count: int) -> None:
    kinds = [pa.int32(), pa.string(), pa.timestamp("us")] * (count // 3 + 1)
    values = [(7, "a text that is long", NEW_YEAR), (None, None, None)]
    kinds = kinds[:count]
    rows = [[(one if index % 2 else values[1])[index % 3] for index in range(count)] for one in values]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, [f"c{number}" for number in range(count)])
    encoded = encode_rows(batch).to_arrow().to_pylist()
    assert encoded == [slow_row(row, kinds) for row in rows]
    assert hash_keys(batch).tolist() == [hash_row(row) for row in encoded]
    assert [decode_row(row, kinds) for row in encoded] == [tuple(row) for row in rows]


def test_nulls_in_the_first_of_two_words_only() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([n or None, 1]) for n in range(60)], [f"c{n}" for n in range(60)])
    expected = [slow_row([n or None for n in range(60)], [pa.int64()] * 60), slow_row([1] * 60, [pa.int64()] * 60)]
    assert encode_rows(batch).to_arrow().to_pylist() == expected
    assert hash_keys(batch).tolist() == [hash_row(row) for row in expected]


def test_wide_decimals_have_as_few_bytes_as_possible() -> None:
    kind = pa.decimal128(38, 0)
    edges = [
        edge + step
        for size in range(1, 16)
        for edge in (1 << 8 * size - 1, -(1 << 8 * size - 1))
        for step in (-1, 0, 1)
    ]
    values = [Decimal(number) for number in (0, *edges, 10**38 - 1, 1 - 10**38)]
    rows = encode_rows(pa.record_batch({"d": pa.array(values, kind)})).to_arrow().to_pylist()
    assert rows == [slow_row([value], [kind]) for value in values]
    assert [decode_row(row, [kind])[0] for row in rows] == values


def test_moments_before_1970_are_rounded_down() -> None:
    moment = pa.array([-1], pa.timestamp("us"))
    assert encode_rows(pa.record_batch({"t": moment})).to_arrow()[0].as_py()[8:] == struct.pack("<IIq", 999_000, 16, -1)
    compact = encode_rows(pa.record_batch({"t": moment}), [pa.timestamp("ms")]).to_arrow()[0].as_py()
    assert compact[8:] == struct.pack("<q", -1)
    nanos = pa.array([-1], pa.timestamp("ns"))
    assert encode_rows(pa.record_batch({"t": nanos})).to_arrow()[0].as_py()[8:] == struct.pack("<IIq", 999_999, 16, -1)
    seconds = pa.array([-1], pa.timestamp("s"))
    assert encode_rows(pa.record_batch({"t": seconds})).to_arrow()[0].as_py()[8:] == struct.pack("<q", -1000)


def test_types_of_the_table_decide() -> None:
    micros = pa.array([1_500_001], pa.timestamp("us", "UTC"))
    wide = [("ms", struct.pack("<q", 1500)), ("ns", struct.pack("<IIq", 1000, 16, 1500))]
    for unit, expected in wide:
        assert encode_rows(pa.record_batch({"t": micros}), [pa.timestamp(unit)]).to_arrow()[0].as_py()[8:] == expected
    time = pa.array([1_999_999], pa.time64("us"))
    times = [time, time.cast(pa.time64("ns"))]
    for array in times:
        assert encode_rows(pa.record_batch({"t": array})).to_arrow()[0].as_py()[8:] == struct.pack("<q", 1999)
    assert hash_keys([pa.array([2], pa.int32())], [pa.int8()]).tolist() == hash_keys([pa.array([2])]).tolist()
    assert hash_keys([pa.array([86_400_000], pa.date64())]).tolist() == hash_keys([pa.array([1], pa.date32())]).tolist()
    wide_decimal = pa.array([Decimal("1.50")], pa.decimal256(20, 2))
    assert hash_keys([wide_decimal]).tolist() == hash_keys([wide_decimal.cast(pa.decimal128(20, 2))]).tolist()
    with pytest.raises(InvalidRequest, match=r"'id' of type int32 can't be a key of type int8"):
        hash_keys({"id": pa.array([300], pa.int32())}, [pa.int8()])
    with pytest.raises(InvalidRequest, match="1 columns and 2 types"):
        hash_keys([pa.array([1])], [pa.int8(), pa.int8()])


@pytest.mark.parametrize(
    "kind",
    [
        pa.uint8(), pa.uint64(), pa.float16(), pa.null(), pa.duration("s"), pa.decimal256(39, 2), pa.list_(pa.int8()),
        pa.map_(pa.int8(), pa.int8()), pa.struct([("a", pa.int8())]), pa.dictionary(pa.int8(), pa.uint8()),
        pa.month_day_nano_interval(),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("rows", [0, 2])
def test_columns_that_are_no_keys_are_refused(kind: pa.DataType, rows: int) -> None:
    with pytest.raises(InvalidRequest, match=r"Column 'odd' of type .* can't be part of a Paimon key"):
        hash_keys({"id": pa.array([1] * rows, pa.int64()), "odd": pa.nulls(rows, kind)})
    with pytest.raises(InvalidRequest, match="Field 1"):
        decode_row(bytes(24), [pa.int64(), kind])


def test_decimals_of_too_many_digits_are_refused() -> None:
    data = struct.pack("<QQ", 5, 1)
    array = pa.Array.from_buffers(pa.decimal128(18, 0), 1, [None, pa.py_buffer(data)])
    with pytest.raises(InvalidRequest, match="more digits"):
        hash_keys([array])


def test_partitions() -> None:
    types = [pa.string(), pa.date32(), pa.timestamp("us", "UTC"), pa.decimal128(30, 2)]
    for values in (
        ("eu", NEW_YEAR.date(), NEW_YEAR.replace(tzinfo=dt.UTC), Decimal("-12.34")),
        (None, None, None, None),
    ):
        stored = encode_partition(values, types)
        assert stored[:4] == b"\0\0\0\4" and stored[4:] == slow_row(values, types)
        assert decode_partition(stored, types) == values
    assert encode_partition((), ()) == bytes(12) and decode_partition(bytes(12), ()) == ()
    # pypaimon leaves the tails of nulls out; both are read.
    assert decode_row(bytes([0, 15 << 0, *[0] * 38]), types) == (None,) * 4
    with pytest.raises(InvalidRequest, match="2 values"):
        encode_row((1, 2), [pa.int8()])
    with pytest.raises(InvalidRequest, match="not of the types int8"):
        encode_row((1000,), [pa.int8()])


def corrupt() -> dict[str, tuple[bytes, pa.DataType]]:
    def slot(*parts: bytes) -> bytes:
        return bytes(8) + b"".join(parts)

    def pointer(size: int, offset: int) -> bytes:
        return struct.pack("<II", size, offset)

    return {
        "nothing": (b"", pa.int8()),
        "too short": (bytes(8), pa.int8()),
        "no whole words": (bytes(17), pa.int8()),
        "kind of row": (b"\4" + bytes(15), pa.int8()),
        "beyond the end": (slot(pointer(9, 16), bytes(8)), pa.string()),
        "within the slots": (slot(pointer(8, 8), bytes(8)), pa.string()),
        "not aligned": (slot(pointer(8, 17), bytes(16)), pa.binary()),
        "long inline": (slot(bytes(7), b"\x88"), pa.binary()),
        "no utf-8": (slot(b"\xff".ljust(7, b"\0"), b"\x81"), pa.string()),
        "empty decimal": (slot(pointer(0, 16), bytes(16)), pa.decimal128(20, 0)),
        "long decimal": (slot(pointer(17, 16), bytes(24)), pa.decimal128(20, 0)),
        "digits": (slot(struct.pack("<q", 100)), pa.decimal128(2, 0)),
        "wide digits": (slot(pointer(16, 16), b"\x7f" * 16), pa.decimal128(20, 0)),
        "nanoseconds": (slot(pointer(1_000_000, 16), bytes(8)), pa.timestamp("us")),
        "far moment": (slot(struct.pack("<q", 2**62)), pa.timestamp("ms")),
        "farther moment": (slot(pointer(0, 16), struct.pack("<q", 2**62)), pa.timestamp("us")),
        "far day": (slot(struct.pack("<q", 2**31 - 1)), pa.date32()),
        "time of day": (slot(struct.pack("<i", 90_000_000), bytes(4)), pa.time32("ms")),
    }


@pytest.mark.parametrize("name", corrupt())
def test_bytes_that_are_no_row(name: str) -> None:
    data, kind = corrupt()[name]
    with pytest.raises(CorruptTable, match="manifest-7") as caught:
        decode_row(data, [kind], "manifest-7")
    assert caught.value.path == "manifest-7"


def test_partitions_of_another_table() -> None:
    for data in (b"", b"\0\0\0", bytes(12), encode_partition((1, 2), (pa.int8(), pa.int8()))):
        with pytest.raises(CorruptTable, match="manifest-7"):
            decode_partition(data, [pa.int8()], "manifest-7")
