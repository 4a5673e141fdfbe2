"""Fragments read here and by pylance are the same rows, whatever happened to the schema."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from tests.unit.data.test_read import _rows, _table

from tablewright.errors import UnsupportedFeature
from tablewright.snapshot.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.world import World

VERSIONS = ["2.0", "2.1", "2.2"]
SYSTEM = ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"]


def _snapshot(path: Path | str, version: int | None = None) -> Snapshot:
    return open_snapshot(World(store=open_store(str(path))), version)


def _check(referee: lance.LanceDataset) -> None:
    snapshot = _snapshot(referee.uri)
    assert snapshot.schema.to_arrow().equals(referee.schema, check_metadata=True)
    assert _rows(snapshot) == referee.to_table().to_pylist()
    for name in referee.schema.names:
        assert _rows(snapshot, [name]) == referee.to_table(columns=[name]).to_pylist()


def _swap(ds: lance.LanceDataset) -> None:
    for path, name in (("a", "tmp"), ("b", "a"), ("tmp", "b")):
        ds.alter_columns({"path": path, "name": name})


def _swap_members(ds: lance.LanceDataset) -> None:
    for path, name in (("st.p", "tmp"), ("st.q", "p"), ("st.tmp", "q")):
        ds.alter_columns({"path": path, "name": name})


CHANGES: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda ds: None,
    "rename": lambda ds: ds.alter_columns({"path": "a", "name": "renamed"}),
    "rename member": lambda ds: ds.alter_columns({"path": "st.in.z", "name": "zz"}),
    "rename struct": lambda ds: ds.alter_columns({"path": "st", "name": "struct"}),
    "swap": _swap,
    "swap members": _swap_members,
    "drop": lambda ds: ds.drop_columns(["b"]),
    "drop member": lambda ds: ds.drop_columns(["st.p"]),
    "drop inner": lambda ds: ds.drop_columns(["st.in.z", "st.q"]),
    "add": lambda ds: ds.add_columns({"c": "a * 2", "d": "lower(s)"}),
    "add null": lambda ds: ds.add_columns(pa.field("n", pa.struct([("k", pa.int64())]))),
    "drop and add": lambda ds: (ds.drop_columns(["b"]), ds.add_columns({"b": "a + 100"})),
    "cast": lambda ds: ds.alter_columns({"path": "b", "data_type": pa.int64()}),
    "update": lambda ds: ds.update({"s": "'new'"}, where="a > 4"),
    "delete": lambda ds: ds.delete("a % 3 = 1"),
    "delete and add": lambda ds: (ds.delete("a % 3 = 1"), ds.add_columns({"c": "a * 2"}), ds.delete("a = 5")),
    "append after add": lambda ds: (
        ds.add_columns(pa.field("n", pa.int64())),
        ds.insert(_table(10).append_column("n", pa.array(range(10)))),
    ),
    "merge": lambda ds: ds.merge(pa.table({"a": [1, 2, 3], "m": ["x", "y", None]}), "a"),
    "compact": lambda ds: (ds.delete("a % 2 = 1"), ds.optimize.compact_files()),
    "nullable": lambda ds: ds.alter_columns({"path": "s", "nullable": True}),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("change", CHANGES)
def test_changed_schemas(tmp_path: Path, change: str, version: str) -> None:
    referee = lance.write_dataset(_table(), tmp_path / "t", max_rows_per_file=4, data_storage_version=version)
    CHANGES[change](referee)
    _check(lance.dataset(tmp_path / "t"))


def _types() -> dict[str, pa.Array]:
    day = dt.date(2020, 1, 1)
    return {
        "null": pa.nulls(3),
        "bool": pa.array([True, None, False]),
        "int8": pa.array([1, None, 3], pa.int8()),
        "uint64": pa.array([1, None, 2**64 - 1], pa.uint64()),
        "half": pa.array(np.array([1, 2, 3], np.float16)),
        "float": pa.array([1.5, None, float("inf")], pa.float32()),
        "string": pa.array(["a", None, ""]),
        "large_string": pa.array(["a", None, "c"], pa.large_string()),
        "binary": pa.array([b"a", None, b""]),
        "large_binary": pa.array([b"a", None, b"c"], pa.large_binary()),
        "fixed_binary": pa.array([b"ab", None, b"cd"], pa.binary(2)),
        "date32": pa.array([day, None, day]),
        "date64": pa.array([day, None, day], pa.date64()),
        "time32": pa.array([1, None, 2], pa.time32("ms")),
        "time64": pa.array([1, None, 2], pa.time64("ns")),
        "timestamp": pa.array([1, None, 2], pa.timestamp("us")),
        "zoned": pa.array([1, None, 2], pa.timestamp("ns", "+08:00")),
        "duration": pa.array([1, None, 2], pa.duration("us")),
        "decimal": pa.array([decimal.Decimal("1.5"), None, decimal.Decimal("2.5")], pa.decimal128(10, 2)),
        "decimal256": pa.array([decimal.Decimal("1.5"), None, decimal.Decimal("2.5")], pa.decimal256(50, 2)),
        "dictionary": pa.array(["a", None, "a"]).dictionary_encode(),
        "list": pa.array([[1, None], None, []], pa.list_(pa.int64())),
        "large_list": pa.array([[1], None, [2]], pa.large_list(pa.int64())),
        "list of lists": pa.array([[[1], []], None, [None]], pa.list_(pa.list_(pa.int8()))),
        "list of structs": pa.array([[{"a": 1, "b": "x"}], None, []]),
        "vector": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int32(), 2)),
        "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"a" * 16, None, b"c" * 16], pa.binary(16))),
        "json": pa.ExtensionArray.from_storage(
            pa.json_(pa.string()), pa.array(['{"b":[1,-2.5,"x"],"a":null}', None, "true"])
        ),
    }


LATER_TYPES: dict[str, pa.Array] = {
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]),
    "deep": pa.array([{"a": {"b": {"c": 1}}}, {"a": None}, {"a": {"b": None}}]),
    "packed": pa.array([{"a": 1, "b": 2}, {"a": 3, "b": 4}, {"a": 5, "b": 6}]),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_types(tmp_path: Path, version: str) -> None:
    arrays = _types()
    schema = [pa.field(name, array.type) for name, array in arrays.items()]
    if version != "2.0":
        arrays |= LATER_TYPES
        schema += [pa.field(name, array.type) for name, array in LATER_TYPES.items() if name != "packed"]
        schema.append(pa.field("packed", LATER_TYPES["packed"].type, metadata={"packed": "true"}))
    if version == "2.2":
        arrays["map"] = pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64()))
        schema.append(pa.field("map", arrays["map"].type))
    table = pa.Table.from_arrays(list(arrays.values()), schema=pa.schema(schema))
    referee = lance.write_dataset(table, tmp_path / "t", data_storage_version=version)
    _check(referee)
    referee.delete("int8 = 3")
    _check(referee)


@pytest.mark.parametrize("stable", [False, True])
def test_system_columns(tmp_path: Path, stable: bool) -> None:
    referee = lance.write_dataset(_table(), tmp_path / "t", max_rows_per_file=4, enable_stable_row_ids=stable)
    referee.delete("a in (1, 6)")
    referee.update({"s": "'new'"}, where="a in (0, 9)")
    referee.insert(_table(10, 3))
    referee.optimize.compact_files(target_rows_per_fragment=5)
    expected = referee.to_table(columns=["a", *SYSTEM]).to_pylist()
    assert _rows(_snapshot(tmp_path / "t"), ["a"], system=SYSTEM) == expected


def test_shallow_clones(tmp_path: Path) -> None:
    referee = lance.write_dataset(_table(), tmp_path / "t", max_rows_per_file=4)
    referee.delete("a = 3")
    clone = referee.shallow_clone(str(tmp_path / "clone"), referee.version)
    clone.insert(_table(10))
    _check(lance.dataset(tmp_path / "clone"))


def test_legacy_files_are_not_called_damaged(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"x": [1]}), tmp_path, data_storage_version="legacy")
    with pytest.raises(UnsupportedFeature, match=r"data/.* is of the legacy version 0\.2"):
        _rows(_snapshot(tmp_path))
