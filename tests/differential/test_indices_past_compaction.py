"""Indices of pylance while writers of ours pass compactions: every answer is right, with the index and without.

And new indices past compactions: they cover what they know, and never a row that is somewhere else.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance.optimize
import numpy as np
import pyarrow as pa
import pytest
from tests.depth import deep

from .changes import index_of
from .referee import lance, opened, ours

ROWS, PER_FILE = 1200, 200
STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
COMPACTOR = pytest.mark.parametrize("compactor", [lance, ours], ids=["pylance", "ours"])


def rows(start: int, stop: int) -> pa.Table:
    ids = np.arange(start, stop)
    vectors = np.random.default_rng(start).random((len(ids), 8), np.float32)
    return pa.table(
        {
            "id": ids,
            "kind": [f"kind {i % 7}" for i in ids],
            "n": ids % 50,
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8),
        }
    )


def table(uri: str, *, stable: bool, indexed: bool = True) -> None:
    """Six fragments with deletions; BTREE, BITMAP and IVF_PQ cover the first four, or all."""
    dataset = lance.write_dataset(
        rows(0, ROWS if indexed else ROWS - 400), uri, max_rows_per_file=PER_FILE, enable_stable_row_ids=stable
    )
    dataset.delete("id % 11 = 0")
    if not indexed:
        make_indices(lance.dataset(uri))
        lance.write_dataset(rows(ROWS - 400, ROWS), uri, mode="append", max_rows_per_file=PER_FILE)
    else:
        make_indices(lance.dataset(uri))


def make_indices(dataset: Any) -> None:
    dataset.create_scalar_index("id", "BTREE")
    lance.dataset(dataset.uri).create_scalar_index("kind", "BITMAP")
    lance.dataset(dataset.uri).create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=2)


def compact(library: Any, uri: str, engine: Any, rows_per_file: int = 500) -> None:
    opened(library, uri, engine).optimize.compact_files(
        target_rows_per_fragment=rows_per_file, materialize_deletions_threshold=0.0
    )


def upsert(dataset: Any) -> Any:
    changed = rows(5, 40).set_column(1, "kind", pa.array(["merged"] * 35))
    merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return merge.execute(pa.concat_tables([changed, rows(5000, 5003)]))


CHANGES: dict[str, Callable[[Any], Any]] = {
    "delete": lambda ds: ds.delete("id % 13 = 1"),
    "delete a fragment": lambda ds: ds.delete("id >= 200 and id < 400"),
    "move rows": lambda ds: ds.update({"n": "n + 1000"}, where="id % 17 = 3", write_mode="rewrite_rows"),
    "move indexed rows": lambda ds: ds.update({"kind": "'new'"}, where="id % 17 = 3", write_mode="rewrite_rows"),
    "columns": lambda ds: ds.update({"n": "n + 1000"}, where="id % 17 = 3", write_mode="rewrite_columns"),
    "indexed columns": lambda ds: ds.update({"kind": "'new'"}, where="id % 17 = 3", write_mode="rewrite_columns"),
    "upsert": upsert,
    "add columns": lambda ds: ds.add_columns({"more": "n * 2"}),
}


def assert_answers(uri: str) -> None:
    """Filters and searches by index give what they give without one, in both libraries."""
    dataset = lance.dataset(uri)
    dataset.validate()
    ours.dataset(uri).validate()
    for condition in (
        "id = 3",
        "id in (5, 6, 14, 400, 5001)",
        "id > 350 and id < 420",
        "kind = 'kind 3'",
        "kind = 'new'",
    ):
        known = dataset.to_table(filter=condition, use_scalar_index=False).sort_by("id")
        assert dataset.to_table(filter=condition).sort_by("id").equals(known), condition
        assert ours.dataset(uri).to_table(filter=condition).sort_by("id").equals(known), condition
    everything = dataset.to_table(columns=["id", "v"])
    vectors = np.stack(everything["v"].to_numpy(zero_copy_only=False))
    for place in range(0, len(vectors), max(1, len(vectors) // 7)):
        query = {"column": "v", "q": vectors[place], "k": 3, "nprobes": 2, "refine_factor": 100}
        near = dataset.to_table(nearest=query, columns=["id"])["id"].to_pylist()
        best = np.argsort(((vectors - vectors[place]) ** 2).sum(1), kind="stable")[:3]
        assert set(near) == set(everything["id"].take(best).to_pylist())


@pytest.mark.parametrize(
    ("stable", "compactor"), [(False, ours), (True, lance), (False, lance), (True, ours)][: deep(2, 4)]
)
@pytest.mark.parametrize("name", CHANGES)
def test_answers_after_a_rebase_past_a_compaction(
    tmp_path: Path, stable: bool, compactor: Any, name: str, engine: Any
) -> None:
    uri, twin = str(tmp_path / "t.lance"), str(tmp_path / "twin.lance")
    table(uri, stable=stable, indexed=stable)
    shutil.copytree(uri, twin)
    stale = opened(ours, uri, engine)
    compact(compactor, uri, engine)
    CHANGES[name](stale)
    assert stale.version == lance.dataset(uri).version
    assert_answers(uri)
    CHANGES[name](ours.dataset(twin))
    wanted, found = (lance.dataset(each).to_table().sort_by("id") for each in (twin, uri))
    assert found.equals(wanted)


def coverage(uri: str, name: str) -> list[set[int]]:
    found = lance.dataset(uri).describe_indices()
    return [set(segment.fragment_ids) for index in found if index.name == name for segment in index.segments]


@STABLE
@COMPACTOR
@pytest.mark.parametrize("columns", [("id", "BTREE"), ("kind", "BITMAP")])
def test_a_new_index_passes_a_compaction(
    tmp_path: Path, stable: bool, compactor: Any, columns: tuple[str, str], engine: Any
) -> None:
    """Built on the old fragments, committed after they are gone."""
    uri, built = str(tmp_path / "t.lance"), tmp_path / "built.lance"
    dataset = lance.write_dataset(rows(0, ROWS), uri, max_rows_per_file=PER_FILE, enable_stable_row_ids=stable)
    dataset.delete("id % 11 = 0")
    shutil.copytree(uri, built)
    lance.dataset(str(built)).create_scalar_index(columns[0], columns[1], name="new")
    (index,) = lance.dataset(str(built)).read_transaction(3).operation.new_indices
    shutil.copytree(built / "_indices", Path(uri) / "_indices")
    compact(compactor, uri, engine)
    opened(ours, uri, engine).delete("id = 7")
    ours.LanceDataset.commit(uri, ours.LanceOperation.CreateIndex([index_of(ours, index)], []), read_version=2)
    live = {fragment.fragment_id for fragment in lance.dataset(uri).get_fragments()}
    (covered,) = coverage(uri, "new")
    keeps = stable and columns[1] == "BITMAP"  # a BTREE of this release names rows by address
    assert covered == (live if keeps else set())
    assert_answers(uri)


@STABLE
def test_a_compaction_passes_a_new_index(tmp_path: Path, stable: bool, engine: Any) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(0, ROWS), uri, max_rows_per_file=PER_FILE, enable_stable_row_ids=stable).delete(
        "id % 11 = 0"
    )
    stale = opened(ours, uri, engine)
    planned = ours.optimize.Compaction.plan(stale, {"target_rows_per_fragment": 500})
    results = [task.execute(stale) for task in planned.tasks]
    make_indices(lance.dataset(uri))
    ours.optimize.Compaction.commit(stale, results)
    assert_answers(uri)


@STABLE
@pytest.mark.parametrize(
    ("first", "second"), [(ours, ours), (lance, ours), (ours, lance)], ids=["us", "theirs", "ours"]
)
def test_two_compactions_of_other_fragments_of_one_index(
    tmp_path: Path, stable: bool, first: Any, second: Any, engine: Any
) -> None:
    """Both were planned on the same version, and both move rows that every index covers."""
    uri = str(tmp_path / "t.lance")
    table(uri, stable=stable)
    results = {}
    for place, library in enumerate((first, second)):
        dataset = opened(library, uri, engine)
        options = {"target_rows_per_fragment": 500, "materialize_deletions_threshold": 0.0}
        tasks = library.optimize.Compaction.plan(dataset, options).tasks
        assert len(tasks) == 2
        results[place] = dataset, tasks[place].execute(dataset)
    before = lance.dataset(uri).count_rows()
    for place, library in enumerate((first, second)):
        dataset, result = results[place]
        library.optimize.Compaction.commit(dataset, [result])
    assert len(lance.dataset(uri).get_fragments()) == 2 and lance.dataset(uri).count_rows() == before
    assert_answers(uri)
