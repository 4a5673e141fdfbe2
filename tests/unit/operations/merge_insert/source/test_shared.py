"""The source where workers find it: what a worker keeps, and what it must not."""

from __future__ import annotations

import pyarrow as pa

from tablewright.format.schema import Schema
from tablewright.operations.merge_insert.keys.key_columns import find_key
from tablewright.operations.merge_insert.source.shared import SharedKeys, SharedSource, ShareTask, key_table, opened
from tablewright.testing.worlds import memory_world
from tablewright.world import World


def _empty(world: World, columns: pa.Schema) -> SharedSource:
    task = ShareTask(columns, "2.1")
    return task.shared([task([], world)])


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
