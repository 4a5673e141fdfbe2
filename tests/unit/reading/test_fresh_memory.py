"""Filters read small batches while the memory of the process is fresh, and find the same rows with both kinds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.data import encoder
from tablewright.reading import fragment
from tablewright.reading.fresh_memory import FreshMemory

ROWS = 100_000


@pytest.fixture(scope="module", params=["whole", "deleted"])
def dataset(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tw.LanceDataset:
    numbers = np.arange(ROWS)
    x = pa.array(numbers / 7, mask=numbers % 13 == 0)
    rows = pa.table({"id": numbers, "x": x, "s": [f"row {n}" for n in numbers]})
    dataset = tw.write_dataset(rows, tmp_path_factory.mktemp("t") / "t.lance", max_rows_per_file=70_000)
    if request.param == "deleted":
        dataset.delete("id % 5 = 2 or (id >= 32000 and id < 66000)")
    return dataset


def _sizes(monkeypatch: Any) -> list[int]:
    asked: list[int] = []
    read = encoder.DataFileReader.read

    def spy(self: encoder.DataFileReader, start: int, count: int, rows_per_batch: int) -> Any:
        asked.append(rows_per_batch)
        return read(self, start, count, rows_per_batch)

    monkeypatch.setattr(encoder.DataFileReader, "read", spy)
    return asked


@pytest.mark.parametrize("filter", ["id % 10 < 3 and x > 0.5", "id = 99999", "id < 0", "id >= 0"])
@pytest.mark.parametrize("options", [{"columns": ["x"]}, {}, {"with_row_id": True, "columns": ["s"]}])
def test_both_sizes_of_batches_find_the_same(
    dataset: tw.LanceDataset, filter: str, options: dict[str, Any], monkeypatch: Any
) -> None:
    found = []
    for limit in (1 << 40, 0):
        monkeypatch.setattr(fragment, "fresh_memory", FreshMemory(limit))
        found.append((dataset.to_table(filter=filter, **options), dataset.count_rows(filter)))
    assert found[0] == found[1]
    assert found[0][0].num_rows == found[0][1]


def test_only_the_first_bytes_are_read_in_small_batches(dataset: tw.LanceDataset, monkeypatch: Any) -> None:
    monkeypatch.setattr(fragment, "fresh_memory", FreshMemory(100_000 * 16))
    asked = _sizes(monkeypatch)
    for _ in range(2):
        dataset.to_table(filter="id % 10 < 3 and x > 0.5", columns=["x"])
    assert {size <= 32_768 for size in asked[:2]} == {True}
    assert {size <= 32_768 for size in asked[2:]} == {False}


@pytest.mark.parametrize("filter", ["s = 'row 7'", "id * 2 = 14", "_rowid = 7 and id > 3"])
def test_other_filters_read_large_batches(dataset: tw.LanceDataset, filter: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(fragment, "fresh_memory", FreshMemory(1 << 40))
    asked = _sizes(monkeypatch)
    dataset.to_table(filter=filter, columns=["x"])
    assert all(size > 32_768 for size in asked)


def test_matches_of_small_batches_are_one_batch(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(fragment, "fresh_memory", FreshMemory(1 << 40))
    dataset = tw.write_dataset(pa.table({"id": np.arange(ROWS)}), tmp_path / "t.lance")
    table = dataset.to_table(filter="id % 100 = 7")
    assert table.column("id").to_pylist() == list(range(7, ROWS, 100))
    assert table.column("id").num_chunks == 1
