"""Compaction of ours, judged by pylance; and tables of pylance, compacted by us."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import tablewright as tw


def rows(dataset: object, stable: bool) -> pa.Table:
    columns = ["id", "v"] + (["_row_created_at_version", "_row_last_updated_at_version"] if stable else [])
    return dataset.to_table(columns=columns, with_row_id=stable)  # type: ignore[attr-defined]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("writer", ["ours", "pylance"])
def test_rows_ids_and_versions_stay(tmp_path: Path, stable: bool, writer: str) -> None:
    data = pa.table({"id": range(200), "v": [f"text {n}" for n in range(200)]})
    library = tw if writer == "ours" else lance
    library.write_dataset(data, str(tmp_path), max_rows_per_file=20, enable_stable_row_ids=stable)
    dataset = library.dataset(str(tmp_path))
    dataset.delete("id % 9 = 0")
    dataset.update({"v": "'moved'"}, where="id % 50 = 1")
    before = rows(lance.dataset(str(tmp_path)), stable)
    ours = tw.dataset(str(tmp_path))
    metrics = ours.optimize.compact_files(target_rows_per_fragment=100)
    assert metrics.rows == before.num_rows
    theirs = lance.dataset(str(tmp_path))
    theirs.validate()
    assert rows(theirs, stable).equals(before) and rows(ours, stable).equals(before)
    assert not any(fragment.num_deletions for fragment in theirs.get_fragments())
