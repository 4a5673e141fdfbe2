"""The source where workers find it: what a worker keeps, and what it must not; what becomes of a job that fails."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa

from tablewright.format.schema import Schema
from tablewright.operations.merge_insert.keys.key_columns import find_key
from tablewright.operations.merge_insert.source.shared import SharedKeys, SharedSource, ShareTask, key_table, opened
from tablewright.storage import open_store
from tablewright.testing.worlds import memory_world
from tablewright.world import World


def _empty(world: World, columns: pa.Schema) -> SharedSource:
    task = ShareTask(columns, world.store.location, "2.1")
    return task.shared([task.written(world, [])])


def test_sources_without_rows_are_not_taken_for_each_other() -> None:
    """They have no files by which a worker could tell what it has opened before."""
    world = memory_world()
    for kind, value in ((pa.int64(), 1), (pa.string(), "a"), (pa.float32(), 0.5)):
        columns = pa.schema({"k": kind, f"x {kind}": pa.int8()})
        source = _empty(world, columns)
        assert source.num_rows == 0 and opened(source, world).schema.names == columns.names
        key = find_key(Schema.from_arrow(columns), "k")
        keys = key_table(SharedKeys(source=source, key=key, rows=(0, 0)), world)
        assert keys.find([pa.array([value, None], kind)]).tolist() == [-1, -1]


def test_what_a_failed_job_has_written_is_known_by_its_mark(tmp_path: Path) -> None:
    """Partitions that ended before the job failed never tell what they wrote."""
    world = World(store=open_store(str(tmp_path)))
    columns, rows = pa.schema({"k": pa.int64()}), [pa.record_batch({"k": [1, 2]})]
    task, other = (ShareTask(columns, world.store.location, "2.1") for _ in range(2))
    (others,) = other(rows)
    on_two_workers = [each(rows)[0] for each in (task, pickle.loads(pickle.dumps(task)))]
    assert len({fragment.files[0].path for fragment in (others, *on_two_workers)}) == 3
    task.mark.discard(world)
    assert [path.name for path in (tmp_path / "data").iterdir()] == [others.files[0].path]
