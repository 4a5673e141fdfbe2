"""Small tables, plans of BTREEs on them, and what an index on them has to hold."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import uuid4

import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.engine.local import LocalEngine
from tablewright.format.index import IndexMetadata
from tablewright.format.index_kinds import BTREE
from tablewright.indices.btree import build as build_index
from tablewright.indices.btree import pages, runs, sorting
from tablewright.indices.building import BuildPlan, OldSegment, Stage, WrittenIndex
from tablewright.indices.files import read_index_file
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.testing.worlds import memory_world
from tablewright.world import World

T = TypeVar("T")
R = TypeVar("R")


def rank(value: Any) -> Any:
    """What sorts a value as the index does: floats by the total order of their bits, text by its bytes."""
    if isinstance(value, float):
        bits = struct.unpack("<q", struct.pack("<d", value))[0]
        return bits if bits >= 0 else bits ^ 0x7FFF_FFFF_FFFF_FFFF
    return value.encode() if isinstance(value, str) else value


def same(value: Any) -> Any:
    """What makes two values the same: floats by their bits."""
    return rank(value) if isinstance(value, float) else value


def in_order(entries: Sequence[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Entries in the order of an index: nulls first, then by value, then by id."""
    nulls = sorted(id for value, id in entries if value is None)
    values = [entry for entry in entries if entry[0] is not None]
    return [(None, id) for id in nulls] + sorted(values, key=lambda entry: (rank(entry[0]), entry[1]))


def table_of(values: pa.Array, rows_per_file: int, deleted: Sequence[int] = (), *, stable: bool = False) -> Snapshot:
    """A table of one column ``c``, without the rows at some positions."""
    world = memory_world()
    rows = pa.table({"c": values, "n": pa.array(range(len(values)), pa.int64())})
    uri = world.store.location.uri
    ds = tw.write_dataset(rows, uri, max_rows_per_file=rows_per_file, enable_stable_row_ids=stable)
    if deleted:
        ds.delete(f"n IN ({', '.join(map(str, deleted))})")
    return open_snapshot(world)


def plan_of(snapshot: Snapshot, old: tuple[OldSegment, ...] = (), column: str = "c", **facts: Any) -> BuildPlan:
    """The plan of a BTREE on all fragments."""
    found = snapshot.schema.resolve(column)
    kind = snapshot.schema.to_arrow().field(column).type
    given = {
        "kind": BTREE,
        "uuid": uuid4(),
        "uri": snapshot.location.uri,
        "version": snapshot.version,
        "schema": snapshot.schema,
        "path": (column,),
        "field_id": found.id,
        "type": kind,
        "fragments": tuple(snapshot.fragments),
        "stable": snapshot.manifest.stable_row_ids,
        "old": old,
    }
    return BuildPlan(**{**given, **facts})


def stage_of(world: World) -> Stage:
    """Tasks on threads of this process."""

    def stage(name: str, run: Callable[[T, World], R], tasks: Sequence[T]) -> list[R]:
        return LocalEngine(2).map(run, tasks, world)

    return stage  # type: ignore[return-value]


def built(snapshot: Snapshot, plan: BuildPlan | None = None) -> IndexMetadata:
    """Build an index, and describe it as the manifest would."""
    plan = plan or plan_of(snapshot)
    written = build_index(plan, snapshot.world, stage_of(snapshot.world))
    return metadata_of(plan, written)


def metadata_of(plan: BuildPlan, written: WrittenIndex) -> IndexMetadata:
    """The entry of the manifest for an index that was built."""
    return IndexMetadata(
        uuid=plan.uuid,
        fields=(plan.field_id,),
        name="c_idx",
        dataset_version=plan.version,
        details_type_url=written.details_type_url,
        index_version=written.index_version,
        files=written.files,
    )


def entries_of(snapshot: Snapshot, index: IndexMetadata) -> list[tuple[Any, int]]:
    """All rows of ``page_data.lance``."""
    store, directory = snapshot.index_place(index)
    rows = read_index_file(store, directory, "page_data.lance").rows
    return list(zip(rows["values"].to_pylist(), rows["ids"].to_pylist(), strict=True))


def check_lookup(snapshot: Snapshot, index: IndexMetadata, rows_per_page: int) -> None:
    """The lookup says of each page what is in it."""
    store, directory = snapshot.index_place(index)
    values = [value for value, _ in entries_of(snapshot, index)]
    found = read_index_file(store, directory, "page_lookup.lance")
    cut = [values[at : at + rows_per_page] for at in range(0, len(values), rows_per_page)]
    rows = found.rows.to_pydict()
    assert list(map(same, rows["min"])) == [same(page[0]) for page in cut]
    assert list(map(same, rows["max"])) == [same(page[-1]) for page in cut]
    assert rows["null_count"] == [page.count(None) for page in cut]
    assert rows["page_idx"] == list(range(len(cut)))
    assert found.metadata == {"batch_size": str(rows_per_page), "range_partitioned": "false"}


@contextmanager
def tiny(rows_per_page: int = 4, rows_per_block: int = 3, *, by_tasks: bool = True) -> Iterator[None]:
    """Pages, blocks, samples and budgets so small that a few rows make runs, ranges and several pages."""
    module = sys.modules["tablewright.indices.btree.build"]  # the package has the function under this name
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "ROWS_PER_PAGE", rows_per_page)
        patch.setattr(runs, "BLOCK_ROWS", rows_per_block)
        patch.setattr(sorting, "SAMPLE_ROWS", 2)
        if by_tasks:
            patch.setattr(module, "SMALL_BYTES", -1)
            patch.setattr(module, "SORT_BYTES", 64)
        yield
