"""Merges through a damaged or lying index: refused by name, never rows lost or doubled."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.file import LanceFileReader, LanceFileWriter
from tests.unit.operations.merge_insert.merge_model import CHEAP_INDEX, builder

import tablewright as tw
from tablewright.errors import CorruptTable

COUNT = 20_000
SOURCE = pa.table({"id": [0, 2, 4000, 27_998, 28_000, 39_998, 1, 50_001], "s": ["new"] * 8})
DATA, LOOKUP = "page_data.lance", "page_lookup.lance"


def _builder(uri: Path) -> Any:
    return builder(tw.dataset(uri), "id", CHEAP_INDEX)


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "row ids"])
def master(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("index") / "t.lance"
    rows = pa.table({"id": range(0, 2 * COUNT, 2), "s": ["x"] * COUNT})
    tw.write_dataset(rows, place, max_rows_per_file=7000, enable_stable_row_ids=request.param)
    lance.dataset(place).create_scalar_index("id", "BTREE")
    return place


@pytest.fixture
def table(master: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(master, tmp_path / "t.lance"))


def file_of(table: Path, name: str) -> Path:
    (path,) = table.glob(f"_indices/*/{name}")
    return path


def change(table: Path, name: str, column: str, values: Callable[[list[int]], list[int | None]]) -> None:
    """Write a file of the index again, with other values in one column."""
    path = file_of(table, name)
    reader = LanceFileReader(str(path))
    rows, schema = reader.read_all().to_table(), reader.metadata().schema
    place = rows.schema.get_field_index(column)
    field = rows.schema.field(column)
    rows = rows.set_column(place, field, pa.array(values(rows[column].to_pylist()), field.type))
    write(path, rows, schema)


def write(path: Path, rows: pa.Table, schema: pa.Schema) -> None:
    os.remove(path)
    writer = LanceFileWriter(str(path), schema, version="2.0")
    for batch in rows.to_batches():
        writer.write_batch(batch)
    writer.close()


def merge(table: Path, *, use_index: bool = True) -> None:
    upsert = _builder(table).when_matched_update_all().when_not_matched_insert_all()
    upsert.use_index(use_index).execute(SOURCE)


def assert_merged(table: Path) -> None:
    rows = tw.dataset(table).to_table()
    assert sorted(rows["id"].to_pylist()) == sorted([*range(0, 2 * COUNT, 2), 1, 50_001])
    assert rows["s"].to_pylist().count("new") == len(SOURCE)


def test_a_sound_index_is_believed(table: Path) -> None:
    upsert = _builder(table).when_matched_update_all().when_not_matched_insert_all()
    assert "ScalarIndexQuery" in upsert.explain_plan()
    merge(table)
    assert_merged(table)


def test_an_index_with_nulls_is_believed(tmp_path: Path) -> None:
    """Nulls come first in an index: whole pages of them, and one page with both."""
    place = tmp_path / "t.lance"
    rows = pa.table({"id": [None if i < 5000 else i for i in range(9000)], "s": ["x"] * 9000})
    lance.write_dataset(rows, place).create_scalar_index("id", "BTREE")
    source = pa.table({"id": [4999, 5000, 8999], "s": ["new"] * 3})
    found = _builder(place).when_matched_update_all().when_not_matched_insert_all().execute(source)
    assert (found["num_updated_rows"], found["num_inserted_rows"]) == (2, 1)


LIES: dict[str, tuple[str, str, Callable[[list[int]], list[int | None]]]] = {
    "ids of other rows": (DATA, "ids", lambda ids: random.Random(1).sample(ids, len(ids))),
    "ids off by one": (DATA, "ids", lambda ids: [*ids[1:], ids[0]]),
    "one id for all": (DATA, "ids", lambda ids: [ids[0]] * len(ids)),
    "ids that no row has": (DATA, "ids", lambda ids: [(99 << 32) | each for each in ids]),
    "values of other rows": (DATA, "values", lambda values: [each + 1 for each in values]),
    "a value twice": (DATA, "values", lambda values: [values[0], *values[:1], *values[2:]]),
    "values not in order": (DATA, "values", lambda values: [*values[:10][::-1], *values[10:]]),
    "values backwards": (DATA, "values", lambda values: values[::-1]),
    "lower bounds too high": (LOOKUP, "min", lambda bounds: [each + 100 for each in bounds]),
    "upper bounds too low": (LOOKUP, "max", lambda bounds: [each - 100 for each in bounds]),
    "bounds backwards": (LOOKUP, "max", lambda bounds: bounds[::-1]),
    "bounds of nulls": (LOOKUP, "max", lambda bounds: [None] * len(bounds)),
    "nulls that are none": (LOOKUP, "null_count", lambda counts: [4000] * len(counts)),
    "nulls beyond all rows": (LOOKUP, "null_count", lambda counts: [2**32 - 1] * len(counts)),
    "pages by other numbers": (LOOKUP, "page_idx", lambda numbers: [each + 1 for each in numbers]),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_noticed(table: Path, lie: str) -> None:
    before = tw.dataset(table).to_table()
    change(table, *LIES[lie])
    with pytest.raises(CorruptTable, match=r"page_(data|lookup)\.lance: .*drop index 'id_idx' .* use_index\(False\)"):
        merge(table)
    assert tw.dataset(table).to_table().equals(before)
    merge(table, use_index=False)
    assert_merged(table)


@pytest.mark.parametrize("digits", [b"0", b"-4", b"1", b"4095", b"9" * 20, b"9" * 5000])
def test_a_wrong_page_size_is_noticed(table: Path, digits: bytes) -> None:
    path = file_of(table, LOOKUP)
    reader = LanceFileReader(str(path))
    schema = reader.metadata().schema
    write(path, reader.read_all().to_table(), schema.with_metadata({**schema.metadata, b"batch_size": digits}))
    with pytest.raises(CorruptTable, match=r"page_lookup\.lance"):
        merge(table)


def test_missing_entries_are_noticed(table: Path) -> None:
    path = file_of(table, DATA)
    reader = LanceFileReader(str(path))
    write(path, reader.read_all().to_table().slice(0, COUNT - 100), reader.metadata().schema)
    with pytest.raises(CorruptTable, match=f"it has {COUNT - 100} entries where the fragments that it covers have"):
        merge(table)


@pytest.mark.parametrize("name", [DATA, LOOKUP])
def test_a_missing_or_foreign_file_is_named(table: Path, name: str) -> None:
    path = file_of(table, name)
    shutil.copy(file_of(table, LOOKUP if name == DATA else DATA), path)
    with pytest.raises(CorruptTable, match=r"page_(data|lookup)\.lance"):
        merge(table)
    path.unlink()
    with pytest.raises(CorruptTable, match=name.replace(".", r"\.")):
        merge(table)


def test_entries_of_deleted_and_moved_rows_are_no_lie(table: Path) -> None:
    ds = tw.dataset(table)
    ds.delete("id in (2, 4000)")
    ds.update({"s": "'moved'"}, where="id in (0, 28000)")
    ds.update({"id": "id + 100001"}, where="id = 39998")
    upsert = _builder(table).when_matched_update_all().when_not_matched_insert_all()
    found = upsert.execute(SOURCE)
    assert (found["num_updated_rows"], found["num_inserted_rows"]) == (3, 5)
