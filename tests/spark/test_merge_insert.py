"""Merge insert on Spark: the source lies where workers find it, tasks match and write, and nothing stays behind."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from tests.concurrency.leftovers import unreferenced
from tests.depth import deep, pairs_first
from tests.spark.helpers import frame_of
from tests.unit.operations.merge_insert.merge_model import (
    CASES,
    GONE,
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
from tablewright.errors import InvalidRequest, SchemaMismatch

COUNTS = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Path]:
    """The model's table, without and with stable ids: to be copied."""
    tables = {}
    for stable in (False, True):
        tables[stable] = path = tmp_path_factory.mktemp("merge") / f"{stable}.lance"
        tw.write_dataset(target(), path, max_rows_per_file=6, enable_stable_row_ids=stable).delete(GONE)
    return tables


def _rows(uri: str) -> list[TableRow]:
    table = tw.dataset(uri, engine="local").to_table(with_row_id=True)
    return [TableRow({k: v for k, v in row.items() if k != "_rowid"}, row["_rowid"]) for row in table.to_pylist()]


def _leftovers(uri: str) -> set[str]:
    paths = [str(path.relative_to(uri)) for path in Path(uri).rglob("*") if path.is_file()]
    return unreferenced(tw.dataset(uri), paths)


@dataclass(frozen=True)
class Run:
    """A case on one kind of table; its source is an Arrow table, or a DataFrame."""

    case: Case
    stable: bool
    by_frame: bool

    @property
    def facts(self) -> dict[str, Any]:
        case = self.case
        clauses = case.matched, case.inserts, case.by_source
        kinds = {"key": case.key, "partial": case.partial, "stable": self.stable, "by frame": self.by_frame}
        return {"clauses": clauses, **kinds}


def _runs() -> list[Run]:
    """Every case on both kinds of table, its source in one of the two ways; all pairs of facts are among the first."""
    possible = [
        Run(case, stable, (number + stable + turn) % 2 == 0)
        for turn in (0, 1)
        for number, case in enumerate(CASES)
        for stable in (False, True)
    ]
    chosen: dict[tuple[Case, bool], Run] = {}
    for run in pairs_first((run, run.facts) for run in possible):
        chosen.setdefault((run.case, run.stable), run)
    return list(chosen.values())


EVERY_RUN = _runs()
RUNS = EVERY_RUN[: deep(30, 348)]


def test_the_runs_are_of_all_kinds() -> None:
    """Each combination of clauses meets each kind of key, rows, ids and source, and these meet one another."""
    assert len(EVERY_RUN) == 348
    values: dict[str, set[Any]] = {}
    for run in EVERY_RUN:
        for name, value in run.facts.items():
            values.setdefault(name, set()).add(value)
    assert [len(each) for each in values.values()] == [5 * 2 * 3 - 1, 3, 2, 2, 2]
    seen = {pair for run in EVERY_RUN[:87] for pair in itertools.combinations(run.facts.items(), 2)}
    assert len(seen) == sum(len(a) * len(b) for a, b in itertools.combinations(values.values(), 2))


@pytest.mark.parametrize("stable", [False, True], ids=["address", "stable"])
@pytest.mark.parametrize("partial", [False, True], ids=["full", "partial"])
@pytest.mark.parametrize("key", KEYS)
def test_every_combination_of_clauses(
    spark: Any, written: dict[bool, Path], key: str, partial: bool, stable: bool, tmp_path: Path
) -> None:
    """Several at a time, since a small merge mostly waits for Spark; Arrow tables and DataFrames take turns."""
    runs = [run for run in RUNS if (run.case.key, run.case.partial, run.stable) == (key, partial, stable)]
    cases = {run.case.matched == "fail": run.case for run in runs if run.by_frame}
    frames = {fails: frame_of(source(case), spark) for fails, case in cases.items()}

    def run(index: int) -> None:
        case, uri = runs[index].case, str(tmp_path / f"{index}.lance")
        shutil.copytree(written[stable], uri)
        outcome = expected(case, _rows(uri), source(case).to_pylist())
        merge = case.configure(builder(tw.dataset(uri, engine=spark), KEYS[key]))
        result = merge.execute(frames[case.matched == "fail"] if runs[index].by_frame else source(case))
        assert {name: result[name] for name in COUNTS} == outcome.counts, str(case)
        after = _rows(uri)
        assert sorted_rows([row.values for row in after]) == sorted_rows(outcome.rows), str(case)
        if stable:
            kept = {row.identity: row.values for row in outcome.kept}
            assert {row.identity: row.values for row in after if row.identity in kept} == kept, str(case)
        lance.dataset(uri).validate()
        assert not _leftovers(uri), str(case)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(run, range(len(runs))))


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


def test_bad_input_changes_nothing(spark: Any, tmp_path: Path) -> None:
    """Typed errors come home from workers, and no file stays: neither the table's nor the kept source's."""
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("must", pa.int64(), nullable=False)])
    uri = str(tmp_path / "t.lance")
    tw.write_dataset(pa.table([[1, 2], [1, 2]], schema=schema), uri, max_rows_per_file=1)
    files = sorted(tmp_path.rglob("*"))
    new = pa.table({"id": [2, 5], "must": [3, 4]})
    frame = frame_of(new, spark)
    broken = frame.mapInArrow(_broken, "id long, must long")
    bad: list[tuple[Any, type[Exception], str]] = [
        (frame.union(frame), OSError, r"Ambiguous merge inserts.*\(id = "),
        (pa.concat_tables([new, new]), OSError, r"Ambiguous merge inserts.*\(id = 2\)"),
        (frame.withColumnRenamed("must", "zz"), OSError, r"unexpected=\[zz\]"),
        (frame.select("must"), OSError, "No field named id"),
        (frame.select(frame.id.cast("string"), "must"), OSError, "`id` should have type int64 but type was string"),
        (frame.selectExpr("id", "nullif(must, 4) as must"), SchemaMismatch, "'must' is declared as non-nullable"),
        (pa.table({"id": [2, 5], "must": [3, None]}), SchemaMismatch, "'must' is declared as non-nullable"),
        (iter([*new.to_batches(), 5]), TypeError, "Unknown data type"),
        (broken, InvalidRequest, "no more rows"),
    ]
    for data, kind, message in bad:
        merge = builder(tw.dataset(uri, engine=spark), "id").when_matched_update_all().when_not_matched_insert_all()
        with pytest.raises(kind, match=message):
            merge.execute(data)
        assert sorted(tmp_path.rglob("*")) == files, message
    fails = builder(tw.dataset(uri, engine=spark), "id").when_matched_fail().when_not_matched_insert_all()
    with pytest.raises(InvalidRequest, match="found matching row with key values: id = 2"):
        fails.execute(frame)
    unwritten = builder(tw.dataset(uri, engine=spark), "id").when_matched_update_all()
    with pytest.raises(SchemaMismatch, match="'must' is declared as non-nullable"):
        unwritten.execute(frame.selectExpr("id", "nullif(must, 3) as must"))
    assert sorted(tmp_path.rglob("*")) == files
    assert unwritten.execute(frame.selectExpr("id", "nullif(must, 4) as must"))["num_updated_rows"] == 1


def test_a_frame_that_fails_late_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    """One partition lies in a file by the time that Spark itself fails in the other, and tells nothing of the first."""
    uri = str(tmp_path / "t.lance")
    tw.write_dataset({"id": [1, 2]}, uri)
    data = str(tmp_path / "t.lance" / "data")

    def second_fails(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows and batch.column("id")[0].as_py() >= 10:
                deadline = time.monotonic() + 20
                while len(os.listdir(data)) < 2 and time.monotonic() < deadline:
                    time.sleep(0.01)
                raise RuntimeError("no more rows")
            yield batch

    frame = spark.range(0, 20, 1, 2).mapInArrow(second_fails, "id long")
    with pytest.raises(InvalidRequest, match=r"(?s)The DataFrame can't be computed.*no more rows"):
        builder(tw.dataset(uri), "id").when_not_matched_insert_all().execute(frame)
    assert tw.dataset(uri).version == 1 and not _leftovers(uri)


def _broken(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number, batch in enumerate(batches):
        yield batch
        if number == 0 and batch.num_rows:
            raise RuntimeError("no more rows")


def test_types_that_spark_changes(spark: Any, tmp_path: Path) -> None:
    """As keys, where they match exactly, and as members of structs that are given in part."""
    columns = {
        "u": pa.array([2**64 - 1, 2**53, 2**53 + 1], pa.uint64()),
        "ns": pa.array([1, 2000, 2001], pa.timestamp("ns")),
        "f": pa.array([0.0, -0.0, float("nan")]),
        "half": pa.array([1.5, 2.5, 3.5], pa.float16()),
        "w": pa.array(["a", "b", "c"]).dictionary_encode(),
        "fixed": pa.array([b"ab", b"\0\0", b"cd"], pa.binary(2)),
    }
    t = pa.array([{"u": 1, "z": 1}, {"u": 2, "z": 2}, None], pa.struct({"u": pa.uint16(), "z": pa.int64()}))
    uri = str(tmp_path / "t.lance")
    tw.write_dataset(pa.table({"n": range(3)} | columns | {"t": t}), uri)
    some = pa.array([{"u": 9}], pa.struct({"u": pa.uint16()}))
    for turn, (name, array) in enumerate(columns.items()):
        frame = frame_of(pa.table({name: array.slice(1, 1), "n": pa.array([100 + turn]), "t": some}), spark)
        merge = builder(tw.dataset(uri), name).when_matched_update_all().when_not_matched_insert_all()
        result = merge.execute(frame)
        assert (result["num_updated_rows"], result["num_inserted_rows"]) == (1, 0), name
    found = tw.dataset(uri).to_table()
    assert sorted(found["n"].to_pylist()) == [0, 2, 105]
    assert sorted(map(repr, found["t"].to_pylist())) == ["None", "{'u': 1, 'z': 1}", "{'u': 9, 'z': 2}"]
