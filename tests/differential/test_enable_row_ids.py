"""Stable row ids switched on later; pylance is the referee: its indices before, its changes after, its races during."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw

from .referee import lance

ROWS, PER_FILE, DIM = 1200, 300, 8
VECTORS = np.random.default_rng(5).random((2 * ROWS, DIM)).astype(np.float32)
LINEAGE = ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]


def _rows(start: int, stop: int) -> pa.Table:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS[start:stop].ravel()), DIM)
    return pa.table({"id": range(start, stop), "x": [float(i) for i in range(start, stop)], "v": vectors})


def _table(uri: str, *, indices: bool) -> Any:
    """Four fragments, every tenth row deleted; a BTREE and an IVF_PQ by pylance."""
    ds = lance.write_dataset(_rows(0, ROWS), uri, max_rows_per_file=PER_FILE)
    if indices:
        ds.create_scalar_index("id", "BTREE")
        ds.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=2)
    ds.delete("id % 10 = 3")
    return ds


def _ids(uri: str) -> dict[int, int]:
    """Row id by row, as pylance and we agree on it; no id twice."""
    theirs, ours = lance.dataset(uri), tw.dataset(uri)
    theirs.validate()
    ours.validate()
    table = theirs.to_table(columns=["id", "x", *LINEAGE])
    assert table.equals(ours.to_table(columns=["id", "x", *LINEAGE]))
    ids = dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))
    assert len(ids) == len(set(ids.values())) == table.num_rows
    picked = sorted(ids)[:: max(1, len(ids) // 50)]
    assert ours.take_rows([ids[row] for row in picked])["id"].to_pylist() == picked
    assert theirs._take_rows([ids[row] for row in picked])["id"].to_pylist() == picked
    return ids


def _check_indices(uri: str, ids: dict[int, int]) -> None:
    """Both indices are used, and answer as a scan does."""
    ds = lance.dataset(uri)
    assert "ScalarIndexQuery" in ds.scanner(filter="id = 7").explain_plan()
    wanted = list(range(0, max(ids) + 5, 7))
    for predicate in (f"id in ({', '.join(map(str, wanted))})", "id >= 1000", "id < 40"):
        found = ds.to_table(columns=["id", "_rowid"], filter=predicate)
        flat = ds.scanner(columns=["id", "_rowid"], filter=predicate, use_scalar_index=False).to_table()
        assert sorted(found.to_pylist(), key=str) == sorted(flat.to_pylist(), key=str)
        assert all(ids[row["id"]] == row["_rowid"] for row in found.to_pylist())
    for row in (5, 777, 1111):
        nearest = {"column": "v", "q": VECTORS[row], "k": 2, "nprobes": 2, "refine_factor": 20}
        assert "ANN" in ds.scanner(nearest=nearest).explain_plan()
        assert ds.to_table(nearest=nearest, columns=["id", "_distance"])["id"][0].as_py() == row


def test_pylance_goes_on_with_its_indices(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    before = _table(uri, indices=True).to_table(columns=["id"], with_row_id=True)
    addresses = dict(zip(before["id"].to_pylist(), before["_rowid"].to_pylist(), strict=True))
    files = {path for path in tmp_path.rglob("*") if path.suffix == ".lance" or "_deletions" in path.parts}
    ds = tw.dataset(uri)
    version = ds.version
    ds.enable_stable_row_ids()
    assert (ds.version, ds.has_stable_row_ids) == (version + 1, True)
    ds.enable_stable_row_ids()
    assert ds.version == ds.latest_version == version + 1
    assert {p for p in tmp_path.rglob("*") if p.suffix == ".lance" or "_deletions" in p.parts} == files

    assert lance.dataset(uri).has_stable_row_ids
    assert _ids(uri) == addresses
    lineage = lance.dataset(uri).to_table(columns=LINEAGE)
    assert lineage["_rowaddr"].equals(lineage["_rowid"])
    assert set(lineage["_row_created_at_version"].to_pylist()) == {version + 1}
    assert set(lineage["_row_last_updated_at_version"].to_pylist()) == {version + 1}
    _check_indices(uri, addresses)
    assert [list(index.coverage or ()) for index in ds._snapshot.manifest.indices] == [[0, 1, 2, 3]] * 2

    lance.dataset(uri).update({"x": "x + 1000"}, where="id % 5 = 0")
    assert _ids(uri) == addresses
    _check_indices(uri, addresses)
    lance.dataset(uri).insert(_rows(ROWS, ROWS + 100))
    ids = _ids(uri)
    assert {row: ids[row] for row in addresses} == addresses
    assert min(ids[row] for row in range(ROWS, ROWS + 100)) == 4 << 32
    tw.dataset(uri).update({"x": "x + 1000"}, where="id % 7 = 0")
    assert _ids(uri) == ids
    lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=10_000)
    assert len(lance.dataset(uri).get_fragments()) < 4
    assert _ids(uri) == ids
    _check_indices(uri, ids)
    lance.dataset(uri).optimize.optimize_indices()
    assert _ids(uri) == ids
    _check_indices(uri, ids)
    merge = tw.dataset(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(_rows(ROWS + 50, ROWS + 150))
    after = _ids(uri)
    assert {row: after[row] for row in ids} == ids
    _check_indices(uri, after)


def test_indices_stay_right_while_pylance_appends(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    old = _table(uri, indices=True).to_table(columns=["id"], with_row_id=True)
    addresses = dict(zip(old["id"].to_pylist(), old["_rowid"].to_pylist(), strict=True))
    begun, failures = threading.Event(), []

    def append() -> None:
        try:
            for batch in range(12):
                lance.write_dataset(_rows(ROWS + 10 * batch, ROWS + 10 * batch + 10), uri, mode="append")
                begun.set()
        except BaseException as error:
            failures.append(error)
            begun.set()

    ds = tw.dataset(uri)
    writer = threading.Thread(target=append)
    writer.start()
    begun.wait()
    ds.enable_stable_row_ids()
    writer.join()
    assert not failures
    ids = _ids(uri)
    assert {row: ids[row] for row in addresses} == addresses and len(ids) == len(addresses) + 120
    _check_indices(uri, ids)
    lance.dataset(uri).update({"x": "x + 1"}, where="id % 3 = 0")
    lance.dataset(uri).optimize.compact_files(target_rows_per_fragment=10_000)
    assert _ids(uri) == ids
    _check_indices(uri, ids)


def _upsert(ds: Any) -> None:
    new = _rows(ROWS - 20, ROWS + 20).set_column(1, "x", pa.array([-1.0] * 40))
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(new)


Change = tuple[Callable[[Any], Any], Callable[[dict[int, float]], dict[int, float]]]
CHANGES: dict[str, Change] = {
    "append": (
        lambda ds: ds.insert(_rows(ROWS, ROWS + 10)),
        lambda m: m | {i: float(i) for i in range(ROWS, ROWS + 10)},
    ),
    "delete": (lambda ds: ds.delete("id % 7 = 2"), lambda m: {i: x for i, x in m.items() if i % 7 != 2}),
    "delete a fragment": (lambda ds: ds.delete("id < 300"), lambda m: {i: x for i, x in m.items() if i >= 300}),
    "update": (
        lambda ds: ds.update({"x": "x + 0.5"}, where="id % 4 = 1"),
        lambda m: {i: x + 0.5 if i % 4 == 1 else x for i, x in m.items()},
    ),
    "upsert": (
        _upsert,
        lambda m: m | dict.fromkeys(range(ROWS - 20, ROWS + 20), -1.0),
    ),
    "index": (lambda ds: ds.create_scalar_index("id", "BTREE"), dict),
    "compaction": (lambda ds: ds.optimize.compact_files(target_rows_per_fragment=10_000), dict),
    "config": (lambda ds: ds.update_config({"a": "b"}), dict),
    "drop column": (lambda ds: ds.drop_columns(["v"]), dict),
}


@pytest.mark.parametrize("first", ["switch", "theirs"])
@pytest.mark.parametrize("name", CHANGES)
def test_races(tmp_path: Path, name: str, first: str) -> None:
    """Two handles of one version: pylance changes the table, we switch row ids on; both take effect in either order."""
    change, expected = CHANGES[name]
    uri = str(tmp_path / "t.lance")
    theirs = _table(uri, indices=False)
    ours = tw.dataset(uri)
    old = theirs.to_table(columns=["id", "x"], with_row_id=True)
    addresses = dict(zip(old["id"].to_pylist(), old["_rowid"].to_pylist(), strict=True))
    model = dict(zip(old["id"].to_pylist(), old["x"].to_pylist(), strict=True))
    if first == "switch":
        ours.enable_stable_row_ids()
        if name in ("compaction", "drop column"):  # pylance does not run these again by itself, but says so
            with pytest.raises(OSError, match=r"[Rr]etry"):
                change(theirs)
            theirs = lance.dataset(uri)
        change(theirs)
    else:
        change(theirs)
        ours.enable_stable_row_ids()
    table = lance.dataset(uri).to_table(columns=["id", "x"])
    assert dict(zip(table["id"].to_pylist(), table["x"].to_pylist(), strict=True)) == expected(model)
    ids = _ids(uri)
    assert lance.dataset(uri).has_stable_row_ids
    moved_before = first == "theirs" and name in ("update", "upsert", "compaction")
    assert moved_before or {row: ids[row] for row in ids if row in addresses} == {
        row: addresses[row] for row in addresses if row in ids
    }
    tw.dataset(uri).update({"x": "x - 1"}, where="id % 3 = 0")
    lance.dataset(uri).update({"x": "x - 1"}, where="id % 3 = 0")
    assert _ids(uri) == ids
    if name == "index":
        found = lance.dataset(uri).to_table(columns=["id"], filter="id > 100 and id < 900")["id"].to_pylist()
        assert sorted(found) == [row for row in sorted(model) if 100 < row < 900]


def test_clones_branches_and_restored_versions(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    _table(uri, indices=False)
    ds = tw.dataset(uri)
    start = ds.version
    branch = ds.create_branch("side")
    branch.enable_stable_row_ids()
    assert branch.has_stable_row_ids and not tw.dataset(uri).has_stable_row_ids
    assert lance.dataset(uri).checkout_version(("side", None)).has_stable_row_ids
    ds.enable_stable_row_ids()
    ds.insert(_rows(ROWS, ROWS + 10))
    ds.update({"x": "0"}, where="id < 5 or id = 1205")
    marks = ds._snapshot.manifest
    ds.checkout_version(start).restore()
    back = tw.dataset(uri)
    assert not back.has_stable_row_ids and not lance.dataset(uri).has_stable_row_ids
    assert back._snapshot.manifest.next_row_id == marks.next_row_id
    lance.dataset(uri).insert(_rows(2 * ROWS - 10, 2 * ROWS))
    back = tw.dataset(uri)
    back.enable_stable_row_ids()
    fresh = back.to_table(columns=["_rowid"], filter=f"id >= {ROWS}")["_rowid"].to_pylist()
    assert min(fresh) >= marks.next_row_id and (_ids(uri)[0], back.count_rows()) == (0, 1090)
    assert back._snapshot.manifest.next_row_id > max(fresh)
