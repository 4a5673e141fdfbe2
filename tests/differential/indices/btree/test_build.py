"""BTREEs that we build: pylance uses them, gives the answers of a flat scan, and goes on with them."""

from __future__ import annotations

import datetime
import decimal
import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import lance
import numpy as np
import pyarrow as pa
import pytest
from tests.unit.indices.btree.tables import metadata_of, plan_of, same, stage_of, tiny

from tablewright.format.index import IndexMetadata
from tablewright.format.transaction import CreateIndex, Transaction
from tablewright.indices import btree
from tablewright.indices.building import OldSegment
from tablewright.indices.files import read_index_file
from tablewright.indices.query import Ids
from tablewright.snapshot import Snapshot, open_snapshot
from tablewright.storage import open_store
from tablewright.transaction.commit import commit
from tablewright.world import World

STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable"])
ROWS = 300


def snapshot_of(path: Path) -> Snapshot:
    return open_snapshot(World(open_store(str(path))))


def commit_index(snapshot: Snapshot, new: IndexMetadata, removed: tuple[IndexMetadata, ...] = ()) -> None:
    operation = CreateIndex(new_indices=(new,), removed_indices=removed)
    transaction = Transaction(read_version=snapshot.version, uuid=str(uuid4()), operation=operation)
    commit(snapshot.world, transaction, base=snapshot)


def index_of(path: Path, column: str, **facts: Any) -> IndexMetadata:
    """Build an index on a column, and commit it."""
    snapshot = snapshot_of(path)
    plan = plan_of(snapshot, column=column, **facts)
    written = btree.build(plan, snapshot.world, stage_of(snapshot.world))
    index = replace(metadata_of(plan, written), name=f"{column}_idx", created_at_ms=1)
    index = index.with_coverage(fragment.id for fragment in plan.fragments)
    commit_index(snapshot, index)
    return index


def columns() -> pa.Table:
    """A column of every kind, with nulls and repetitions."""
    chance = np.random.default_rng(0)
    numbers = chance.integers(-40, 40, ROWS).tolist()
    start = datetime.datetime(2020, 1, 1)

    def some(values: list[Any], kind: pa.DataType) -> pa.Array:
        return pa.array([None if at % 11 == 0 else value for at, value in enumerate(values)], kind)

    floats = [math.nan if value == 7 else -0.0 if value == 0 else value / 2 for value in numbers]
    return pa.table(
        {
            "int64": some(numbers, pa.int64()),
            "int16": some(numbers, pa.int16()),
            "uint64": some([value + 2**63 for value in numbers], pa.uint64()),
            "float64": some(floats, pa.float64()),
            "float32": some(floats, pa.float32()),
            "float16": some([np.float16(value) for value in floats], pa.float16()),
            "bool": some([value > 0 for value in numbers], pa.bool_()),
            "text": some([f"word {abs(value):03}" for value in numbers], pa.string()),
            "large_text": some([f"word {abs(value)}" for value in numbers], pa.large_string()),
            "bytes": some([b"%d" % value for value in numbers], pa.binary()),
            "fixed": some([b"%03d" % abs(value) for value in numbers], pa.binary(3)),
            "day": some([start.date() + datetime.timedelta(value) for value in numbers], pa.date32()),
            "time": some(
                [datetime.time(1, value + 10) if value > 0 else datetime.time() for value in numbers], pa.time64("us")
            ),
            "moment": some([start + datetime.timedelta(value) for value in numbers], pa.timestamp("us")),
            "decimal": some([decimal.Decimal(value) for value in numbers], pa.decimal128(9, 2)),
            "nothing": pa.nulls(ROWS, pa.int32()),
            "n": pa.array(range(ROWS)),
        }
    )


FILTERS = {
    "int64": ["{c} = 5", "{c} != 5", "{c} IN (1, 2, 99)", "{c} >= -3 AND {c} < 7", "NOT ({c} < 3)"],
    "int16": ["{c} = 5", "{c} < 0"],
    "uint64": ["{c} = 9223372036854775808", "{c} > 9223372036854775818"],
    "float64": ["{c} = 2.5", "{c} > 3.0", "{c} < 0.0", "{c} = 0.0", "{c} != 1.0"],
    "float32": ["{c} > cast(3.0 as float)", "{c} <= cast(0.5 as float)"],
    "float16": [],
    "bool": ["{c} = true", "{c} = false"],
    "text": ["{c} = 'word 007'", "{c} >= 'word 02'", "starts_with({c}, 'word 01')", "{c} LIKE 'word 02%'"],
    "large_text": ["{c} = 'word 7'", "{c} < 'word 2'"],
    "bytes": ["{c} = X'35'"],
    "fixed": [],
    "day": ["{c} = date '2020-01-06'", "{c} < date '2019-12-31'"],
    "time": [],
    "moment": ["{c} > timestamp '2020-01-10 00:00:00'"],
    "decimal": ["{c} > cast(3 AS decimal(9, 2))", "{c} = cast(5 AS decimal(9, 2))"],
    "nothing": ["{c} = 4"],
}
EVERY = ["{c} IS NULL", "{c} IS NOT NULL"]


def check(path: Path, column: str, used: str | None = None, minimum: int = 1) -> None:
    """Answers through the index are those of a flat scan, and the plan names the index."""
    dataset = lance.dataset(str(path))
    name = used or f"{column}_idx"
    asked = 0
    for form in (*FILTERS[column], *EVERY):
        text = form.format(c=column)
        by_index = dataset.scanner(filter=text, columns=["n"])
        flat = dataset.scanner(filter=text, columns=["n"], use_scalar_index=False)
        assert f"@{name}(BTree)" in by_index.explain_plan(True), text
        found = sorted(by_index.to_table()["n"].to_pylist())
        assert found == sorted(flat.to_table()["n"].to_pylist()), text
        asked += len(found) > 0
    assert asked >= minimum


@STABLE
@pytest.mark.parametrize("column", FILTERS)
def test_pylance_uses_our_index_on_every_type(column: str, stable: bool, tmp_path: Path) -> None:
    dataset = lance.write_dataset(
        columns().select([column, "n"]), tmp_path, max_rows_per_file=90, enable_stable_row_ids=stable
    )
    dataset.delete("n % 7 = 3")
    with tiny(32, 20):
        index_of(tmp_path, column)
    check(tmp_path, column)
    lance.dataset(tmp_path).delete("n % 13 = 1")
    lance.write_dataset(columns().select([column, "n"]).slice(0, 50), tmp_path, mode="append")
    check(tmp_path, column)


@STABLE
@pytest.mark.parametrize("column", ["int64", "text", "float64"])
def test_pylance_optimises_and_compacts_a_table_with_our_index(column: str, stable: bool, tmp_path: Path) -> None:
    rows = columns().select([column, "n"])
    dataset = lance.write_dataset(rows, tmp_path, max_rows_per_file=60, enable_stable_row_ids=stable)
    with tiny(32, 20):  # the file is made of parts
        index_of(tmp_path, column)
    dataset = lance.dataset(tmp_path)
    dataset.delete("n % 5 = 2")
    dataset.optimize.compact_files(target_rows_per_fragment=200)
    check(tmp_path, column)
    lance.write_dataset(rows, tmp_path, mode="append")
    lance.dataset(tmp_path).optimize.optimize_indices()
    check(tmp_path, column)
    lance.dataset(tmp_path).update({"n": "n + 1000"}, where="n % 3 = 0")
    check(tmp_path, column)
    lance.dataset(tmp_path).optimize.optimize_indices()
    lance.dataset(tmp_path).optimize.compact_files()
    check(tmp_path, column)


def test_an_untrained_index_is_ignored_and_harmless(tmp_path: Path) -> None:
    lance.write_dataset(columns().select(["int64", "n"]), tmp_path)
    index_of(tmp_path, "int64", fragments=())
    dataset = lance.dataset(tmp_path)
    assert dataset.count_rows("int64 = 5") == dataset.scanner(filter="int64 = 5", use_scalar_index=False).count_rows()
    dataset.optimize.optimize_indices()
    check(tmp_path, "int64")


@pytest.mark.parametrize("column", ["int64", "text"])
def test_pylance_uses_an_index_that_we_remapped(column: str, tmp_path: Path) -> None:
    """Translated by hand: the table is written again in one fragment, and the old index goes with it."""
    rows = columns().select([column, "n"])
    lance.write_dataset(rows, tmp_path / "old", max_rows_per_file=60).create_scalar_index(column, "BTREE")
    lance.write_dataset(rows, tmp_path / "new")
    old, new = snapshot_of(tmp_path / "old"), snapshot_of(tmp_path / "new")

    def translate(ids: Ids) -> tuple[Ids, Any]:
        return (ids >> np.uint64(32)) * np.uint64(60) + (ids & np.uint64(0xFFFFFFFF)), np.ones(len(ids), np.bool_)

    uuid = uuid4()
    (theirs,) = old.manifest.indices
    written = btree.remap(old, theirs, translate, new.world, f"_indices/{uuid}")
    index = replace(theirs, uuid=uuid, dataset_version=new.version, files=written.files).with_coverage([0])
    commit_index(new, index)
    check(tmp_path / "new", column)


def test_segments_of_pylance_are_merged_into_ours(tmp_path: Path) -> None:
    """Two of its segments, and a fragment that no index covers yet."""
    rows = columns().select(["text", "n"])
    lance.write_dataset(rows.slice(0, 100), tmp_path).create_scalar_index("text", "BTREE")
    lance.write_dataset(rows.slice(100, 100), tmp_path, mode="append")
    lance.dataset(tmp_path).optimize.optimize_indices(num_indices_to_merge=0)
    lance.write_dataset(rows.slice(200), tmp_path, mode="append")
    lance.dataset(tmp_path).delete("n % 9 = 4")
    snapshot = snapshot_of(tmp_path)
    old = snapshot.manifest.indices
    assert len(old) == 2

    def live(ids: Ids) -> tuple[Ids, Any]:
        numbers = (ids >> np.uint64(32)) * np.uint64(100) + (ids & np.uint64(0xFFFFFFFF))
        return ids, numbers % np.uint64(9) != 4

    plan = plan_of(
        snapshot,
        column="text",
        old=tuple(OldSegment(index, live) for index in old),
        fragments=tuple(snapshot.fragments)[2:],
    )
    with tiny(16, 10):
        written = btree.build(plan, snapshot.world, stage_of(snapshot.world))
    index = replace(metadata_of(plan, written), name="text_idx").with_coverage([0, 1, 2])
    commit_index(snapshot, index, old)
    check(tmp_path, "text")
    assert len(snapshot_of(tmp_path).manifest.indices) == 1


def test_pylance_orders_and_pages_as_we_do(tmp_path: Path) -> None:
    """More than one page, every kind of float, equal values: the same order."""
    chance = np.random.default_rng(1)
    floats = np.concatenate([chance.normal(size=9000), [math.nan, -math.nan, 0.0, -0.0, math.inf, -math.inf] * 40])
    chance.shuffle(floats)
    values = pa.array(floats, mask=chance.random(len(floats)) < 0.1)
    lance.write_dataset(pa.table({"c": values}), tmp_path, max_rows_per_file=4000).create_scalar_index("c", "BTREE")
    snapshot = snapshot_of(tmp_path)
    (theirs,) = snapshot.manifest.indices
    plan = plan_of(snapshot)
    btree.build(plan, snapshot.world, stage_of(snapshot.world))
    store, directory = snapshot.index_place(theirs)
    (ours, other), lookups = (
        [read_index_file(store, place, name).rows for place in (plan.directory, directory)]
        for name in ("page_data.lance", "page_lookup.lance")
    )
    assert ours.schema == other.schema
    assert _named(ours, "values") == _named(other, "values")
    assert sorted(_entries(ours)) == sorted(_entries(other))  # pylance has equal values in any order
    for column in ("min", "max", "null_count", "page_idx"):
        assert _named(lookups[0], column) == _named(lookups[1], column)


def _named(rows: pa.Table, column: str) -> list[Any]:
    return [same(value) for value in rows[column].to_pylist()]


def _entries(rows: pa.Table) -> list[tuple[str, int]]:
    return list(zip(map(str, _named(rows, "values")), rows["ids"].to_pylist(), strict=True))
