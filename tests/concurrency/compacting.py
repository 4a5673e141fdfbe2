"""Tables to be compacted while others write, by us or by pylance; and what has to be true of them afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from tests.concurrency.leftovers import unreferenced

import tablewright as tw
from tablewright.jobs.work import Work
from tablewright.operations.compact.task import rewrite_group

__all__ = ["OPTIONS", "Reads", "as_read", "assert_sound", "expected", "made", "meanwhile", "new_rows", "paths_in"]

ROWS, PER_FILE, DIM = 300, 50, 8
OPTIONS = {"target_rows_per_fragment": 80}
"""Six fragments become three groups of two."""

VERSIONS = ["_row_created_at_version", "_row_last_updated_at_version"]
FILTERS = ("key = 17", "key in (3, 60, 140, 299)", "key >= 95 and key < 105", "key > 1000", "key is null")


def new_rows(start: int, count: int) -> pa.Table:
    """Rows with these ids; vectors follow from the id."""
    ids = np.arange(start, start + count)
    vectors = np.random.default_rng(start).random((count, DIM), np.float32)
    return pa.table(
        {
            "id": ids,
            "key": ids,
            "v": [f"x{id}" for id in ids],
            "n": pa.array(ids, pa.int32()),
            "vec": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM),
        }
    )


def made(path: Path, *, stable: bool, indexed: bool) -> None:
    """Six fragments, some rows of which are deleted; with an index of each kind, made by pylance."""
    tw.write_dataset(new_rows(0, ROWS), str(path), max_rows_per_file=PER_FILE, enable_stable_row_ids=stable)
    tw.dataset(str(path)).delete("id % 7 = 3")
    if indexed:
        dataset = lance.dataset(str(path))
        dataset.create_scalar_index("key", "BTREE")
        dataset.create_index("vec", "IVF_PQ", num_partitions=2, num_sub_vectors=2, num_bits=4)


def as_read(dataset: Any, *, stable: bool) -> pa.Table:
    """All rows by id, with their ids and versions where these are stable."""
    columns = [*dataset.schema.names, *(VERSIONS if stable else [])]
    return dataset.to_table(columns=columns, with_row_id=stable).combine_chunks().sort_by("id")


def expected(path: Path, *, stable: bool) -> pa.Table:
    """What a reader finds now; both libraries must agree."""
    ours = as_read(tw.dataset(str(path)), stable=stable)
    assert ours.equals(as_read(lance.dataset(str(path)), stable=stable))
    return ours


def paths_in(path: Path) -> set[str]:
    """Every file of a table."""
    found = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
    return {file.relative_to(path).as_posix() for file in found}


def assert_sound(path: Path, rows: pa.Table, *, stable: bool, tidy: bool = True) -> None:
    """The newest version has these rows for both libraries, valid metadata, right indices, and no spare file."""
    ours, theirs = tw.dataset(str(path)), lance.dataset(str(path))
    ours.validate()
    theirs.validate()
    assert as_read(ours, stable=stable).equals(rows)
    assert as_read(theirs, stable=stable).equals(rows)
    assert theirs.count_rows() == ours.count_rows() == rows.num_rows
    _assert_index_answers(ours, theirs)
    spare = unreferenced(ours, paths_in(path)) if tidy else set()
    assert not spare, f"no version names {sorted(spare)}"


def _assert_index_answers(ours: tw.LanceDataset, theirs: Any) -> None:
    def ids(filter: str, **options: Any) -> list[int]:
        return sorted(theirs.to_table(columns=["id"], filter=filter, **options)["id"].to_pylist())

    for filter in FILTERS:
        flat = ids(filter, use_scalar_index=False)
        assert ids(filter, use_scalar_index=True) == flat, f"the index answers {filter} otherwise"
        assert sorted(ours.to_table(columns=["id"], filter=filter)["id"].to_pylist()) == flat
    for id in (1, 60, 255):
        nearest = {"column": "vec", "q": np.random.default_rng(id).random(DIM, np.float32), "k": 5}
        probes = {"nprobes": 2, "refine_factor": 100}
        flat = theirs.to_table(columns=["id"], nearest=nearest | {"use_index": False})["id"].to_pylist()
        assert theirs.to_table(columns=["id"], nearest=nearest | probes)["id"].to_pylist() == flat


class Reads:
    """How often each group of fragments was handed to an engine. ``then`` runs once, when all were rewritten."""

    def __init__(self, then: Callable[[], object]) -> None:
        self.groups: list[tuple[int, ...]] = []
        self._then: Callable[[], object] | None = then
        self._others = False

    def after(self, tasks: Sequence[Any]) -> None:
        """These groups were rewritten, and are not committed yet."""
        if self._others:
            return
        self.groups += [tuple(fragment.id for fragment in task.task.fragments) for task in tasks]
        then, self._then = self._then, None
        if then is not None:
            self._others = True
            then()
            self._others = False


@contextmanager
def meanwhile(monkeypatch: pytest.MonkeyPatch, then: Callable[[], object], groups: int = 3) -> Iterator[Reads]:
    """Compactions of this process run ``then`` once their groups are rewritten; each group may be read once.

    It runs in this process, wherever the groups were rewritten.
    """
    reads, outcomes = Reads(then), Work.outcomes

    def reading(self: Work, name: str, run: Any, tasks: Sequence[Any], *given: Any, **options: Any) -> Any:
        found = outcomes(self, name, run, tasks, *given, **options)
        if run is rewrite_group:
            reads.after(tasks)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Work, "outcomes", reading)
        yield reads
    assert len(set(reads.groups)) == len(reads.groups) == groups, f"read more than once: {reads.groups}"
