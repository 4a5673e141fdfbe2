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
