"""The changes that faults are tried on: a table before each, the change itself, and what a reader sees.

Each runs on any engine. Rows are few, and limits so small that every stage of a change has several tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import lance
import pyarrow as pa
from tests.concurrency.leftovers import unreferenced
from tests.unit.indices.btree.tables import tiny

import tablewright as tw
from tablewright.operations.merge_insert.limits import MatchLimits, MergeLimits

__all__ = ["OTHERS", "SECRET", "VERBS", "Seen", "clean_up", "make_table", "orphans", "rows_of", "seen"]

ROWS, PER_FILE = 80, 20
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


def _merge(limits: MergeLimits) -> Callable[[str, Any], None]:
    def merge(uri: str, engine: Any) -> None:
        source = rows_of([*range(0, ROWS, 4), *range(100, 106)], factor=-1)
        builder = tw.dataset(uri, engine=engine).merge_insert("id")._with(limits=limits)
        builder.when_matched_update_all().when_not_matched_insert_all().write_mode("rewrite_rows").execute(source)

    return merge


def _compact(uri: str, engine: Any) -> None:
    tw.dataset(uri, engine=engine).optimize.compact_files(target_rows_per_fragment=36)


def _index(uri: str, engine: Any) -> None:
    with tiny():
        tw.dataset(uri, engine=engine).create_scalar_index("a", "BTREE", name="by_a")


SECRET = "wJalrXUtnFEMI-not-to-be-seen"


def _update_with_credentials(uri: str, engine: Any) -> None:
    options = {"aws_access_key_id": "AKIA-not-to-be-seen", "aws_secret_access_key": SECRET}
    tw.dataset(uri, engine=engine, storage_options=options).update({"a": "a + 1"}, where="id < 50")


VERBS: dict[str, Callable[[str, Any], None]] = {
    "write": _write,
    "merge": _merge(_BROADCAST),
    "merge by shuffle": _merge(_SHUFFLE),
    "compaction": _compact,
    "index build": _index,
}
"""By name: a function of the table's path and the engine. A batch of a stream is to come here too."""

OTHERS: dict[str, Callable[[str, Any], None]] = {"update with credentials": _update_with_credentials}


@dataclass(frozen=True)
class Seen:
    """What a reader sees of a table; versions that change nothing (ids that were reserved) don't show."""

    rows: tuple[tuple[Any, ...], ...]
    fragments: tuple[tuple[int, int], ...]
    indices: tuple[str, ...]
    found: tuple[int, ...]


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
    return Seen(rows, tuple(found), tuple(names), tuple(answers[0]))


def orphans(uri: str) -> set[str]:
    """Files that no version names, also unfinished ones."""
    paths = [path.relative_to(uri).as_posix() for path in Path(uri).rglob("*") if path.is_file()]
    return unreferenced(tw.dataset(uri), paths)


def clean_up(uri: str) -> None:
    """Remove what no version names, whatever its age; all versions stay."""
    tw.dataset(uri).cleanup_old_versions(retain_versions=1000, delete_unverified=True)
