"""Vector and full-text indices of pylance past our compactions: answers as before, rows fetched."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw

DIM, ROWS = 8, 1200


def made(path: Path, *, stable: bool) -> None:
    rng = np.random.default_rng(5)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(ROWS * DIM), pa.float32()), DIM)
    words = [f"word{n % 40} text{n % 7}" for n in range(ROWS)]
    table = pa.table({"id": range(ROWS), "v": vectors, "w": vectors, "text": words})
    dataset = lance.write_dataset(table, path, max_rows_per_file=200, enable_stable_row_ids=stable)
    dataset = dataset.create_index("v", "IVF_FLAT", num_partitions=4)
    dataset = dataset.create_index("w", "IVF_PQ", num_partitions=2, num_sub_vectors=4)
    dataset.create_scalar_index("text", "INVERTED")
    lance.dataset(path).delete("id % 10 = 3")


def answers(path: Path) -> list[list[int]]:
    dataset = lance.dataset(path)
    found = []
    for column in ("v", "w"):
        query = {"column": column, "q": np.full(DIM, 0.5, np.float32), "k": 20, "nprobes": 4, "refine_factor": 50}
        found.append(sorted(dataset.to_table(nearest=query, columns=["id"])["id"].to_pylist()))
    found.append(sorted(dataset.to_table(full_text_query="word7", columns=["id"], limit=500)["id"].to_pylist()))
    return found


@pytest.mark.parametrize("way", ["remap", "defer", "stable"])
def test_T11_answers_stay_and_nothing_is_searched_flat(tmp_path: Path, way: str) -> None:
    made(tmp_path, stable=way == "stable")
    before = answers(tmp_path)
    assert all(before)
    options = {"defer_index_remap": True} if way == "defer" else {}
    metrics = tw.dataset(str(tmp_path)).optimize.compact_files(**options)
    assert (metrics.index_bytes_written > 0) == (way == "remap")
    for _ in range(2):  # cold, then warm
        assert answers(tmp_path) == before
    statistics = {name: lance.dataset(tmp_path).stats.index_stats(name) for name in ("v_idx", "w_idx", "text_idx")}
    assert {each["num_unindexed_rows"] for each in statistics.values()} == {0}
    lance.dataset(tmp_path).validate()
    lance.dataset(tmp_path).optimize.optimize_indices()
    assert answers(tmp_path) == before


def nearest(path: Path) -> list[int]:
    query = {"column": "v", "q": np.full(DIM, 0.5, np.float32), "k": 20, "nprobes": 2, "ef": 200}
    return sorted(lance.dataset(path).to_table(nearest=query, columns=["id"])["id"].to_pylist())


@pytest.mark.parametrize("kind", ["IVF_HNSW_SQ", "IVF_HNSW_PQ"])
def test_a_graph_is_not_deferred(tmp_path: Path, kind: str) -> None:
    """A client that leaves deleted rows out of a graph as it reads it can't search it any more."""
    vectors = np.random.default_rng(5).random(900 * DIM)
    table = pa.table({"id": range(900), "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors, pa.float32()), DIM)})
    dataset = lance.write_dataset(table, tmp_path, max_rows_per_file=150)
    options = {"num_sub_vectors": 4} if kind.endswith("PQ") else {}
    dataset.create_index("v", kind, num_partitions=2, **options)
    lance.dataset(tmp_path).create_scalar_index("id", "BTREE")
    lance.dataset(tmp_path).delete("id % 10 = 3 AND id < 600")
    plan = tw.dataset(str(tmp_path)).optimize.prepare_compact_files(defer_index_remap=True).explain_plan()
    assert "Indices are written again now: v_idx has a graph (HNSW)" in plan
    metrics = tw.dataset(str(tmp_path)).optimize.compact_files(defer_index_remap=True)
    assert metrics.index_bytes_written > 0  # of the BTREE
    assert "__lance_frag_reuse" not in {index["name"] for index in lance.dataset(tmp_path).list_indices()}
    for _ in range(2):  # cold, then warm
        assert len(nearest(tmp_path)) == 20 and not any(id % 10 == 3 and id < 600 for id in nearest(tmp_path))
    assert lance.dataset(tmp_path).count_rows("id = 7") == 1 and lance.dataset(tmp_path).count_rows("id = 13") == 0
    assert tw.dataset(str(tmp_path)).count_rows("id = 7") == 1
    lance.dataset(tmp_path).optimize.optimize_indices()
    assert len(nearest(tmp_path)) == 20


def test_without_a_graph_among_its_groups_the_rest_is_deferred(tmp_path: Path) -> None:
    made(tmp_path, stable=False)
    plan = tw.dataset(str(tmp_path)).optimize.prepare_compact_files(defer_index_remap=True).explain_plan()
    assert "HNSW" not in plan
    tw.dataset(str(tmp_path)).optimize.compact_files(defer_index_remap=True)
    assert "__lance_frag_reuse" in {index["name"] for index in lance.dataset(tmp_path).list_indices()}
