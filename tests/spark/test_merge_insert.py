"""Merge insert on Spark: the source lies where workers find it, tasks match and write, and nothing stays behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from tests.concurrency.leftovers import unreferenced
from tests.unit.operations.merge_insert.merge_model import (
    CASES,
    KEYS,
    Case,
    TableRow,
    builder,
    expected,
    sorted_rows,
    source,
    target,
)

import tablewright as tw
from tablewright.engine.spark.inputs import frame_of
from tablewright.errors import InvalidRequest

COUNTS = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")


def _table(folder: Path, stable: bool) -> str:
    uri = str(folder / "t.lance")
    tw.write_dataset(target(), uri, max_rows_per_file=6, enable_stable_row_ids=stable)
    tw.dataset(uri).delete("s in ('row 1', 'row 8')")
    return uri


def _rows(uri: str) -> list[TableRow]:
    table = tw.dataset(uri).to_table(with_row_id=True)
    return [TableRow({k: v for k, v in row.items() if k != "_rowid"}, row["_rowid"]) for row in table.to_pylist()]


def _leftovers(uri: str) -> set[str]:
    paths = [str(path.relative_to(uri)) for path in Path(uri).rglob("*") if path.is_file()]
    return unreferenced(tw.dataset(uri), paths)


@pytest.mark.parametrize(("case", "stable"), [(case, i % 2 == 0) for i, case in enumerate(CASES)], ids=str)
def test_every_combination_of_clauses(spark: Any, case: Case, stable: bool, tmp_path: Path) -> None:
    """Stable ids and addresses take turns; with the local engine every case has both."""
    uri = _table(tmp_path, stable)
    before = _rows(uri)
    outcome = expected(case, before, source(case).to_pylist())
    merge = case.configure(builder(tw.dataset(uri, engine=spark), KEYS[case.key]))
    result = merge.execute(source(case))
    assert {name: result[name] for name in COUNTS} == outcome.counts
    after = _rows(uri)
    assert sorted_rows([row.values for row in after]) == sorted_rows(outcome.rows)
    if stable:
        kept = {row.identity: row.values for row in outcome.kept}
        assert {row.identity: row.values for row in after if row.identity in kept} == kept
    lance.dataset(uri).validate()
    assert not _leftovers(uri)


@pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
def test_dataframes(spark: Any, mode: str, tmp_path: Path) -> None:
    """Executors keep the frame; types that Spark does not have come back as the table's."""
    rng = np.random.default_rng(5)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(4000, dtype=np.float32)), 4)
    table = pa.table({"id": pa.array(range(1000), pa.uint32()), "x": rng.random(1000), "v": vectors})
    uri = str(tmp_path / "t.lance")
    tw.write_dataset(table, uri, max_rows_per_file=300)
    new = table.slice(100, 200).set_column(0, "id", pa.array([*range(500, 600), *range(5000, 5100)], pa.uint32()))
    frame = frame_of(new, spark).repartition(3)
    merge = builder(tw.dataset(uri), "id").when_matched_update_all().when_not_matched_insert_all().write_mode(mode)
    result = merge.execute(frame)
    assert (result["num_updated_rows"], result["num_inserted_rows"]) == (100, 100)
    kept = pa.concat_tables([table.slice(0, 500), new.slice(0, 100), table.slice(600), new.slice(100)])
    assert tw.dataset(uri).to_table(order_by=["id"]).equals(kept.cast(tw.dataset(uri).schema))
    assert not _leftovers(uri)
    partial = builder(tw.dataset(uri), "id").when_matched_update_all("source.x > target.x")
    assert partial.execute(frame.select("x", "id").limit(50))["num_updated_rows"] == 0
    doubled = frame.union(frame)
    with pytest.raises(OSError, match="Ambiguous merge inserts are prohibited"):
        builder(tw.dataset(uri), "id").when_matched_update_all().execute(doubled)
    result = builder(tw.dataset(uri), "id").when_matched_update_all().dedupe("last").execute(doubled)
    assert result["num_updated_rows"] == 200
    assert not _leftovers(uri)


def test_a_task_that_fails_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    schema = pa.schema({"id": pa.int64(), "x": pa.float64()})
    uri = str(tmp_path / "t.lance")
    tw.write_dataset(pa.table({"id": range(20), "x": [0.0] * 20}, schema), uri, max_rows_per_file=5)
    merge = builder(tw.dataset(uri, engine=spark), "id").when_matched_update_all("1 / (source.id - 13) <> 7")
    with pytest.raises(InvalidRequest, match=r"[Dd]ivide by zero"):
        merge.execute(pa.table({"id": [1, 13, 19], "x": [1.0, 2.0, 3.0]}))
    assert tw.dataset(uri).version == 1 and not _leftovers(uri)
