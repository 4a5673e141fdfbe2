"""Columns that are copied without the codec: what moves by updates, upserts and takes is what pylance reads."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.data.copied import CopiedColumns
from tablewright.data.encoder import DataFileReader
from tablewright.errors import CorruptTable
from tablewright.storage import open_store

ROWS, ITEMS = 12_000, 64


def _rows(ids: np.ndarray, seed: int = 0) -> pa.Table:
    values = np.random.default_rng(seed).random(len(ids) * ITEMS, np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(values, ITEMS)
    return pa.table({"id": ids, "vector": vectors, "text": [f"text {n}" for n in ids], "score": ids / 3})


def _by_id(table: pa.Table) -> dict[int, tuple[list[float], str, float]]:
    names = ("id", "vector", "text", "score")
    return {id: rest for id, *rest in zip(*(table[name].to_pylist() for name in names), strict=True)}  # type: ignore[misc]


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_rows_that_move(tmp_path: Path, stable: bool, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copied = []
    original = CopiedColumns.has
    monkeypatch.setattr(
        CopiedColumns, "has", lambda self, offsets: copied.append(original(self, offsets)) or copied[-1]
    )
    lance.write_dataset(
        _rows(np.arange(ROWS)),
        tmp_path / "t",
        max_rows_per_file=5000,
        data_storage_version=version,
        enable_stable_row_ids=stable,
    )
    ds = tw.dataset(tmp_path / "t")
    expected = _by_id(_rows(np.arange(ROWS)))

    ds.delete("id % 10 = 9")
    expected = {id: row for id, row in expected.items() if id % 10 != 9}
    ds.update({"score": "score + 1"}, where="id % 50 = 0")
    for id, row in expected.items():
        if id % 50 == 0:
            row[2] += 1
    assert copied and all(copied)

    source = _rows(np.arange(0, 2 * ROWS, 52), seed=1)
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(source)
    expected |= _by_id(source)
    partial = pa.table({"id": np.arange(0, ROWS, 51), "text": ["new"] * len(range(0, ROWS, 51))})
    ds.merge_insert("id").when_matched_update_all().execute(partial)
    for id in range(0, ROWS, 51):
        if id in expected:
            expected[id][1] = "new"

    theirs = lance.dataset(tmp_path / "t")
    theirs.validate()
    assert _by_id(theirs.to_table()) == _by_id(ds.to_table()) == expected
    chosen = np.random.default_rng(2).choice(ds.count_rows(), 300).tolist()
    for columns in (None, ["vector"], ["text", "vector"]):
        assert ds.take(chosen, columns=columns).equals(theirs.take(chosen, columns=columns))
    matching = ds.to_table(filter="id % 97 = 5", columns=["vector", "id"])
    assert _sorted(matching) == _sorted(theirs.to_table(filter="id % 97 = 5", columns=["vector", "id"]))
    assert len(copied) >= 8 and all(copied)


def _sorted(table: pa.Table) -> list[dict[str, object]]:
    return table.sort_by("id").to_pylist()


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """Rows that can't be what they should stop an update; no file stays, and the version is the one before."""
    rows = pa.table({"id": np.arange(200_000), "v": np.arange(200_000), "text": ["a text"] * 200_000})
    ds = tw.write_dataset(rows, tmp_path / "t")
    (path,) = (tmp_path / "t/data").iterdir()
    opened = DataFileReader(open_store(str(tmp_path / "t")), f"data/{path.name}", ["v"])._copied(5000)
    assert opened is not None
    with path.open("r+b") as file:
        file.seek(int(opened.columns["v"].positions(np.array([100_000]))[0]) + 8)
        file.write(b"\x3f")
    before = {str(each): each.stat().st_size for each in (tmp_path / "t").rglob("*")}
    with pytest.raises(CorruptTable, match="column v: a chunk of its values has another size than it says"):
        ds.update({"text": "'new'"}, where="id % 60 = 0")
    assert {str(each): each.stat().st_size for each in (tmp_path / "t").rglob("*")} == before
    assert tw.dataset(tmp_path / "t").version == lance.dataset(tmp_path / "t").version == 1
