"""Files of one row are those of the codec, byte for byte, whoever makes them."""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablewright.data import one_row
from tablewright.data.encoder import load_codec
from tablewright.data.one_row import one_row_file

Encode = Callable[[pa.RecordBatch], bytes]

VECTOR = pa.list_(pa.float32(), 5)
KINDS = [
    pa.int8(),
    pa.uint16(),
    pa.int32(),
    pa.uint64(),
    pa.int64(),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.date32(),
    pa.date64(),
    pa.time32("ms"),
    pa.timestamp("us", "UTC"),
    pa.duration("ns"),
    pa.decimal128(38, 3),
    pa.binary(7),
    VECTOR,
    pa.list_(pa.uint8(), 300),
    pa.list_(pa.list_(pa.int16(), 2), 2),
]
OTHERS = [pa.bool_(), pa.string(), pa.binary(), pa.list_(pa.int32()), pa.struct([pa.field("a", pa.int32())]), pa.null()]


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    one_row._kinds.clear()
    yield
    one_row._kinds.clear()


def _codec(version: str) -> Encode:
    session = load_codec().session("memory:///")

    def encode(batch: pa.RecordBatch) -> bytes:
        writer = session.open_writer("file", schema=batch.schema, version=version, keep_original_array=True)
        writer.write_batch(batch)
        writer.close()
        return bytes(session.read_range("file", 0, writer.size_bytes))

    return encode


def _file(row: pa.RecordBatch, version: str, encode: Encode) -> bytes:
    return one_row_file(row, row.schema, version, encode)


def _of_bytes(kind: pa.DataType, count: int, data: bytes) -> pa.Array:
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(_of_bytes(kind.value_type, count * kind.list_size, data), type=kind)
    size = count * kind.bit_width // 8
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer((data * size)[:size])])


def _row(kinds: list[pa.DataType], data: list[bytes]) -> pa.RecordBatch:
    columns = [_of_bytes(kind, 1, some) for kind, some in zip(kinds, data, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=[f"c{number}" for number in range(len(kinds))])


class _Counted:
    """An encoder that counts its calls."""

    def __init__(self, encode: Encode) -> None:
        self.encode, self.calls = encode, 0

    def __call__(self, row: pa.RecordBatch) -> bytes:
        self.calls += 1
        return self.encode(row)


value_bytes = st.one_of(
    st.sampled_from([b"\x00", b"\xff", b"\x01", b"\x80", b"\x55", b"\xaa", b"\x00\x01"]),
    st.binary(min_size=1, max_size=40),
)
rows_of_kinds = st.lists(st.sampled_from(KINDS), min_size=1, max_size=9).flatmap(
    lambda kinds: st.tuples(
        st.just(kinds),
        st.lists(st.lists(value_bytes, min_size=len(kinds), max_size=len(kinds)), min_size=4, max_size=6),
    )
)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@settings(max_examples=40)
@given(given=rows_of_kinds)
def test_files_are_the_codecs(version: str, given: tuple[list[pa.DataType], list[list[bytes]]]) -> None:
    kinds, rows = given
    one_row._kinds.clear()
    codec = _codec(version)
    for number, data in enumerate(rows):
        row, counted = _row(kinds, data), _Counted(codec)
        assert _file(row, version, counted) == codec(row)
        assert number < 3 or counted.calls == 0, "from the fourth file on the codec is not asked"


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_each_kind_has_a_pattern(kind: pa.DataType) -> None:
    codec = _codec("2.2")
    for number in range(3):
        _file(_row([pa.int64(), kind], [bytes([number + 1]), b"ab"]), "2.2", codec)
    (known,) = one_row._kinds
    assert known.pattern is not None
    row = _row([kind, pa.int64()], [b"xyz", b"q"]).select([1, 0])
    renamed = pa.RecordBatch.from_arrays(row.columns, names=["c0", "c1"])
    assert _file(renamed, "2.2", _never) == codec(renamed)


def _never(row: pa.RecordBatch) -> bytes:
    raise AssertionError("the codec is asked")


def test_many_columns() -> None:
    kinds = [KINDS[number % len(KINDS)] for number in range(150)]
    codec = _codec("2.2")
    for number in range(4):
        row = _row(kinds, [bytes([number, column]) for column in range(150)])
        assert _file(row, "2.2", codec if number < 3 else _never) == codec(row)


def test_slices() -> None:
    """Values are found where they are."""
    codec = _codec("2.2")
    numbers, items = pa.array(range(6), pa.int64()), pa.array([n / 2 for n in range(30)], pa.float32())
    whole = pa.record_batch({"n": numbers, "v": pa.FixedSizeListArray.from_arrays(items, type=VECTOR)})
    for at in range(1, 6):
        row = whole.slice(at, 1)
        plain = pa.record_batch({"n": pa.array([at]), "v": pa.array([[at * 2.5 + n / 2 for n in range(5)]], VECTOR)})
        assert _file(row, "2.2", codec if at < 4 else _never) == codec(plain)


@pytest.mark.parametrize("kind", OTHERS, ids=str)
def test_other_kinds_are_left_to_the_codec(kind: pa.DataType) -> None:
    counted = _Counted(lambda row: b"file")
    row = pa.record_batch({"n": pa.array([1]), "x": pa.nulls(1, kind)})
    for _ in range(6):
        assert _file(row, "2.2", counted) == b"file"
    assert counted.calls == 6


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_nulls_are_left_to_the_codec(version: str) -> None:
    codec = _codec(version)
    schema = pa.schema([pa.field("n", pa.int64()), pa.field("v", VECTOR)])
    full = pa.record_batch([pa.array([3]), pa.array([[1.0] * 5], VECTOR)], schema=schema)
    for _ in range(3):
        _file(full, version, codec)
    _file(full, version, _never)
    unused = pa.array([None, 4], pa.int64()).slice(1)
    for n, v in ((None, [1.0] * 5), (4, None), (4, [1.0, None, 2.0, 3.0, 4.0]), (unused, [1.0] * 5)):
        number = n if isinstance(n, pa.Array) else pa.array([n], pa.int64())
        row = pa.record_batch([number, pa.array([v], VECTOR)], schema=schema)
        counted = _Counted(codec)
        assert _file(row, version, counted) == codec(row)
        assert counted.calls == 1


def test_what_schema_and_version_say_is_part_of_the_file() -> None:
    codec = {version: _codec(version) for version in ("2.1", "2.2")}
    fields = [
        pa.field("n", pa.int64()),
        pa.field("n", pa.int64(), nullable=False),
        pa.field("n", pa.int64(), metadata={"a": "b"}),
    ]
    schemas = [pa.schema([field]) for field in fields] + [pa.schema([fields[0]], metadata={"c": "d"})]
    for number in range(5):
        for version, encode in codec.items():
            for schema in schemas:
                row = pa.record_batch([pa.array([number])], schema=schema)
                assert _file(row, version, encode if number < 3 else _never) == encode(row)
    assert len(one_row._kinds) == 8


def test_the_schema_of_the_file_counts_and_not_that_of_the_batch() -> None:
    """A batch need not have the metadata of fields, which go into the file."""

    def encode(schema: pa.Schema) -> Encode:
        return lambda row: repr(schema.field(0).metadata).encode() + _value(row)

    plain = pa.schema([pa.field("n", pa.int64())])
    marked = pa.schema([pa.field("n", pa.int64(), metadata={"lance-encoding:compression": "zstd"})])
    for number in range(6):
        row = pa.record_batch([pa.array([number])], schema=plain)
        for schema in (plain, marked):
            assert one_row_file(row, schema, "2.2", encode(schema)) == encode(schema)(row)
    assert all(kind.pattern is not None for kind in one_row._kinds) and len(one_row._kinds) == 2


def test_the_last_schemas_are_kept() -> None:
    counted = _Counted(lambda row: b"file")
    for number in range(40):
        _file(pa.record_batch({f"n{number}": pa.array([1])}), "2.2", counted)
    assert len(one_row._kinds) == one_row._SCHEMAS_MAX


def _value(row: pa.RecordBatch) -> bytes:
    return bytes(row.column(0).buffers()[1])[:8]


@pytest.mark.parametrize(
    "encode",
    [
        lambda row: b"<" + _value(row) + zlib.crc32(_value(row)).to_bytes(4, "big"),
        lambda row: b"<" + _value(row) + _value(row),
        lambda row: b"<" + _value(row).rstrip(b"\xaa"),
        lambda row: b"zero" * 3 if _value(row) == bytes(8) else b"<" + _value(row) + b">>>",
        lambda row: b"<" + _value(row) + os.urandom(1),
        lambda row: b"<" + _value(row)[::-1],
        lambda row: b"<nothing>",
        lambda row: b"<" + _value(row) + (b"!" if _value(row)[0] == 3 else b">"),
    ],
    ids=[
        "checksum",
        "twice",
        "sizes differ",
        "zero differs",
        "chance",
        "reversed",
        "no value",
        "the row at hand differs",
    ],
)
def test_a_codec_without_a_pattern_makes_all_files(encode: Encode) -> None:
    for number in (3, 3, 3, 3, 3):
        row = pa.record_batch({"n": pa.array([number])})
        counted = _Counted(encode)
        _file(row, "2.2", counted)
        assert counted.calls >= 1
    (known,) = one_row._kinds
    assert known.is_probed and known.pattern is None


@pytest.mark.parametrize(
    "field", [pa.field("x", pa.uuid()), pa.field("x", pa.int32(), metadata={"a": "b", "c": "d"})], ids=str
)
def test_fields_with_several_entries_of_metadata(field: pa.Field) -> None:
    """The codec writes these in any order: it makes all such files."""
    counted = _Counted(_codec("2.2"))
    storage = pa.array([bytes(16)], pa.binary(16)) if field.type == pa.uuid() else pa.array([7], field.type)
    column = pa.ExtensionArray.from_storage(field.type, storage) if field.type == pa.uuid() else storage
    for number in range(6):
        _file(
            pa.record_batch([pa.array([number]), column], schema=pa.schema([pa.field("n", pa.int64()), field])),
            "2.2",
            counted,
        )
    assert counted.calls == 6


def test_an_error_of_the_codec_is_raised_and_nothing_is_kept() -> None:
    def fails(row: pa.RecordBatch) -> bytes:
        raise OSError("disk")

    row = pa.record_batch({"n": pa.array([1])})
    for _ in range(5):
        with pytest.raises(OSError, match="disk"):
            _file(row, "2.2", fails)
    assert [kind.files for kind in one_row._kinds] == [0]


def test_a_refused_probe_leaves_the_row_as_it_is() -> None:
    """Values of a probe may be none that the codec takes; the row at hand is written all the same."""

    def encode(row: pa.RecordBatch) -> bytes:
        if _value(row) != (1).to_bytes(8, "little"):
            raise ValueError("not such a value")
        return b"file"

    row = pa.record_batch({"n": pa.array([1])})
    for _ in range(5):
        assert _file(row, "2.2", encode) == b"file"
    (known,) = one_row._kinds
    assert known.is_probed and known.pattern is None


def test_threads() -> None:
    wrong: list[Any] = []

    def work(start: int) -> None:
        codec = _codec("2.2")
        for number in range(start, start + 20):
            row = pa.record_batch({"n": pa.array([number]), "f": pa.array([number / 2])})
            if _file(row, "2.2", codec) != codec(row):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(100 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
