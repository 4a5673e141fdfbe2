"""Every kind of work on Spark, once, beside the local engine: both make the same of the same table.

It is small, so that it also runs where a session is expensive: on a standalone cluster (``test_cluster.py``) and
through Spark Connect (``test_processes.py``).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.verbs import VERBS, make_table, orphans, rows_of, seen

import tablewright as tw
from tablewright.operations.merge_insert.limits import MatchLimits, MergeLimits

BY_INDEX = MergeLimits(match=MatchLimits(lookup_ns=0, lookup_key_ns=0.001, take_row_ns=0))


def _merge_by_index(uri: str, engine: Any) -> None:
    tw.dataset(uri, engine="local").create_scalar_index("id", "BTREE", name="by_id")
    source = rows_of([*range(0, 80, 7), *range(300, 305)], factor=-1)
    builder = tw.dataset(uri, engine=engine).merge_insert("id")._with(limits=BY_INDEX)
    builder = builder.when_matched_update_all().when_not_matched_insert_all()
    assert "strategy: index" in builder.analyze_plan(source)
    builder.execute(source)


def _delete_by_source(uri: str, engine: Any) -> None:
    builder = tw.dataset(uri, engine=engine).merge_insert("id").when_matched_delete()
    builder.when_not_matched_by_source_delete("id > 40").execute(rows_of(range(0, 60, 4)))


def _compact_deferred(uri: str, engine: Any) -> None:
    tw.dataset(uri, engine="local").create_scalar_index("a", "BTREE", name="by_a")
    tw.dataset(uri, engine=engine).optimize.compact_files(target_rows_per_fragment=36, defer_index_remap=True)


def _catch_up(uri: str, engine: Any) -> None:
    tw.dataset(uri, engine="local").create_scalar_index("a", "BTREE", name="by_a")
    tw.dataset(uri, engine="local").insert(rows_of(range(400, 420)))
    tw.dataset(uri, engine=engine).optimize.optimize_indices()


STEPS: dict[str, Callable[[str, Any], Any]] = {
    **VERBS,
    "merge by index": _merge_by_index,
    "delete by source": _delete_by_source,
    "update rows": lambda uri, engine: tw.dataset(uri, engine=engine).update({"a": "a * 2"}, where="id % 8 = 4"),
    "update columns": lambda uri, engine: tw.dataset(uri, engine=engine).update(
        {"a": "a * 2"}, where="id % 8 = 4", write_mode="rewrite_columns"
    ),
    "delete": lambda uri, engine: tw.dataset(uri, engine=engine).delete("a % 7 = 2"),
    "add columns": lambda uri, engine: tw.dataset(uri, engine=engine).add_columns({"n": "a + 1"}),
    "compaction deferred": _compact_deferred,
    "optimize indices": _catch_up,
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, str]:
    """One with stable row ids, and one without."""
    folder = tmp_path_factory.mktemp("profile")
    return {stable: make_table(folder / f"{stable}.lance", stable=stable) for stable in (False, True)}


@pytest.fixture
def table(tables: dict[bool, str]) -> str:
    return tables[True]


@pytest.mark.parametrize("step", STEPS)
def test_spark_makes_what_the_local_engine_makes(
    spark: Any, tables: dict[bool, str], tmp_path: Path, step: str
) -> None:
    table = tables["deferred" not in step]  # only row addresses change in a compaction
    here, there = (str(shutil.copytree(table, tmp_path / f"{name}.lance")) for name in ("here", "there"))
    STEPS[step](here, "local")
    STEPS[step](there, spark)
    assert seen(there) == seen(here) != seen(table)
    assert not orphans(there)


def test_spark_reads_what_is_read_here(spark: Any, table: str) -> None:
    ds = tw.dataset(table)
    here = ds.to_table(columns=["id", "s"], filter="a % 3 = 1")
    there = ds.to_spark(spark, ["id", "s"], "a % 3 = 1").toArrow()
    assert there.sort_by("id").equals(here.sort_by("id").cast(there.schema)) and len(here)
    assert tw.dataset(table, engine=spark).count_rows("a % 3 = 1") == len(here)


def test_the_change_feed(spark: Any, table: str, tmp_path: Path) -> None:
    uri = str(shutil.copytree(table, tmp_path / "t.lance"))
    VERBS["merge"](uri, spark)
    feed = tw.dataset(uri).changes(2)
    columns = ["id", "a", "_change_type"]
    here, there = feed.to_table().select(columns), feed.to_spark(spark).select(*columns).toArrow()
    assert _sorted(there) == _sorted(here) and len(here) > 20


def _sorted(rows: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in rows.to_pylist())
