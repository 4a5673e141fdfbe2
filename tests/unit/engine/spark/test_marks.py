"""engine/spark/marks.py: the files of one job, and no others, are found by their names."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

from tablewright.data.write import write_fragments
from tablewright.engine.spark.marks import Mark, marked_files
from tablewright.format.fragment import DeletionFile, DeletionFileType
from tablewright.format.naming import data_path, deletion_path, index_dir, index_part_name, new_data_file_name
from tablewright.format.schema import Schema
from tablewright.storage import open_store
from tablewright.world import SystemIds, World


def _paths(ids: SystemIds) -> list[str]:
    """A data file, a deletion file and files of indices as tasks name them."""
    deletion = DeletionFile(file_type=DeletionFileType.BITMAP, read_version=3, id=ids.u64(), num_deleted_rows=1)
    part = f"{index_dir(UUID(int=1))}/{index_part_name(ids.uuid())}"
    index = f"{index_dir(ids.uuid())}/page_data.lance"
    return [data_path(new_data_file_name(ids.uuid())), deletion_path(7, deletion), part, index]


def test_a_mark_finds_its_own_files_only() -> None:
    mark, other = Mark(), Mark()
    ours = [path for _ in range(20) for path in _paths(mark.ids)]
    theirs = [path for _ in range(20) for path in (*_paths(other.ids), *_paths(SystemIds()))]
    assert len({*ours, *theirs}) == len(ours) + len(theirs)
    assert all(mark.is_in(path) for path in ours)
    assert not any(mark.is_in(path) for path in theirs)
    assert not any(mark.is_in(path) for path in ("data/x.lance", "_deletions/1-2-x.bin", "_versions/1.manifest", ""))


def test_ids_stay_ids() -> None:
    """A mark travels to workers, and a number with it fits 64 bits."""
    mark = Mark(b"\xff" * 5)
    assert pickle.loads(pickle.dumps(mark)) == mark
    assert mark.ids.u64() < 1 << 64


class _Late:
    """A clock during whose first pauses more files appear."""

    def __init__(self, write: list[Callable[[], None]]) -> None:
        self.write = write

    def sleep(self, seconds: float) -> None:
        if self.write:
            self.write.pop()()

    def now_ns(self) -> int:
        return 0

    def monotonic(self) -> float:
        return 0.0


def test_discard_removes_them_also_those_that_come_late() -> None:
    mark, late = Mark(), list[Callable[[], None]]()
    world = World(store=open_store("memory://marked"), clock=_Late(late))
    late += [lambda: world.store.put(_paths(mark.ids)[0], b"x")] * 2
    kept, gone = _paths(SystemIds()), _paths(mark.ids)
    for path in (*kept, *gone):
        world.store.put(path, b"x")
    mark.discard(world)
    left = {entry.path for folder in ("data", "_deletions", "_indices") for entry in world.store.list(folder)}
    assert left == set(kept)
    mark.discard(world)  # again, with nothing to do


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_files_of_a_job_that_fails_are_removed(error: type[BaseException] | None) -> None:
    world = World(store=open_store(f"memory://marked-{error}"), clock=_Late([]))

    def job() -> None:
        with marked_files(world) as mark:
            for path in _paths(mark.ids):
                world.store.put(path, b"x")
            if error is not None:
                raise error

    with pytest.raises(error) if error else nullcontext():
        job()
    assert len(list(world.store.list(""))) == (4 if error is None else 0)


def test_data_files_that_two_workers_write_are_found(tmp_path: Path) -> None:
    """Partitions that ended before the job failed never report what they wrote."""
    store = open_store(tmp_path)
    rows = pa.record_batch({"k": [1, 2]})
    schema, mark = Schema.from_arrow(rows.schema), Mark()
    (others,) = write_fragments(World(store), schema, [rows])
    for each in (mark, pickle.loads(pickle.dumps(mark))):
        write_fragments(World(store, ids=each.ids), schema, [rows])
    assert len(list(store.list("data/"))) == 3
    mark.discard(World(store))
    assert [entry.path for entry in store.list("data/")] == [data_path(others.files[0].path)]


def test_files_that_a_killed_worker_did_not_finish_are_found(tmp_path: Path) -> None:
    """A local disk has them under names that listings leave out."""
    mark, world = Mark(), World(open_store(tmp_path))
    kept, gone = ([tmp_path / f"{path}#123" for path in _paths(ids)] for ids in (SystemIds(), mark.ids))
    for path in (*kept, *gone):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
    mark.discard(world)
    assert all(path.exists() for path in kept) and not any(path.exists() for path in gone)
