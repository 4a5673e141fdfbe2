"""The changes that faults are tried on: a table before each, the change itself, and what a reader sees.

Each runs on any engine. Rows are few, and limits so small that every stage of a change has several tasks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import lance
import pyarrow as pa
import pyarrow.parquet as pq
from tests.concurrency.leftovers import unreferenced
from tests.unit.indices.btree.tables import tiny

import tablewright as tw
from tablewright.engine.detect import is_connect
from tablewright.operations.merge_insert.limits import MatchLimits, MergeLimits
from tablewright.spark.upsert import QUERY
from tablewright.transaction.stream_state import PREFIX

__all__ = ["OTHERS", "REPLAYED", "SECRET", "VERBS", "Seen", "clean_up", "make_table", "orphans", "rows_of", "seen"]

ROWS, PER_FILE = 80, 20
QUERY_ID = "3f1c9a52-0b54-4f0e-9c1d-7a1f6a5d2e11"
_SHUFFLE = MergeLimits(match=MatchLimits(shuffle_partition_rows=20, shuffle_task_rows=10, keys_per_worker=0))
_BROADCAST = MergeLimits(match=MatchLimits(shuffle_partition_rows=20, shuffle_task_rows=10))


def make_table(path: Path, *, stable: bool = True) -> str:
    """Four fragments of twenty rows, some deleted, with stable row ids or without."""
    made = tw.write_dataset(rows_of(range(ROWS)), path, max_rows_per_file=PER_FILE, enable_stable_row_ids=stable)
    made.delete("id % 10 = 3")
    return str(made.uri)


def rows_of(ids: Sequence[int], factor: int = 1) -> pa.Table:
    """Rows with these ids."""
    numbers = pa.array([factor * i for i in ids], pa.int64())
    return pa.table({"id": pa.array(ids, pa.int64()), "a": numbers, "s": [f"row {i} {factor}" for i in ids]})


def _write(uri: str, engine: Any) -> None:
    """A DataFrame that passes a shuffle, of two partitions that executors write; the rows themselves elsewhere."""
    if engine == "local":
        tw.write_dataset(rows_of(range(200, 240)), uri, mode="append", max_rows_per_file=5)
        return
    frame = engine.range(200, 240, 1, 2).selectExpr("id", "id AS a", "concat('row ', id, ' 1') AS s").repartition(2)
    with mock.patch("tablewright.api.write.COLLECTED_BYTES", 0):
        tw.write_dataset(frame, uri, mode="append", max_rows_per_file=5, engine=engine)


def _upserted() -> pa.Table:
    """Rows of which some have known keys."""
    return rows_of([*range(0, ROWS, 4), *range(100, 106)], factor=-1)


def _upsert(uri: str, engine: Any) -> None:
    builder = tw.dataset(uri, engine=engine).merge_insert("id")._with(limits=_BROADCAST)
    builder.when_matched_update_all().when_not_matched_insert_all().write_mode("rewrite_rows").execute(_upserted())


def _merge_by_clauses(uri: str, engine: Any) -> None:
    """Several clauses on rows that match, on source rows that don't, and on rows of the table that don't."""
    builder = tw.dataset(uri, engine=engine).merge_insert("id")._with(limits=_SHUFFLE).write_mode("rewrite_rows")
    builder.when_matched_delete("source.id % 16 = 0")
    builder.when_matched_update({"a": "source.a - target.a"}, "target.id < 40").when_matched_update_all()
    builder.when_not_matched_insert(
        {"id": "source.id", "s": "'odd'"}, "source.id % 2 = 1"
    ).when_not_matched_insert_all()
    builder.when_not_matched_by_source_update({"s": "'lacked'"}, "target.id % 20 = 1")
    builder.when_not_matched_by_source_delete("target.id % 20 = 2").execute(_upserted())


def _compact(uri: str, engine: Any) -> None:
    tw.dataset(uri, engine=engine).optimize.compact_files(target_rows_per_fragment=36)


def _index(uri: str, engine: Any) -> None:
    with tiny():
        tw.dataset(uri, engine=engine).create_scalar_index("a", "BTREE", name="by_a")


@contextmanager
def _upserts_in_small_tasks() -> Iterator[None]:
    """Executors keep the rows of a batch beside the table, as of a large one, and every stage has several tasks."""
    merge_insert = tw.LanceDataset.merge_insert

    def limited(ds: tw.LanceDataset, *given: Any, **named: Any) -> Any:
        return merge_insert(ds, *given, **named)._with(limits=_BROADCAST).write_mode("rewrite_rows")

    with (
        mock.patch("tablewright.api.merge_source.COLLECTED_BYTES", 0),
        mock.patch.object(tw.LanceDataset, "merge_insert", limited),
    ):
        yield


def _stream_batch(uri: str, engine: Any) -> None:
    """A batch of a stream, as Spark calls the function: in a thread that has the query's id, with a DataFrame.

    Without Spark, and on Connect, the id is given as the stream's name. To call it again is to replay it.
    """
    rows = _upserted() if engine == "local" else engine.createDataFrame(_upserted()).repartition(2)
    with _upserts_in_small_tasks():
        ds = tw.dataset(uri, engine=engine)
        if engine == "local" or is_connect(engine):
            tw.stream_upsert(ds, on="id", name=QUERY_ID)(rows, 0)
            return
        engine.sparkContext.setLocalProperty(QUERY, QUERY_ID)
        try:
            tw.stream_upsert(ds, on="id")(rows, 0)
        finally:
            engine.sparkContext.setLocalProperty(QUERY, None)


def _stream_query(uri: str, spark: Any) -> None:
    """The same batch by a real query, whose source and checkpoint are beside the table. Run again, it goes on."""
    source, checkpoint = Path(f"{uri}.source"), Path(f"{uri}.checkpoint")
    if not source.exists():
        source.mkdir()
        pq.write_table(_upserted(), source / "rows.parquet")
        _name_query(checkpoint)
    with _upserts_in_small_tasks():
        stream = spark.readStream.schema("id bigint, a bigint, s string").parquet(str(source)).writeStream
        stream = stream.foreachBatch(tw.stream_upsert(tw.dataset(uri, engine=spark), on="id"))
        query = stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()


def _name_query(checkpoint: Path) -> None:
    """A checkpoint has the id of its query, and nothing else before the first batch."""
    checkpoint.mkdir()
    (checkpoint / "metadata").write_text(json.dumps({"id": QUERY_ID}))


SECRET = "wJalrXUtnFEMI-not-to-be-seen"


def _update_with_credentials(uri: str, engine: Any) -> None:
    options = {"aws_access_key_id": "AKIA-not-to-be-seen", "aws_secret_access_key": SECRET}
    tw.dataset(uri, engine=engine, storage_options=options).update({"a": "a + 1"}, where="id < 50")


VERBS: dict[str, Callable[[str, Any], None]] = {
    "write": _write,
    "merge": _upsert,
    "merge by shuffle": _merge_by_clauses,
    "compaction": _compact,
    "index build": _index,
    "stream batch": _stream_batch,
}
"""By name: a function of the table's path and the engine."""

REPLAYED = ("stream batch",)
"""Changes that Spark runs again after a crash, whether they were committed or not: the second time changes nothing."""

OTHERS: dict[str, Callable[[str, Any], None]] = {
    "update with credentials": _update_with_credentials,
    "stream query": _stream_query,
}


@dataclass(frozen=True)
class Seen:
    """What a reader sees of a table; versions that change nothing (ids that were reserved) don't show."""

    rows: tuple[tuple[Any, ...], ...]
    fragments: tuple[tuple[int, int], ...]
    indices: tuple[str, ...]
    found: tuple[int, ...]
    streams: tuple[tuple[str, str], ...]  # the last batch of each: in one manifest with its rows


def seen(uri: str) -> Seen:
    """The newest version, which pylance and we see alike, also by the index if there is one."""
    theirs, ours = lance.dataset(uri), tw.dataset(uri, engine="local")
    theirs.validate()
    ours.validate()
    question, order = "a = 8 or a = -8", [("id", "ascending"), ("a", "ascending")]
    tables = [each.to_table().sort_by(order) for each in (theirs, ours)]
    answers = [sorted(each.to_table(columns=["id"], filter=question)["id"].to_pylist()) for each in (theirs, ours)]
    assert tables[0].equals(tables[1]) and answers[0] == answers[1] and theirs.version == ours.version
    found = sorted((fragment.physical_rows, fragment.num_deletions) for fragment in theirs.get_fragments())
    names = sorted(index["name"] for index in theirs.list_indices() if not index["name"].startswith("__"))
    rows = tuple(tuple(row.values()) for row in tables[0].to_pylist())
    streams = [item for item in sorted(theirs.config().items()) if item[0].startswith(PREFIX)]
    return Seen(rows, tuple(found), tuple(names), tuple(answers[0]), tuple(streams))


def orphans(uri: str) -> set[str]:
    """Files that no version names, also unfinished ones."""
    paths = [path.relative_to(uri).as_posix() for path in Path(uri).rglob("*") if path.is_file()]
    return unreferenced(tw.dataset(uri), paths)


def clean_up(uri: str) -> None:
    """Remove what no version names, whatever its age; all versions stay."""
    tw.dataset(uri).cleanup_old_versions(retain_versions=1000, delete_unverified=True)
