"""Every type that a table can hold, in every file version: what pylance writes we read, and the other way round.

pylance decides what is supported. Where it writes a type, three more readings have to agree with its own: ours of its
table, its of ours, LanceDB's of ours. Where it refuses, so do we, with a typed error and nothing left behind.
"""

from __future__ import annotations

import datetime as dt
import decimal
import itertools
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lance.arrow import bfloat16_array

from .referee import (
    UNDER_TEST,
    assert_same_dataset,
    assert_same_rows,
    fragments_of,
    lance,
    lancedb_rows,
    numbers,
    ours,
    state_of,
    tree,
)

VERSIONS = ["2.2", *(pytest.param(version, marks=pytest.mark.slow) for version in ("2.0", "2.1", "2.3"))]


def _floats(dtype: type) -> list[object]:
    return [dtype(1.5), None, dtype(-0.0), dtype("inf"), dtype("nan"), dtype(0.25)]


def _primitive() -> dict[str, pa.Array]:
    cases = {"null": pa.nulls(5), "bool": pa.array([True, None, False, True])}
    for bits in (8, 16, 32, 64):
        top = 2 ** (bits - 1)
        cases[f"int{bits}"] = pa.array([-top, None, top - 1, 0, 7], getattr(pa, f"int{bits}")())
        cases[f"uint{bits}"] = pa.array([0, None, 2 * top - 1, 5], getattr(pa, f"uint{bits}")())
    cases["halffloat"] = pa.array(_floats(np.float16), pa.float16())
    cases["float"] = pa.array(_floats(float), pa.float32())
    cases["double"] = pa.array(_floats(float), pa.float64())
    for name in ("string", "large_string", "string_view"):
        cases[name] = pa.array(["", None, "ä €", "x" * 300, "a"], getattr(pa, name)())
    for name in ("binary", "large_binary", "binary_view"):
        cases[name] = pa.array([b"", None, b"\x00\xff", b"y" * 300], getattr(pa, name)())
    cases["fixed_size_binary"] = pa.array([b"abc", None, b"\x00\x01\x02"], pa.binary(3))
    cases["decimal128"] = pa.array([decimal.Decimal("-1.23"), None, decimal.Decimal("9999.99")], pa.decimal128(10, 2))
    cases["decimal256"] = pa.array([decimal.Decimal("1e40"), None, decimal.Decimal("-7")], pa.decimal256(60, 3))
    return cases


def _temporal() -> dict[str, pa.Array]:
    cases = {
        "date32": pa.array([dt.date(1969, 12, 31), None, dt.date(2024, 2, 29)], pa.date32()),
        "date64": pa.array([dt.date(1969, 12, 31), None, dt.date(2024, 2, 29)], pa.date64()),
        "time32_s": pa.array([0, None, 86_399], pa.time32("s")),
        "time32_ms": pa.array([1, None, 86_399_999], pa.time32("ms")),
        "time64_us": pa.array([1, None, 86_399_999_999], pa.time64("us")),
        "time64_ns": pa.array([1, None, 86_399_999_999_999], pa.time64("ns")),
    }
    for unit, zone in itertools.product(("s", "ms", "us", "ns"), (None, "UTC", "+08:00", "Europe/Berlin")):
        cases[f"timestamp_{unit}_{zone}"] = pa.array([-5, None, 1_700_000_000], pa.timestamp(unit, zone))
    for unit in ("s", "ms", "us", "ns"):
        cases[f"duration_{unit}"] = pa.array([-5, None, 1_700_000_000], pa.duration(unit))
    return cases


def _nested() -> dict[str, pa.Array]:
    point = pa.struct([pa.field("p", pa.int32()), pa.field("q", pa.string())])
    deep = pa.struct(
        [pa.field("l", pa.list_(pa.struct([pa.field("m", pa.list_(pa.float32()))]))), pa.field("z", point)]
    )
    rows = [{"p": 1, "q": "a"}, {"p": None, "q": None}, {"p": 3, "q": "ccc"}]
    return {
        "struct": pa.array(rows, point),
        "struct_with_nulls": pa.array([*rows, None], point),
        "struct_not_null_children": pa.array(
            [{"p": 1}, {"p": 2}], pa.struct([pa.field("p", pa.int32(), nullable=False)])
        ),
        "struct_empty": pa.array([{}, {}, {}], pa.struct([])),
        "list": pa.array([[1, None, 3], [], None, [4]], pa.list_(pa.int64())),
        "list_not_null_items": pa.array([[1, 3], [], None], pa.list_(pa.field("item", pa.int64(), nullable=False))),
        "list_item_name": pa.array([[1, 3], [], None], pa.list_(pa.field("element", pa.int64()))),
        "list_string": pa.array([["a", None], [], None, [""]], pa.list_(pa.string())),
        "large_list": pa.array([[1.5], [], None], pa.large_list(pa.float32())),
        "list_struct": pa.array([[*rows], [], [rows[0]]], pa.list_(point)),
        "large_list_struct": pa.array([[*rows], [], None], pa.large_list(point)),
        "list_list": pa.array([[[1], []], [], None, [[2, 3]]], pa.list_(pa.list_(pa.int16()))),
        "list_fsl": pa.array([[[1, 2]], [], [[3, 4], [5, 6]]], pa.list_(pa.list_(pa.float32(), 2))),
        "deep": pa.array([{"l": [{"m": [1.0]}, {"m": []}], "z": rows[0]}, {"l": [], "z": rows[2]}], deep),
        "fsl": pa.array([[1, 2, 3, 4], None, [5, 6, 7, 8]], pa.list_(pa.float32(), 4)),
        "fsl_inner_null": pa.array([[1, None], [5, 6]], pa.list_(pa.int32(), 2)),
        "fsl_half": pa.array([[np.float16(1), np.float16(2)]] * 3, pa.list_(pa.float16(), 2)),
        "fsl_uint8": pa.array([[1, 2, 255]] * 3, pa.list_(pa.uint8(), 3)),
        "fsl_bool": pa.array([[True, False, True]] * 3, pa.list_(pa.bool_(), 3)),
        "fsl_string": pa.array([["a", "b"]] * 3, pa.list_(pa.string(), 2)),
        "fsl_fsl": pa.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], pa.list_(pa.list_(pa.float32(), 2), 2)),
        "fsl_struct": pa.array([[rows[0], rows[2]], [rows[2], rows[0]]], pa.list_(point, 2)),
        "map": pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int32())),
        "map_struct": pa.array([[(1, rows[0])], []], pa.map_(pa.int64(), point)),
        "dict_string": pa.array(["a", None, "b", "a"]).dictionary_encode(),
        "dict_int8": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int8()), ["x", "y"]),
        "dict_large": pa.DictionaryArray.from_arrays(
            pa.array([1, 0], pa.uint16()), pa.array(["x", "y"], pa.large_string())
        ),
        "dict_of_int": pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.int16()), pa.array([70, 80], pa.int64())),
        "interval": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
        "list_view": pa.array([[1, 2], []], pa.list_view(pa.int32())),
        "run_end": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array([7, 8])),
    }


def _extension() -> dict[str, pa.Array]:
    storage = pa.array([uuid.UUID(int=5).bytes, None, uuid.UUID(int=2**127).bytes], pa.binary(16))
    tensor = pa.fixed_shape_tensor(pa.float32(), [2, 2])
    return {
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), storage),
        "json": pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a":1}', None, "[1,2]"])),
        "bfloat16": bfloat16_array([1.5, None, -2.0]),
        "tensor": pa.ExtensionArray.from_storage(tensor, pa.array([[1, 2, 3, 4], [5, 6, 7, 8]], tensor.storage_type)),
        "opaque": pa.ExtensionArray.from_storage(pa.opaque(pa.int32(), "money", "us"), pa.array([1, None], pa.int32())),
    }


CASES = {**_primitive(), **_temporal(), **_nested(), **_extension()}


def _table(values: pa.Array, rows: int = 600) -> pa.Table:
    """The values over and over, in several batches that are slices of larger arrays, beside an id."""
    copies = pa.concat_arrays([values] * (rows // len(values) + 2))
    column = pa.chunked_array([copies.slice(1, 250), copies.slice(251, 1), copies.slice(252, rows - 251)])
    return pa.table([pa.array(range(rows), pa.int32()), column], names=["id", "v"])


def _fresh(table: pa.Table) -> pa.Table:
    """The same chunks in buffers of their own: pylance 14 panics on slices of some nested arrays, we must not."""
    columns = [
        pa.chunked_array([pa.concat_arrays([chunk, chunk.slice(0, 0)]) for chunk in column.chunks], column.type)
        for column in table.columns
    ]
    return pa.table(columns, schema=table.schema)


def _write_or_refusal(library: Any, table: pa.Table, uri: Path, **options: Any) -> BaseException | None:
    """The error if `library` can't write this table, or can't read what it wrote."""
    try:
        library.write_dataset(_fresh(table) if library is lance else table, str(uri), **options).to_table()
    except BaseException as error:  # a panic of pylance is no Exception, but it is a refusal
        return error
    return None


def _assert_refused(error: BaseException | None, folder: Path) -> None:
    if UNDER_TEST == "tablewright":
        assert isinstance(error, ours.errors.TablewrightError), f"pylance refuses this, we answered {error!r}"
        assert tree(folder / "ours.lance") == {}, "something was written"


# What we refuse although pylance writes it: 2.3 forgets which structs without members are null.
STRICTER = {("struct_empty", "2.3")} if UNDER_TEST == "tablewright" else set()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", CASES)
def test_every_type_reads_equal_in_both_directions(tmp_path: Path, name: str, version: str) -> None:
    table = _table(CASES[name])
    options = {"data_storage_version": version, "max_rows_per_file": 400}
    theirs, mine = tmp_path / "theirs.lance", tmp_path / "ours.lance"
    refusal = _write_or_refusal(lance, table, theirs, **options)
    answer = _write_or_refusal(ours, table, mine, **options)
    if refusal is not None or (name, version) in STRICTER:
        _assert_refused(answer, tmp_path)
        return
    assert answer is None, f"pylance writes this, we refuse: {answer!r}"
    expected = lance.dataset(str(theirs)).to_table()
    assert_same_rows(ours.dataset(str(theirs)).to_table(), expected)
    assert_same_rows(lance.dataset(str(mine)).to_table(), expected)
    assert_same_dataset(theirs)
    assert_same_dataset(mine)
    assert fragments_of(lance.dataset(str(mine))) == fragments_of(lance.dataset(str(theirs)))
    if version != "2.3":  # which this LanceDB can't read from anybody
        assert_same_rows(lancedb_rows(mine), lancedb_rows(theirs))


@pytest.mark.parametrize("version", VERSIONS)
def test_all_types_in_one_table(tmp_path: Path, version: str) -> None:
    held = {}
    for name, values in CASES.items():
        if name == "struct_empty":  # pylance misreads the columns after it
            continue
        table = _table(values, 300).combine_chunks()
        if (
            _write_or_refusal(lance, table, tmp_path / name, data_storage_version=version, max_rows_per_file=170)
            is None
        ):
            held[name] = table["v"]
    assert len(held) > 50
    options = {"data_storage_version": version, "max_rows_per_file": 170}
    theirs, mine = tmp_path / "theirs.lance", tmp_path / "ours.lance"
    assert _write_or_refusal(lance, pa.table(held), theirs, **options) is None
    assert _write_or_refusal(ours, pa.table(held), mine, **options) is None
    assert_same_dataset(theirs)
    assert_same_dataset(mine)
    assert_same_rows(lance.dataset(str(mine)).to_table(), lance.dataset(str(theirs)).to_table())
    assert state_of(mine)["field_ids"] == state_of(theirs)["field_ids"]
    for columns in (["deep", "struct"], ["double", "fsl", "deep.l"], ["struct.q", "int8"], ["struct.p", "struct.q"]):
        query = {"columns": columns, "filter": "int16 is not null", "limit": 40, "offset": 3}
        assert_same_rows(ours.dataset(str(theirs)).to_table(**query), lance.dataset(str(theirs)).to_table(**query))


@pytest.mark.parametrize("source", ["slices", "ipc"])
def test_input_in_unusual_buffers(tmp_path: Path, source: str) -> None:
    """Slices of nested arrays, and buffers that are aligned to 8 bytes only, make pylance's codec panic."""
    table = _table(CASES["deep"], 300).append_column("d", _table(CASES["decimal128"], 300)["v"])
    if source == "ipc":
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        given = pa.ipc.open_stream(sink.getvalue()).read_all()
    else:
        given = table
    if UNDER_TEST == "lance":
        given = _fresh(given)
    ours.write_dataset(given, str(tmp_path / "ours.lance"))
    assert_same_rows(lance.dataset(str(tmp_path / "ours.lance")).to_table(), table)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shape", ["empty", "all_null", "one_row"])
def test_sparse_tables(tmp_path: Path, shape: str, version: str) -> None:
    table = numbers(0, 1) if shape == "one_row" else numbers(0, 0)
    if shape == "all_null":
        table = pa.table([pa.nulls(20, field.type) for field in table.schema], schema=table.schema)
    lance.write_dataset(table, str(tmp_path / "theirs.lance"), data_storage_version=version)
    ours.write_dataset(table, str(tmp_path / "ours.lance"), data_storage_version=version)
    assert_same_dataset(tmp_path / "theirs.lance")
    assert_same_dataset(tmp_path / "ours.lance")
    assert_same_rows(lance.dataset(str(tmp_path / "ours.lance")).to_table(), table)
    if version != "2.3":
        assert_same_rows(lancedb_rows(tmp_path / "ours.lance"), table)
    assert fragments_of(lance.dataset(str(tmp_path / "ours.lance"))) == fragments_of(
        lance.dataset(str(tmp_path / "theirs.lance"))
    )
    uri = str(tmp_path / "theirs.lance")
    ours.write_dataset(numbers(5, 9), uri, mode="append")
    assert_same_dataset(uri)
    assert lance.dataset(uri).to_table(columns=["id"], filter="id >= 5")["id"].to_pylist() == [5, 6, 7, 8]


def test_metadata_nullability_and_encoding_hints_are_kept(tmp_path: Path) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata={"lance-schema:unenforced-primary-key": "true"}),
            pa.field("zipped", pa.string(), metadata={"lance-encoding:compression": "zstd", "note": "ä"}),
            pa.field(
                "packed", pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.int32())]), metadata={"packed": "true"}
            ),
        ],
        metadata={"made by": "a test", "key": "value"},
    )
    table = pa.table([[1, 2], ["a", "b"], [{"a": 1, "b": 2}, {"a": 3, "b": 4}]], schema=schema)
    lance.write_dataset(table, str(tmp_path / "theirs.lance"))
    ours.write_dataset(table, str(tmp_path / "ours.lance"))
    assert_same_dataset(tmp_path / "theirs.lance")
    assert_same_dataset(tmp_path / "ours.lance")
    mine, theirs = state_of(tmp_path / "ours.lance"), state_of(tmp_path / "theirs.lance")
    assert mine == theirs
    assert ours.dataset(str(tmp_path / "theirs.lance")).schema_metadata == theirs["schema_metadata"]
