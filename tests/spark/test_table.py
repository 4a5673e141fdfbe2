"""A table in delta-spark's words, through Spark: what is a DataFrame there is one here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pytest

import tablewright as tw

pytestmark = pytest.mark.timeout(300)


def test_the_words_of_delta(spark: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    tw.write_dataset(spark.range(10).selectExpr("id", "id * 10 AS n"), path)
    tw.write_dataset(spark.range(10, 12).selectExpr("id", "id * 10 AS n"), path, mode="append")
    table = tw.table(spark, str(path))
    assert table.toDF().count() == 12
    updates = spark.createDataFrame([(3, 333), (50, 500)], "key bigint, n bigint")
    merge = table.alias("t").merge(updates, "t.id = s.key")
    counts = merge.whenMatchedUpdateAll("s.n > t.n").whenNotMatchedInsertAll().execute()
    assert (counts["num_updated_rows"], counts["num_inserted_rows"]) == (1, 1)
    assert [tuple(row) for row in table.toDF().where("n > 200").orderBy("id").collect()] == [(3, 333), (50, 500)]
    table.update("id = 50", {"n": "n + 1"})
    table.delete("id < 3")
    compacted = table.optimize().executeCompaction().first()
    assert compacted["numFragmentsRemoved"] > compacted["numFragmentsAdded"]
    history = table.history(3).collect()
    assert [row["version"] for row in history] == sorted((row["version"] for row in history), reverse=True)
    assert "Rewrite" in {row["operation"] for row in history}
    detail = table.detail().first()
    assert (detail["format"], detail["numRows"], detail["location"]) == ("lance", 10, str(path))
    version = table.restoreToVersion(1)
    assert lance.dataset(path).version == version == detail["version"] + 1
    assert lance.dataset(path).count_rows() == 10
    assert table.vacuum(0)["old_versions"] > 0
    assert len(lance.dataset(path).versions()) == 1
