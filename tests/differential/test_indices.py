"""Deletions and indices made by pylance: read equal here, and alive after our writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from .referee import assert_same_dataset, assert_same_rows, copy_of, indices_of, lance, ours, state_of

STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])


def _rows(start: int, stop: int) -> pa.Table:
    ids = np.arange(start, stop)
    vectors = np.random.default_rng(start).random((len(ids), 16), np.float32)
    return pa.table(
        {
            "id": ids,
            "kind": [f"kind {i % 5}" for i in ids],
            "labels": [[f"l{i % 3}", f"m{i % 4}"] for i in ids],
            "text": [f"the quick fox number {i} jumps" for i in ids],
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 16),
        }
    )


@STABLE
@pytest.mark.parametrize("count", [1, 4_999, 5_000, 9_000, 20_000])
def test_deletions_of_every_size_read_equal(tmp_path: Path, stable: bool, count: int) -> None:
    """Below 5,000 rows a deletion file is an array, above it a bitmap; a fragment without rows disappears."""
    uri = str(tmp_path / "t.lance")
    table = pa.table({"id": range(24_000), "s": [f"{i % 100}" for i in range(24_000)]})
    dataset = lance.write_dataset(table, uri, max_rows_per_file=20_000, enable_stable_row_ids=stable)
    dataset.delete(f"id < {count}" if count in (1, 20_000) else f"id % 2 = 1 and id < {2 * count}")
    assert_same_dataset(uri)
    dataset.delete("id % 7 = 0")  # a second time onto the same fragments
    assert_same_dataset(uri)
    here, there = ours.dataset(uri), lance.dataset(uri)
    assert here.count_rows("id % 3 = 0") == there.count_rows("id % 3 = 0")
    for fragment in there.get_fragments():
        left, right = here.get_fragment(fragment.fragment_id), fragment
        assert (left.num_deletions, left.physical_rows, left.count_rows()) == (
            right.num_deletions,
            right.physical_rows,
            right.count_rows(),
        )
        assert_same_rows(left.to_table(with_row_id=True), right.to_table(with_row_id=True))
        assert_same_rows(left.take([0, 5, 17]), right.take([0, 5, 17]))


@STABLE
def test_rows_moved_and_columns_rewritten_by_pylance_read_equal(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(_rows(0, 200), uri, max_rows_per_file=60, enable_stable_row_ids=stable)
    steps: list[Any] = [
        lambda: dataset.update({"kind": "'changed'"}, where="id % 9 = 0"),
        lambda: (
            dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(_rows(150, 230))
        ),
        lambda: dataset.add_columns({"twice": "id * 2", "word": "upper(kind)"}),
        lambda: dataset.alter_columns({"path": "twice", "data_type": pa.int32(), "name": "doubled"}),
        lambda: dataset.drop_columns(["text"]),
        lambda: dataset.delete("id between 20 and 40"),
        lambda: dataset.merge(pa.table({"id": [1, 2, 3], "extra": ["a", "b", "c"]}), left_on="id"),
        lambda: dataset.optimize.compact_files(target_rows_per_fragment=100),
        lambda: dataset.alter_columns({"path": "kind", "name": "sort"}),
        lambda: dataset.update({"word": "null"}, where="id > 100"),
    ]
    for step in steps:
        step()
        dataset = lance.dataset(uri)
        assert_same_dataset(uri)
    more = pa.table({"id": [500, 501], "doubled": pa.array([1, 2], pa.int32()), "extra": ["x", None]})
    ours.write_dataset(more, uri, mode="append")
    assert_same_dataset(uri)
    for version in range(1, lance.dataset(uri).version + 1):
        assert_same_dataset(uri, version=version)


SCALAR = [("id", "BTREE", "id = 57"), ("kind", "BITMAP", "kind = 'kind 2'"), ("id", "ZONEMAP", "id > 90")]
SCALAR += [("labels", "LABEL_LIST", "array_has_any(labels, ['l1'])"), ("id", "BLOOMFILTER", "id = 57")]
SCALAR += [("text", "NGRAM", "contains(text, 'number 57')")]


@STABLE
@pytest.mark.parametrize(("column", "kind", "query"), SCALAR, ids=[kind for _, kind, _ in SCALAR])
def test_scalar_indices_live_on_after_our_writes(
    tmp_path: Path, stable: bool, column: str, kind: str, query: str
) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(_rows(0, 120), uri, max_rows_per_file=50, enable_stable_row_ids=stable)
    dataset.create_scalar_index(column, kind, name="the_index")
    made = indices_of(dataset)
    assert_same_dataset(uri)
    dataset.delete("id in (2, 62)")
    other = copy_of(uri, "copy.lance")
    for _ in range(2):
        ours.write_dataset(_rows(120, 160), uri, mode="append")
        lance.write_dataset(_rows(120, 160), other, mode="append")
    ours.dataset(uri).update_config({"a": "b"})
    lance.dataset(other).update_config({"a": "b"})
    there = lance.dataset(uri)
    assert indices_of(there) == made
    assert state_of(uri) == state_of(other)
    assert "ScalarIndexQuery" in there.scanner(filter=query).explain_plan()
    expected = there.scanner(filter=query, use_scalar_index=False).to_table()
    assert expected.num_rows > 0
    assert_same_rows(there.scanner(filter=query).to_table().sort_by("id"), expected.sort_by("id"))
    assert_same_rows(ours.dataset(uri).to_table(filter=query).sort_by("id"), expected.sort_by("id"))
    there.optimize.optimize_indices()
    assert_same_dataset(uri)
    assert lance.dataset(uri).count_rows(query) == expected.num_rows


@STABLE
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ"])
def test_vector_indices_live_on_after_our_append(tmp_path: Path, stable: bool, kind: str) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(_rows(0, 400), uri, max_rows_per_file=200, enable_stable_row_ids=stable)
    options = {"num_sub_vectors": 4} if kind == "IVF_PQ" else {}
    dataset.create_index("v", kind, num_partitions=2, **options)
    made = indices_of(dataset)
    assert_same_dataset(uri)
    ours.write_dataset(_rows(1000, 1100), uri, mode="append")
    assert_same_dataset(uri)
    there = lance.dataset(uri)
    assert indices_of(there) == made
    query = {"column": "v", "q": _rows(1000, 1001)["v"][0].as_py(), "k": 3, "nprobes": 2}
    assert "ANN" in there.scanner(nearest=query).explain_plan()
    assert there.to_table(nearest=query)["id"].to_pylist()[0] == 1000  # a row that we appended
    there.optimize.optimize_indices()
    assert lance.dataset(uri).to_table(nearest=query)["id"].to_pylist()[0] == 1000


@STABLE
def test_text_index_lives_on_after_our_append(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(_rows(0, 40), uri, enable_stable_row_ids=stable)
    dataset.create_scalar_index("text", "INVERTED")
    ours.write_dataset(_rows(40, 80), uri, mode="append")
    assert_same_dataset(uri)
    found = lance.dataset(uri).to_table(full_text_query="57")
    assert found["id"].to_pylist() == [57]


@STABLE
def test_overwrite_drops_indices_and_restore_brings_them_back(tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(_rows(0, 100), uri, enable_stable_row_ids=stable)
    dataset.create_scalar_index("id", "BTREE")
    made = indices_of(dataset)
    ours.write_dataset(_rows(200, 210), uri, mode="overwrite")
    assert indices_of(lance.dataset(uri)) == []
    ours.dataset(uri, version=2).restore()
    there = lance.dataset(uri)
    assert indices_of(there) == made
    assert "ScalarIndexQuery" in there.scanner(filter="id = 5").explain_plan()
    assert there.to_table(filter="id = 5")["id"].to_pylist() == [5]
    assert_same_dataset(uri)
