"""Merge insert through BTREE indices that pylance built: whole and partial coverage, deleted and moved rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.operations.merge_insert.merge_model import CHEAP_INDEX, builder

from .referee import lance, ours


def _key(i: int, kind: str) -> Any:
    return i if kind == "int" else f"key {i:05}" if kind == "text" else i / 8


def _rows(ids: Any, kind: str, mark: str) -> pa.Table:
    numbers = [int(i) for i in ids]
    return pa.table({"id": [_key(i, kind) for i in numbers], "n": numbers, "s": [f"{mark} {i}" for i in numbers]})


@pytest.mark.parametrize("condition", [None, "source.n > target.n - 1 and target.s <> 'old 7'"])
@pytest.mark.parametrize("stable", [False, True], ids=["address", "stable"])
@pytest.mark.parametrize("kind", ["int", "text", "float"])
def test_upserts_through_an_index(tmp_path: Path, kind: str, stable: bool, condition: str | None) -> None:
    rng = np.random.default_rng(3)
    uri = str(tmp_path / "t.lance")
    ds = lance.write_dataset(
        _rows(rng.permutation(3000), kind, "old"), uri, max_rows_per_file=800, enable_stable_row_ids=stable
    )
    ds.create_scalar_index("id", "BTREE")
    lance.write_dataset(_rows(range(3000, 3300), kind, "old"), uri, mode="append")
    lance.dataset(uri).delete("n % 13 = 5")
    lance.dataset(uri).update({"s": "concat('moved ', s)"}, where="n < 60")
    model = {row["n"]: row for row in lance.dataset(uri).to_table().to_pylist()}
    for turn in range(3):
        ids = np.unique(np.concatenate(([7, 8], rng.choice(3600, 150))))
        new = _rows(rng.permutation(ids), kind, f"turn {turn}")
        merge = (
            builder(ours.dataset(uri), "id", CHEAP_INDEX)
            .when_matched_update_all(condition)
            .when_not_matched_insert_all()
        )
        assert "ScalarIndexQuery: index=[id_idx](BTree)" in merge.explain_plan()
        result = merge.execute(new)
        updated = 0
        for row in new.to_pylist():
            known = model.get(row["n"])
            updated += known is not None and (condition is None or known["s"] != "old 7")
            if known is None or condition is None or known["s"] != "old 7":
                model[row["n"]] = row
        assert result["num_updated_rows"] == updated
        read = lance.dataset(uri)
        read.validate()
        assert {row["n"]: row for row in read.to_table().to_pylist()} == model
        assert read.count_rows() == len(model)
        probe = read.to_table(filter=f"id = {_literal(_key(int(ids[5]), kind))}")
        assert probe.to_pylist() == [model[int(ids[5])]]


def _literal(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def test_when_the_index_is_not_used(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ds = lance.write_dataset(_rows(range(100), "int", "old"), uri)
    ds.create_scalar_index("id", "BTREE")
    mine = ours.dataset(uri)
    assert (
        "index covers 100 rows in 1 of 1 fragments"
        in builder(mine, "id", CHEAP_INDEX).when_matched_delete().explain_plan()
    )
    merge = builder(mine, "id", CHEAP_INDEX).when_matched_delete()
    assert "use_index=False was asked for" in merge.use_index(False).explain_plan()
    merge = builder(mine, "id", CHEAP_INDEX).when_not_matched_by_source_delete()
    assert "which no index knows" in merge.explain_plan()
    two = builder(mine, ["s", "n"], CHEAP_INDEX).when_matched_delete().explain_plan()
    assert "no BTREE index on any of the key's 2 columns" in two
    assert "there is no BTREE index on the key" in builder(mine, "n", CHEAP_INDEX).when_matched_delete().explain_plan()


def test_an_index_on_a_column_that_does_not_change_follows_moved_rows(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ds = lance.write_dataset(_rows(range(100), "int", "old"), uri, max_rows_per_file=50, enable_stable_row_ids=True)
    ds.create_scalar_index("n", "BITMAP")
    ds.create_scalar_index("id", "BITMAP")
    merge = builder(ours.dataset(uri), "id", CHEAP_INDEX).when_matched_update_all().when_not_matched_insert_all()
    merge.write_mode("rewrite_rows").execute(_rows([3, 60, 500], "int", "new").select(["id", "s"]))
    coverage = {index["name"]: index["fragment_ids"] for index in lance.dataset(uri).list_indices()}
    assert coverage == {"n_idx": {0, 1, 2}, "id_idx": {0, 1, 2}}  # 2 has the moved rows, 3 the new one
    for column in ("id", "n"):
        assert lance.dataset(uri).to_table(filter=f"{column} = 60")["s"].to_pylist() == ["new 60"]


@pytest.mark.parametrize("condition", [None, "source.n > target.n"])
@pytest.mark.parametrize("stable", [False, True], ids=["address", "stable"])
@pytest.mark.parametrize("indexed", [("a",), ("b",), ("a", "b")], ids=str)
def test_a_key_of_several_columns(
    tmp_path: Path, indexed: tuple[str, ...], stable: bool, condition: str | None
) -> None:
    """One of the indices finds rows, and the whole key is compared in these; the rest of the table is scanned."""

    def rows(start: int, stop: int, mark: int) -> pa.Table:
        numbers = range(start, stop)
        a = [None if i % 29 == 7 else i // 7 for i in numbers]
        return pa.table({"a": a, "b": [f"b {i % 7}" for i in numbers], "n": [i % 3 + mark for i in numbers]})

    results = []
    for use_index in (True, False):
        uri = str(tmp_path / f"{use_index}.lance")
        ds = lance.write_dataset(rows(0, 700, 0), uri, max_rows_per_file=150, enable_stable_row_ids=stable)
        for column in indexed:
            ds.create_scalar_index(column, "BTREE")
        lance.write_dataset(rows(700, 800, 0), uri, mode="append")
        lance.dataset(uri).delete("a % 13 = 5")
        lance.dataset(uri).update({"n": "n + 1"}, where="a < 9")
        merge = (
            builder(ours.dataset(uri), ["a", "b"], CHEAP_INDEX)
            .when_matched_update_all(condition)
            .when_not_matched_insert_all()
            .use_index(use_index)
        )
        assert ("ScalarIndexQuery" in merge.explain_plan()) == use_index
        counts = merge.execute(rows(50, 120, 1))
        again = merge.execute(rows(680, 830, 1))
        table = lance.dataset(uri).to_table()
        order = [("a", "ascending"), ("b", "ascending"), ("n", "ascending")]
        results.append((counts, again, table.sort_by(order).to_pylist()))
    assert results[0] == results[1]
    assert results[0][0]["num_updated_rows"] > 0
