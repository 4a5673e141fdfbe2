"""Builds whose runs do not fit into memory: files of runs, merges in passes, and nothing left of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.index_builds import DirectStage, built, plan_of, table_of

import tablewright as tw
from tablewright.errors import CorruptTable
from tablewright.format.index_kinds import BITMAP, LABEL_LIST, NGRAM, IndexKind
from tablewright.indices.bitmap import pairs_of_values
from tablewright.indices.building import OldSegment
from tablewright.indices.files import read_index_file, write_index_file
from tablewright.indices.key_sets import build, runs
from tablewright.indices.key_sets.layout import BITMAPS
from tablewright.storage import open_store
from tablewright.world import World

COLUMNS = {
    BITMAP: pa.array([None if i % 50 == 7 else (i * 37) % 301 for i in range(900)], pa.int64()),
    LABEL_LIST: pa.array([None if i % 11 == 3 else [f"{i % 97}", f"{i % 31}"] for i in range(900)]),
    NGRAM: pa.array([None if i % 11 == 3 else f"text {i * 7919 % 1000:04x}" for i in range(900)]),
}
KINDS = pytest.mark.parametrize("kind", COLUMNS, ids=lambda kind: kind.name)


def content(uri: str, entry: Any, kind: IndexKind) -> tuple[Any, ...]:
    found = read_index_file(
        open_store(uri), f"_indices/{entry.uuid}", kind.files[0], buffers=["lance:label_list_nulls"]
    )
    return found.rows.to_pydict(), found.metadata, found.buffers


def stored(uri: str) -> set[str]:
    return {info.path for info in open_store(uri).list("_indices")}


@KINDS
@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
def test_little_memory_gives_the_same_index(kind: IndexKind, stable: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = f"memory://little-memory-{kind.name}-{stable}"
    tw.write_dataset(table_of(COLUMNS[kind]), uri, max_rows_per_file=100, enable_stable_row_ids=stable)
    if stable:
        tw.dataset(uri).update({"i": "i + 1"}, where="i % 3 = 0")  # ids are no longer in the order of addresses
    expected = content(uri, built(uri, "x", kind)[1], kind)
    before = stored(uri)
    written: list[str] = []
    write_run = build.write_run

    def counted(store: Any, path: str, *others: Any) -> None:
        written.append(path)
        write_run(store, path, *others)

    monkeypatch.setattr(build, "write_run", counted)
    for name, value in {
        "_TASK_BYTES_MIN": 1000,
        "_PAIRS_MAX": 40,
        "_RUN_BYTES": 2000,
        "_INLINE_BYTES": 4000,
        "_FAN_IN": 3,
        "_MERGE_BYTES": 3000,
        "_CHUNK_BYTES_MIN": 1000,
    }.items():
        monkeypatch.setattr(build, name, value)
    monkeypatch.setattr(runs, "_BATCH_BYTES_MAX", 500)
    entry = built(uri, "x", kind)[1]
    assert len(written) > 6
    assert content(uri, entry, kind) == expected
    assert stored(uri) - before == {f"_indices/{entry.uuid}/{kind.files[0]}"}


@KINDS
def test_old_segments_that_keep_everything_give_the_index_of_one_build(kind: IndexKind) -> None:
    uri = f"memory://old-segments-{kind.name}"
    tw.write_dataset(table_of(COLUMNS[kind]), uri, max_rows_per_file=300)
    expected = content(uri, built(uri, "x", kind)[1], kind)
    segments = tuple(
        OldSegment(built(uri, "x", kind, fragments=[each])[1], lambda ids: (ids, np.ones(len(ids), np.bool_)))
        for each in (2, 0)
    )
    assert content(uri, built(uri, "x", kind, fragments=[1], old=segments)[1], kind) == expected


def test_no_file_of_a_run_is_left_where_a_merge_or_a_task_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    uri = "memory://failing-merge"
    tw.write_dataset(table_of(COLUMNS[BITMAP]), uri, max_rows_per_file=300)
    _, damaged = built(uri, "x", BITMAP)
    batch = pa.record_batch([pa.array([1]), pa.array([b"???"])], schema=BITMAPS.schema(pa.int64()))
    write_index_file(open_store(uri), f"_indices/{damaged.uuid}", BITMAPS.file, batch.schema, [batch])
    before = stored(uri)
    monkeypatch.setattr(build, "_INLINE_BYTES", 0)
    old = OldSegment(damaged, lambda ids: (ids, np.ones(len(ids), np.bool_)))
    with pytest.raises(CorruptTable):
        built(uri, "x", BITMAP, old=(old,))
    assert stored(uri) == before

    monkeypatch.setattr(build, "_RUN_BYTES", 100)
    monkeypatch.setattr(build, "_PAIRS_MAX", 50)
    real, calls = build.grouped, []

    def failing(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 3:
            raise MemoryError
        return real(*arguments)

    monkeypatch.setattr(build, "grouped", failing)
    with pytest.raises(MemoryError):
        built(uri, "x", BITMAP)
    assert stored(uri) == before


def test_tasks_have_about_the_same_bytes_and_say_what_they_read() -> None:
    uri = "memory://tasks-of-bytes"
    tw.write_dataset(table_of(COLUMNS[BITMAP]), uri, max_rows_per_file=300)
    world = World(open_store(uri))
    snapshot = built(uri, "x", BITMAP)[0]
    plan = plan_of(snapshot, "x", BITMAP, uuid=world.ids.uuid())
    results: list[Any] = []

    class Stage(DirectStage):
        def __call__(self, name: str, run: Any, tasks: Any) -> Any:
            results.extend(super().__call__(name, run, tasks))
            return results

    build.build_file(
        plan,
        world,
        Stage(world),
        layout=BITMAPS,
        kind=pa.int64(),
        pairs=pairs_of_values,
        finish=lambda count, nulls: ({}, {}),
    )
    assert [(result.paths, result.rows_read, result.bytes_read) for result in results] == [((), 900, 7200)]
