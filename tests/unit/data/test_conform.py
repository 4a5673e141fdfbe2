"""Batches in the table's shape, nested ones too."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tablewright.data.conform import conform, solid
from tablewright.errors import InvalidRequest, SchemaMismatch


def _struct(*fields: pa.Field) -> pa.DataType:
    return pa.struct(list(fields))


CASES = {
    "same": (pa.array([1, 2]), pa.int64()),
    "view": (pa.array(["a", None], pa.string_view()), pa.string()),
    "binary view": (pa.array([b"a", None], pa.binary_view()), pa.binary()),
    "members in another order": (
        pa.array([{"b": "x", "a": 1}, None], pa.struct([("b", pa.string()), ("a", pa.int64())])),
        pa.struct([("a", pa.int64()), ("b", pa.string())]),
    ),
    "missing member": (pa.array([{"a": 1}, None]), pa.struct([("a", pa.int64()), ("b", pa.string())])),
    "list of structs": (
        pa.array([[{"b": "x", "a": 1}], None, []], pa.list_(pa.struct([("b", pa.string()), ("a", pa.int64())]))),
        pa.list_(pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ),
    "list item's name": (
        pa.array([[1], None, [2, 3]], pa.list_(pa.field("element", pa.int64()))),
        pa.list_(pa.int64()),
    ),
    "json from text": (pa.array(["1", None]), pa.json_(pa.string())),
    "uuid from bytes": (pa.array([b"a" * 16, None], pa.binary(16)), pa.uuid()),
    "dictionary": (pa.array(["a", "b"]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())), pa.string()),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("cut", [(0, None), (1, None), (1, 1)])
def test_shapes(case: str, cut: tuple[int, int | None]) -> None:
    array, kind = CASES[case]
    batch = pa.record_batch({"c": array}).slice(*cut)
    found = conform(batch, pa.schema([("c", kind)]))
    found.validate(full=True)
    assert found.schema.field("c").type == kind
    expected = [_filled(value, kind) for value in batch.column("c").to_pylist()]
    storage = found.column("c").storage if isinstance(kind, pa.BaseExtensionType) else found.column("c")
    assert storage.to_pylist() == expected


def _filled(value: object, kind: pa.DataType) -> object:
    if pa.types.is_struct(kind) and isinstance(value, dict):
        return {field.name: value.get(field.name) for field in kind}
    return value


def test_refused_casts() -> None:
    with pytest.raises(InvalidRequest, match='Cannot cast column "c" from string to int64'):
        conform(pa.record_batch({"c": ["x"]}), pa.schema([("c", pa.int64())]))
    inner = pa.record_batch({"c": pa.array([{"a": 300}])})
    with pytest.raises(InvalidRequest, match=r'Cannot cast column "c\.a" from int64 to int8'):
        conform(inner, pa.schema([("c", pa.struct([("a", pa.int8())]))]))


STRICT = pa.struct([pa.field("a", pa.int64(), nullable=False)])


@pytest.mark.parametrize(
    ("array", "field", "path"),
    [
        (pa.array([1, None]), pa.field("c", pa.int64(), nullable=False), "c"),
        (pa.array([{"a": None}]), pa.field("c", STRICT), "c.a"),
        (pa.array([{"a": 1}, None]), pa.field("c", STRICT, nullable=False), "c"),
        (pa.array([[1, None]]), pa.field("c", pa.list_(pa.field("item", pa.int64(), nullable=False))), "c.item"),
    ],
)
def test_nulls_refused(array: pa.Array, field: pa.Field, path: str) -> None:
    batch = pa.RecordBatch.from_arrays([array], names=["c"])
    with pytest.raises(SchemaMismatch, match=f"Column '{path}' is declared as non-nullable"):
        conform(batch, pa.schema([field]))


def test_nulls_that_are_fine() -> None:
    rows = pa.array([{"a": 1}, None])
    found = conform(pa.record_batch({"c": rows}), pa.schema([pa.field("c", STRICT)]))
    assert found.column("c").to_pylist() == [{"a": 1}, None]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary(), pa.list_(pa.int8()), pa.struct({"a": pa.string()})])
def test_items_without_an_offset_get_one(kind: pa.DataType) -> None:
    """Spark 4.0 sends none where all lists are empty, and the codec refuses that."""
    nothing = pa.py_buffer(b"")
    text = pa.Array.from_buffers(pa.string(), 0, [None, nothing, nothing])
    numbers = pa.array([], pa.int8())
    items = {
        pa.string(): text,
        pa.large_binary(): pa.Array.from_buffers(pa.large_binary(), 0, [None, nothing, nothing]),
        pa.list_(pa.int8()): pa.Array.from_buffers(pa.list_(pa.int8()), 0, [None, nothing], children=[numbers]),
        pa.struct({"a": pa.string()}): pa.Array.from_buffers(pa.struct({"a": pa.string()}), 0, [None], children=[text]),
    }[kind]
    lists = pa.ListArray.from_arrays(pa.array([0, 0, 0], pa.int32()), items)
    found = solid(pa.record_batch({"c": lists})).column("c")
    values = found.values.field(0) if pa.types.is_struct(kind) else found.values
    assert found.to_pylist() == [[], []]
    offsets = values.buffers()[1]
    assert offsets is not None and offsets.size > 0


SLICED = {
    "numbers": pa.array(range(5000)),
    "texts": pa.array([None if number % 7 == 0 else f"text {number}" for number in range(5000)]),
    "structs": pa.array([None if number % 5 == 0 else {"a": number, "b": str(number)} for number in range(5000)]),
    "lists": pa.array([[number] * (number % 3) for number in range(5000)]),
    "vectors": pa.array([[number, 1.5] for number in range(5000)], pa.list_(pa.float32(), 2)),
    "dictionary": pa.array([f"{number % 3}" for number in range(5000)]).dictionary_encode(),
    "json": pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array([f"{number}" for number in range(5000)])),
    "booleans": pa.array([number % 3 == 0 for number in range(50_000)]),
    "nulls": pa.nulls(5000),
}


@pytest.mark.parametrize("name", SLICED)
@pytest.mark.parametrize("cut", [(0, 9), (13, 50), (4990, 10)])
def test_small_slices_are_copied(name: str, cut: tuple[int, int]) -> None:
    """Of a slice, the codec counts the whole array."""
    part = SLICED[name].slice(*cut)
    found = solid(pa.record_batch({"c": part})).column("c")
    found.validate(full=True)
    assert found.equals(part) and found.type == part.type
    assert found.get_total_buffer_size() < 4096


def test_what_is_whole_or_large_is_not_copied() -> None:
    whole, large = pa.array(range(5000)), pa.array(range(100_000))
    for array in (whole, whole.slice(100), large.slice(7, 40_000)):
        found = solid(pa.record_batch({"c": array})).column("c")
        (_, given), (_, kept) = array.buffers(), found.buffers()
        assert given is not None and kept is not None and given.address == kept.address
