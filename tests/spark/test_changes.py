"""Deletes, updates and new columns on Spark: the same tables as the local engine makes, and nothing else comes back.

Every change runs on a table through Spark and on a copy of it through the local engine; a plain model says what both
have to be. A task that fails or dies leaves nothing that anybody sees.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyspark import cloudpickle
from tests.concurrency.leftovers import unreferenced
from tests.differential import change_strategies
from tests.differential.change_strategies import History, changes
from tests.property import row_model
from tests.property.row_model import AddColumns, Append, Change, Delete, Expression, Update, ids_in, literal, plus

import tablewright as tw
from tablewright.engine.spark import answers as spark_answers
from tablewright.engine.spark import tasks as spark_tasks
from tablewright.errors import InvalidRequest, TablewrightError


@pytest.fixture(scope="module", autouse=True)
def _functions_travel() -> Iterator[None]:
    """Functions of the tests go to workers as they are: a worker does not know the tests' modules."""
    for module in (row_model, change_strategies):
        cloudpickle.register_pickle_by_value(module)
    yield
    for module in (row_model, change_strategies):
        cloudpickle.unregister_pickle_by_value(module)


DOUBLED = Expression("a * 2", lambda row: row["a"] and 2 * row["a"], frozenset({"a"}))
CHANGES: dict[str, Change] = {
    "delete": Delete(ids_in({1, 2, 9, 17})),
    "delete by expression": Delete(ids_in({1, 2, 9}), by_arrow=True),
    "delete a fragment": Delete(ids_in(range(7, 17))),
    "delete nothing": Delete(ids_in({999})),
    "update rows": Update({"a": plus("a", 100), "b": literal("x")}, ids_in({1, 9, 10}), "rewrite_rows"),
    "update columns": Update({"a": plus("a", 100), "st.x": plus("id", 1)}, ids_in({1, 9, 10}), "rewrite_columns"),
    "update both ways": Update({"a": literal(5), "b": literal("x"), "st.x": literal(9)}, ids_in({1, *range(8, 16)})),
    "update all": Update({"b": literal(None)}, row_model.always(), "rewrite_columns"),
    "add columns by SQL": AddColumns("n", pa.int64(), DOUBLED),
    "add columns by function": AddColumns("n", pa.int64(), DOUBLED, "udf"),
}


def _history(folder: Path, *, stable: bool) -> History:
    """Three fragments of eight rows, one of them with a deleted row."""
    history = History(folder, tw, stable=stable, count=24, per_file=8)
    history.take(tw, Delete(ids_in({20})))
    return history


def _shape(uri: str) -> list[tuple[int, int, int, list[list[int]]]]:
    """What fragments are made of, names of files aside."""
    return [
        (
            fragment.fragment_id,
            fragment.physical_rows,
            fragment.num_deletions,
            [list(file.fields) for file in fragment.data_files()],
        )
        for fragment in lance.dataset(uri).get_fragments()
    ]


def _clean(uri: str) -> bool:
    paths = [str(path.relative_to(uri)) for path in Path(uri).rglob("*") if path.is_file()]
    return not unreferenced(tw.dataset(uri), paths)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("name", CHANGES)
def test_spark_makes_the_table_that_the_local_engine_makes(
    spark: Any, tmp_path: Path, name: str, stable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, change = _history(tmp_path, stable=stable), CHANGES[name]
    collect, jobs = spark_answers._collect, []
    monkeypatch.setattr(spark_answers, "_collect", lambda *given: jobs.append(given) or collect(*given))
    copy = str(tmp_path / "copy.lance")
    shutil.copytree(history.uri, copy)
    change.run(tw, tw.dataset(copy, engine="local"))
    assert not jobs
    history.take(tw, change, engine=spark)  # the model, Tablewright and pylance agree on the rows
    assert jobs, "nothing ran on Spark"
    assert _shape(history.uri) == _shape(copy)
    system = ["id", "_rowid", "_rowaddr"]
    here, there = (tw.dataset(uri).to_table(columns=system) for uri in (history.uri, copy))
    assert here.equals(there)
    made, wanted = (type(tw.dataset(uri).read_transaction(3).operation) for uri in (history.uri, copy))
    assert made is wanted
    assert _clean(history.uri)


@pytest.mark.timeout(900)
@settings(max_examples=max(2, settings.default.max_examples // 2))
@given(data=st.data(), stable=st.booleans(), count=st.integers(4, 20), per_file=st.integers(4, 10))
def test_any_history_on_spark_reads_like_the_model(
    spark: Any, data: st.DataObject, stable: bool, count: int, per_file: int
) -> None:
    """Steps by us on Spark and by pylance in turns."""
    with tempfile.TemporaryDirectory(prefix="tablewright-spark-changes-") as folder:
        history = History(Path(folder), tw, stable=stable, count=count, per_file=per_file)
        for number in range(data.draw(st.integers(1, 3))):
            library = data.draw(st.sampled_from([tw, tw, lance]))
            change = data.draw(changes(history.model, library, f"n{number}"))
            event(f"{library.__name__} {type(change).__name__} {getattr(change, 'mode', '')}")
            options = {} if library is lance or isinstance(change, Append) else {"engine": spark}
            history.take(library, change, **options)


@pytest.mark.parametrize("name", ["delete", "update rows", "update columns", "add columns by SQL"])
def test_stale_handles_on_spark_pass_each_other(spark: Any, tmp_path: Path, name: str) -> None:
    """Affected rows come home from the tasks: a rebase on the driver needs nothing else."""
    history, change = _history(tmp_path, stable=True), CHANGES[name]
    stale = tw.dataset(history.uri, engine=spark)
    other = Delete(ids_in({4, 12}))
    history.take(tw, other, engine=spark)
    before = history.model
    change.run(tw, stale)
    history.version, history.model = 4, change.after(before, 4)
    history.check()
    assert _clean(history.uri)


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
@pytest.mark.parametrize("name", ["delete", "update rows", "update columns", "add columns by SQL"])
def test_stale_handles_on_spark_pass_a_compaction(spark: Any, tmp_path: Path, name: str, stable: bool) -> None:
    """Rows are followed, and column files that workers wrote are carried, on the driver: no task runs again."""
    history, change = _history(tmp_path, stable=stable), CHANGES[name]
    stale = tw.dataset(history.uri, engine=spark)
    tw.dataset(history.uri, engine=spark).optimize.compact_files(materialize_deletions_threshold=0.0)
    before = tw.dataset(history.uri).version
    change.run(tw, stale)
    assert stale.version == before + 1
    history.version, history.model = stale.version, change.after(history.model, stale.version)
    history.check()
    assert _clean(history.uri)


# ------------------------------------------------------------------------------------------------ what goes wrong

FAILING = {
    "update rows": lambda ds: ds.update({"a": "cast(b as int)"}, write_mode="rewrite_rows"),
    "update columns": lambda ds: ds.update({"a": "cast(b as int)"}, write_mode="rewrite_columns"),
    "add columns": lambda ds: ds.add_columns({"n": "cast(b as int)"}),
    "delete": lambda ds: ds.delete("cast(b as int) >= 0"),
}


@pytest.mark.parametrize("name", FAILING)
def test_a_failing_task_leaves_nothing(spark: Any, tmp_path: Path, name: str) -> None:
    """One row in the last fragment can't be computed; the tasks of the other fragments did their work."""
    uri = str(tmp_path / "t.lance")
    rows = {"id": range(30), "a": [0] * 30, "b": [*(str(i) for i in range(29)), "no number"]}
    tw.write_dataset(pa.table(rows), uri, max_rows_per_file=5)
    before = sorted(Path(uri).rglob("*"))
    with pytest.raises(InvalidRequest, match="no number"):
        FAILING[name](tw.dataset(uri, engine=spark))
    assert [path for path in sorted(Path(uri).rglob("*")) if path.is_file()] == [p for p in before if p.is_file()]
    assert (tw.dataset(uri).version, tw.dataset(uri).count_rows()) == (1, 30)


def test_a_function_that_fails_on_a_worker_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    tw.write_dataset(pa.table({"id": range(30)}), uri, max_rows_per_file=5)
    before = {path for path in Path(uri).rglob("*") if path.is_file()}

    def fails(batch: Any) -> Any:
        if 22 in batch["id"].to_pylist():
            raise ZeroDivisionError("row 22 is too much")
        return pa.record_batch({"n": batch["id"]})

    function = tw.batch_udf(output_schema=pa.schema({"n": pa.int64()}))(fails)
    with pytest.raises((TablewrightError, ZeroDivisionError), match="row 22 is too much"):
        tw.dataset(uri, engine=spark).add_columns(function)
    assert {path for path in Path(uri).rglob("*") if path.is_file()} == before


# ----------------------------------------------------------------------------------------- nothing but metadata


@pytest.mark.parametrize("name", ["delete", "update rows", "update columns", "add columns"])
def test_only_metadata_comes_back(spark: Any, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows with megabytes of vectors the driver gets paths, counts and bitmaps."""
    uri, rows = str(tmp_path / "t.lance"), 20_000
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.random.default_rng(1).random(rows * 64, np.float32)), 64)
    table = pa.table({"id": pa.array(range(rows), pa.int64()), "x": pa.array([0.5] * rows), "v": vectors})
    tw.write_dataset(table, uri, max_rows_per_file=rows // 4)
    sizes: list[int] = []
    sent: list[int] = []
    collect, distribute = spark_answers._collect, spark_tasks.distribute

    def weighed(*arguments: Any) -> Any:
        found = list(collect(*arguments))
        sizes.extend(len(result) for _, _, _, result in found)
        return iter(found)

    def distributed(session: Any, payloads: Any, *more: Any) -> Any:
        sent.extend(map(len, payloads))
        return distribute(session, payloads, *more)

    monkeypatch.setattr(spark_answers, "_collect", weighed)
    monkeypatch.setattr(spark_tasks, "distribute", distributed)
    dataset = tw.dataset(uri, engine=spark)
    match name:
        case "delete":
            dataset.delete("id % 2 = 0")
        case "add columns":
            dataset.add_columns({"y": "x * 2 + id"})
        case _:
            dataset.update({"x": "x + id"}, where="id % 2 = 0", write_mode=f"rewrite_{name.split()[1]}")
    assert sizes, "nothing ran on Spark"
    assert sum(sizes) < 64_000, f"{sum(sizes)} bytes came back"
    assert sum(sent) < 256_000, f"{sum(sent)} bytes were sent"
    lance.dataset(uri).validate()
    assert tw.dataset(uri).count_rows() == (rows // 2 if name == "delete" else rows)
