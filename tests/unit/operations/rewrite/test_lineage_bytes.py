"""What either way adds to the manifest is what commits add to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.format.fragment import Fragment
from tablewright.format.row_ids import RowIdSequence, VersionSequence, encode_row_ids, encode_versions
from tablewright.format.row_set import RowSet
from tablewright.operations.rewrite.lineage_bytes import LineageBytes, lineage_bytes, most_lineage_bytes

ROWS = 10_000
FRAGMENT = Fragment(
    id=0,
    files=(),
    physical_rows=ROWS,
    row_ids=encode_row_ids(RowIdSequence.from_range(0, ROWS)),
    created_at=encode_versions(VersionSequence.constant(ROWS, 1)),
    last_updated_at=encode_versions(VersionSequence.constant(ROWS, 1)),
)


def weighed(rows: Iterable[int], fragment: Fragment = FRAGMENT) -> LineageBytes:
    return lineage_bytes(fragment, RowSet.of(rows), 2)


def test_a_run_is_ten_bytes_and_scattered_ids_are_a_bitmap() -> None:
    scattered = weighed(range(1, ROWS, 5))
    assert 39_900 < scattered.columns < 40_000
    assert ROWS / 8 < scattered.rows < ROWS / 8 + 60
    together = weighed(range(1000, 3000))
    assert 0 < together.columns < 40 and 0 < together.rows < 40


def test_rows_that_were_updated_before_cost_little_the_next_time() -> None:
    offsets = RowSet.of(range(1, ROWS, 5))
    patched = VersionSequence.constant(ROWS, 1).patched(offsets, 2)
    before = replace(FRAGMENT, last_updated_at=encode_versions(patched))
    assert lineage_bytes(before, offsets, 3).columns == 0
    assert lineage_bytes(before, None, 3).columns < -39_000


def test_all_live_rows_are_one_run() -> None:
    every = weighed(range(ROWS))
    assert every == lineage_bytes(FRAGMENT, None, 2) == LineageBytes(0, 0)


def test_tables_without_row_ids_have_no_lineage() -> None:
    bare = replace(FRAGMENT, row_ids=None, created_at=None, last_updated_at=None)
    assert weighed([1, 5], bare) == LineageBytes(0, 0)
    unknown = replace(FRAGMENT, created_at=None, last_updated_at=None)
    assert weighed([1, 5], unknown).columns > 0


@pytest.mark.parametrize("mode", ["rewrite_rows", "rewrite_columns"])
def test_it_is_what_a_commit_adds(tmp_path: Path, mode: str) -> None:
    rows = pa.table({"id": range(ROWS), "x": np.zeros(ROWS)})
    dataset = tw.write_dataset(rows, tmp_path / "t", enable_stable_row_ids=True)
    where = RowSet.of(range(0, ROWS, 7))
    expected = lineage_bytes(dataset._snapshot.fragments[0], where, 2)
    before = _sequences(dataset)
    dataset.update({"x": "1"}, where="id % 7 = 0", write_mode=mode)
    assert _sequences(dataset) - before == (expected.rows if mode == "rewrite_rows" else expected.columns)


def _sequences(dataset: tw.LanceDataset) -> int:
    return sum(
        len(data or b"")
        for each in dataset._snapshot.fragments
        for data in (each.row_ids, each.created_at, each.last_updated_at)
    )


@pytest.mark.parametrize("kind", ["scattered", "shuffled", "far apart", "one", "updated before"])
def test_moved_rows_never_cost_more_than_the_most(kind: str) -> None:
    chance = np.random.default_rng(5)
    rows = RowSet.of([17] if kind == "one" else chance.choice(ROWS, 700, replace=False))
    versions = chance.integers(1, 2**40, ROWS)
    fragment = replace(FRAGMENT, created_at=encode_versions(VersionSequence.from_values(versions)))
    if kind in ("shuffled", "far apart"):
        ids = chance.permutation(ROWS).astype(np.uint64) * np.uint64(1 if kind == "shuffled" else 2**49)
        fragment = replace(fragment, row_ids=encode_row_ids(RowIdSequence.from_values(ids)))
    if kind == "updated before":
        fragment = replace(fragment, last_updated_at=fragment.created_at)
    cost = lineage_bytes(fragment, rows, 2**41)
    assert cost.rows - cost.columns <= most_lineage_bytes(fragment, len(rows))
