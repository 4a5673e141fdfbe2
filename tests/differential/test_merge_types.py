"""Keys and columns of all types: keys match exactly where pylance's do, and all values arrive as pylance reads them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance.arrow
import numpy as np
import pyarrow as pa
import pytest
from tests.unit.operations.merge_insert.merge_model import builder

from .referee import lance, ours

_NINES = "9" * 36
_TEXT, _BYTES = ["a", "", "b", "ä", "a "], [b"a", b"", b"\0", b"\xff", b"a" * 20]
_FLOATS = [0.0, -0.0, float("nan"), 1.5, -1.5]
_TIMES = [dt.time(1, 2, 3, 1000 * i) for i in range(5)]
KEYS: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [-128, 0, 127, 5, 7]),
    (pa.int64(), [2**53, 2**53 + 1, -(2**63), 2**63 - 1, 0]),
    (pa.uint64(), [2**64 - 1, 2**63, 0, 2**53, 2**53 + 1]),
    (pa.float16(), _FLOATS),
    (pa.float32(), _FLOATS),
    (pa.float64(), _FLOATS),
    (pa.bool_(), [True, False, None, None, None]),
    (pa.string(), _TEXT),
    (pa.large_string(), _TEXT),
    (pa.string_view(), _TEXT),
    (pa.binary(), _BYTES),
    (pa.large_binary(), _BYTES),
    (pa.binary_view(), _BYTES),
    (pa.binary(2), [b"ab", b"\0\0", b"cd", b"\xff\xff", b"zz"]),
    (pa.date32(), [0, 1, -1, 20000, 5]),
    (pa.date64(), [dt.date(2020, 1, i) for i in range(1, 6)]),
    (pa.time32("ms"), _TIMES),
    (pa.time64("us"), _TIMES),
    (pa.timestamp("s"), [0, 1, -1, 2**33, 5]),
    (pa.timestamp("ns"), [2**60 + i for i in range(5)]),
    (pa.timestamp("us", "Europe/Berlin"), [0, 1, -1, 2**50, 2**50 + 1]),
    (pa.duration("ns"), [2**60 + i for i in range(5)]),
    (pa.decimal128(38, 2), [Decimal(text) for text in (f"{_NINES}.99", f"{_NINES}.98", "0", "-1.00", "0.01")]),
    (pa.decimal256(60, 2), [Decimal(text) for text in (f"{_NINES}1.50", f"{_NINES}1.51", "0", "-1.00", "0.01")]),
    (pa.dictionary(pa.int32(), pa.string()), _TEXT),
    (pa.dictionary(pa.int8(), pa.int64()), [2**53, 2**53 + 1, 0, 1, 2]),
    (pa.uuid(), [bytes([i]) * 16 for i in range(5)]),
]


def _array(kind: pa.DataType, values: list[Any]) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    return pa.array(values, kind)


def _merged(library: Any, uri: Path, table: pa.Table, new: pa.Table) -> tuple[int, int, list[str]]:
    ds = library.write_dataset(table, uri, max_rows_per_file=2)
    result = builder(ds, "k").when_matched_update_all().when_not_matched_insert_all().execute(new)
    return result["num_updated_rows"], result["num_inserted_rows"], sorted(map(repr, _read(uri)))


def _read(uri: Path) -> list[dict[str, Any]]:
    ds = lance.dataset(uri)
    ds.validate()
    return ds.to_table().to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(("kind", "values"), KEYS, ids=[str(kind) for kind, _ in KEYS])
def test_keys(kind: pa.DataType, values: list[Any], tmp_path: Path) -> None:
    one, two, three, four, five = values
    table = pa.table({"k": _array(kind, [one, two, three, None]), "x": [0, 1, 2, 3]})
    new = pa.table({"k": _array(kind, [two, four, three, None, five]), "x": [10, 11, 12, 13, 14]})
    matches = 1 if three is None else 2
    mine = _merged(ours, tmp_path / "mine", table, new)
    assert mine[:2] == (matches, 5 - matches)
    assert mine == _merged(lance, tmp_path / "theirs", table, new)


def _awkward() -> dict[str, pa.Array]:
    """Eight values each of types that are hard to move, the fourth of most is null."""
    n = range(8)

    def some(values: Any, kind: pa.DataType | None = None) -> pa.Array:
        return pa.array([None if i == 3 else value for i, value in enumerate(values)], kind)

    return {
        "vector": some([[i, -i] for i in n], pa.list_(pa.float32(), 2)),
        "half": some([i / 2 for i in n], pa.float16()),
        "flag": some([i % 2 == 0 for i in n]),
        "fixed": some([bytes([i, i]) for i in n], pa.binary(2)),
        "decimal": some([Decimal(i) for i in n], pa.decimal256(50, 2)),
        "duration": some(n, pa.duration("ms")),
        "zoned": some(n, pa.timestamp("us", "Asia/Tokyo")),
        "view": some(["long text " * i for i in n], pa.string_view()),
        "words": some([f"w{i % 3}" for i in n]).dictionary_encode(),
        "null inside": pa.DictionaryArray.from_arrays(
            pa.array([0, 1, 2, 1, 0, None, 2, 1]), pa.array(["a", None, "c"])
        ),
        "words in struct": pa.StructArray.from_arrays([pa.array([f"v{i % 3}" for i in n]).dictionary_encode()], ["d"]),
        "words in list": pa.ListArray.from_arrays(range(9), pa.array([f"v{i % 3}" for i in n]).dictionary_encode()),
        "structs": some([[{"a": i, "b": str(i)}] * (i % 3) for i in n]),
        "large list": some([[i] * (i % 3) for i in n], pa.large_list(pa.int8())),
        "nothing": pa.nulls(8),
        "uuid": _array(pa.uuid(), [bytes([i]) * 16 for i in n]),
        "json": _array(pa.json_(), [f'{{"a":{i}}}' for i in n]),
        "bfloat": lance.arrow.bfloat16_array([float(i) for i in n]),
        "tensor": pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(32, dtype=np.float32).reshape(8, 2, 2)),
        "blob": some([bytes([i]) * i for i in n], pa.large_binary()),
    }


@pytest.mark.parametrize("stable", [False, True], ids=["address", "stable"])
@pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
def test_columns(mode: str, stable: bool, tmp_path: Path) -> None:
    """Whole rows, and each half of the columns with the other kept."""
    columns = {"id": pa.array([0, 1, 2, 3, 4, 3, 1, 7])} | _awkward()
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([blob if name == "blob" else pa.field(name, array.type) for name, array in columns.items()])
    both = pa.Table.from_arrays(list(columns.values()), schema=schema)
    table, new = both.slice(0, 5), both.slice(5)
    names = list(columns)
    for number, given in enumerate((names, ["id", *names[1::2]], ["id", *names[2::2]])):
        uri = tmp_path / f"{number}.lance"
        lance.write_dataset(table, uri, max_rows_per_file=3, data_storage_version="2.1", enable_stable_row_ids=stable)
        merge = builder(ours.dataset(uri), "id").when_matched_update_all().when_not_matched_insert_all()
        result = merge.write_mode(mode).execute(new.select(given))
        assert (result["num_updated_rows"], result["num_inserted_rows"]) == (2, 1)
        lance.dataset(uri).validate()
        found = lance.dataset(uri).to_table(blob_handling="all_binary")
        expected: dict[int, dict[str, str]] = {row["id"]: row for row in _shown(table)}
        for row in _shown(new.select(given)):
            expected[row["id"]] = expected.get(row["id"], dict.fromkeys(names, "None")) | row
        assert {row["id"]: row for row in _shown(found)} == expected


def _shown(table: pa.Table) -> list[dict[str, Any]]:
    return [{name: value if name == "id" else str(value) for name, value in row.items()} for row in table.to_pylist()]
