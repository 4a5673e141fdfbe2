"""Row ids in all five shapes: those that we choose are read by pylance, and those that pylance chooses by us."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.format.envelope import encode_manifest_file
from tablewright.format.row_ids import RowIdSequence, decode_row_ids, encode_row_ids
from tablewright.format.segments import Array, Range, RangeWithBitmap, RangeWithHoles, SortedArray

from .referee import lance

CHANCE = np.random.default_rng(8)
SHAPES: dict[str, tuple[np.ndarray, list[type]]] = {  # type: ignore[type-arg]
    "range": (np.arange(70, 470), [Range]),
    "holes": (np.delete(np.arange(10, 5010), [7, 2500, 4000]), [RangeWithHoles]),
    "wide holes": (np.delete(np.arange(10, 100_010), [7, 90_000]), [RangeWithHoles]),
    "bitmap": (np.sort(CHANCE.choice(4000, 1500, replace=False)), [RangeWithBitmap]),
    "sorted, 16 bits": (np.sort(CHANCE.choice(60_000, 300, replace=False)), [SortedArray]),
    "sorted, 32 bits": (np.arange(20) * 60_000_001, [SortedArray]),
    "sorted, 64 bits": (np.array([5, 2**50, 2**50 + 2**34]), [SortedArray]),
    "any order, 16 bits": (CHANCE.permutation(300), [Array]),
    "any order, 32 bits": (CHANCE.permutation(np.arange(200) * 1_000_003), [Array]),
    "any order, 64 bits": (np.array([2**45, 3, 2**40, 1]), [Array]),
    "range and bitmap": (
        np.concatenate([np.arange(5000), np.sort(CHANCE.choice(4000, 1500, replace=False)) + 5001]),
        [Range, RangeWithBitmap],
    ),
    "several": (np.concatenate([np.arange(90), (7 << 32) + np.arange(80), [3 << 32]]), [Range, Range, Range]),
}


def _newest_ids(uri: str) -> RowIdSequence:
    fragment = tw.dataset(uri)._snapshot.fragments[-1]
    return decode_row_ids(fragment.row_ids or b"", "", fragment.physical_rows)


def _check(uri: str, expected: list[int]) -> None:
    theirs, ours = lance.dataset(uri), tw.dataset(uri)
    for ds in (theirs, ours):
        ds.validate()
        assert ds.to_table(columns=["_rowid"])["_rowid"].to_pylist() == expected
    some = expected[:: max(1, len(expected) // 40)]
    values = ours.to_table(columns=["id", "_rowid"])
    by_id = dict(zip(values["_rowid"].to_pylist(), values["id"].to_pylist(), strict=True))
    assert theirs._take_rows(some)["id"].to_pylist() == [by_id[i] for i in some]
    assert ours.take_rows(some)["id"].to_pylist() == [by_id[i] for i in some]


@pytest.mark.parametrize("name", SHAPES)
def test_pylance_reads_what_we_choose(tmp_path: Path, name: str) -> None:
    ids, shapes = SHAPES[name]
    uri = str(tmp_path / "t.lance")
    ds = tw.write_dataset(pa.table({"id": range(len(ids))}), uri, enable_stable_row_ids=True)
    sequence = RowIdSequence.from_values(ids.astype(np.uint64))
    assert [type(segment) for segment in sequence.segments] == shapes
    snapshot = ds._snapshot
    fragments = snapshot.fragments.replaced({0: replace(snapshot.fragments[0], row_ids=encode_row_ids(sequence))})
    manifest = replace(snapshot.manifest, fragments=fragments, next_row_id=int(ids.max()) + 1)
    encoded = encode_manifest_file(manifest, snapshot.file.transaction_bytes or b"")
    (tmp_path / "t.lance" / snapshot.entry.path).write_bytes(encoded)
    _check(uri, ids.tolist())
    half = ids[::2].tolist()
    lance.dataset(uri).delete("id % 2 = 1")
    lance.dataset(uri).optimize.compact_files(materialize_deletions_threshold=0.0)
    _check(uri, half)
    tw.dataset(uri).update({"id": "id + 100000"}, write_mode="rewrite_rows")
    _check(uri, sorted(half))


def _updated(ds: Any, *predicates: str) -> None:
    for predicate in predicates:
        ds.update({"x": "x + 1"}, where=predicate)


PYLANCE: dict[str, Any] = {
    "append": lambda ds: ds.insert(pa.table({"id": range(900, 950), "x": [0] * 50})),
    "holes": lambda ds: (ds.delete("id in (3, 170)"), ds.optimize.compact_files(materialize_deletions_threshold=0.0)),
    "bitmap": lambda ds: (ds.delete("id % 3 = 1"), ds.optimize.compact_files(materialize_deletions_threshold=0.0)),
    "moved": lambda ds: _updated(ds, "id % 2 = 0"),
    "sparse": lambda ds: _updated(ds, "id in (1, 250, 599)"),
    "again": lambda ds: _updated(ds, "id >= 400 and id % 3 = 0", "id < 100", "id % 2 = 0"),
    "compacted": lambda ds: (_updated(ds, "id >= 400 and id % 3 = 0", "id < 100"), ds.optimize.compact_files()),
}


@pytest.mark.parametrize("name", PYLANCE)
def test_we_read_what_pylance_chooses(tmp_path: Path, name: str) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"id": range(600), "x": [0] * 600})
    ds = lance.write_dataset(rows, uri, max_rows_per_file=200, enable_stable_row_ids=True)
    PYLANCE[name](ds)
    expected = lance.dataset(uri).to_table(columns=["_rowid"])["_rowid"].to_pylist()
    _check(uri, expected)
    sequence = _newest_ids(uri)
    again = RowIdSequence.from_values(sequence.to_numpy())
    fewer = len(sequence.segments) - len(again.segments)  # a segment counts 32 bytes more than it has
    assert len(encode_row_ids(again)) <= len(encode_row_ids(sequence)) + 32 * fewer
