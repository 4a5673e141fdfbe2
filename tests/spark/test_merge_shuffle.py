"""Merges whose keys Spark brings together: the same answers as any other way, whatever the limit is."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.concurrency.leftovers import unreferenced
from tests.depth import deep, pairs_first
from tests.spark.helpers import frame_of
from tests.unit.operations.merge_insert.merge_model import CASES, KEYS, builder, expected, sorted_rows, source, target
from tests.unit.operations.merge_insert.merge_model import TableRow as Row

import tablewright as tw
from tablewright.engine.spark import engine, spool
from tablewright.errors import CorruptTable
from tablewright.operations.merge_insert.limits import MatchLimits, MergeLimits

COUNTS = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")
CLAUSES = pairs_first(
    (case, {"matched": case.matched, "inserts": case.inserts, "by_source": case.by_source})
    for case in CASES
    if case.key == "composite" and not case.partial and (case.inserts or case.matched == "update")
)[: deep(9, 18)]


FEW_KEYS = MatchLimits(keys_per_worker=0, shuffle_partition_rows=12, shuffle_task_rows=7)
SHUFFLED = MergeLimits(match=FEW_KEYS)
"""Everything is shuffled, into several partitions."""


@pytest.fixture(params=["files of this machine", "Spark's shuffle"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers are on this machine, or elsewhere."""
    if request.param == "Spark's shuffle":
        monkeypatch.setattr(spool, "is_on_this_machine", lambda spark: False)
        monkeypatch.setattr(engine, "is_on_this_machine", lambda spark: False)


def _leftovers(uri: str) -> set[str]:
    paths = [str(path.relative_to(uri)) for path in Path(uri).rglob("*") if path.is_file()]
    return unreferenced(tw.dataset(uri), paths)


def test_every_combination_of_clauses(spark: Any, tmp_path: Path) -> None:
    base = str(tmp_path / "base.lance")
    tw.write_dataset(target(), base, max_rows_per_file=6, enable_stable_row_ids=True)
    tw.dataset(base).delete("s in ('row 1', 'row 8')")
    before = [
        Row({k: v for k, v in row.items() if k != "_rowid"}, row["_rowid"])
        for row in tw.dataset(base).to_table(with_row_id=True).to_pylist()
    ]
    for case in CLAUSES:
        dataset = tw.dataset(base, engine=spark)
        if case == CLAUSES[0]:
            assert "strategy: shuffle: " in case.configure(builder(dataset, KEYS[case.key], SHUFFLED)).analyze_plan(
                source(case)
            )
        outcome = expected(case, before, source(case).to_pylist())
        merge = case.configure(builder(dataset, KEYS[case.key], SHUFFLED))
        result = merge.execute(source(case))
        assert {name: result[name] for name in COUNTS} == outcome.counts, case
        after = lance.dataset(base).to_table(with_row_id=True).to_pylist()
        assert sorted_rows(after) == sorted_rows(outcome.rows), case
        kept = {row.identity for row in outcome.kept}
        assert kept <= {row["_rowid"] for row in after}, case
        assert not _leftovers(base), case
        tw.dataset(base, version=2).restore()


KINDS: dict[str, list[Any]] = {
    "uint64": [0, 2**64 - 1, 2**63],
    "float": [0.5, float("-inf"), 1e300],
    "bool": [True],
    "text": ["", "ä", "a\0b"],
    "binary": [b"", b"\xff\0", b"\xff"],
    "decimal": [Decimal("1.50"), Decimal("-7.25"), Decimal("0.00")],
    "date": [datetime.date(1969, 1, 2), datetime.date(2030, 1, 1)],
    "timestamp": [datetime.datetime(1969, 1, 2, 3, 4, 5, 6), datetime.datetime(2030, 1, 1)],
    "fixed": [b"abcd", b"\0\0\0\0"],
    "large": ["x", "y" * 300],
}
TYPES = {
    "uint64": pa.uint64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "text": pa.string(),
    "binary": pa.binary(),
    "decimal": pa.decimal128(9, 2),
    "date": pa.date32(),
    "timestamp": pa.timestamp("ns"),
    "fixed": pa.binary(4),
    "large": pa.large_string(),
}


def test_keys_of_every_type(spark: Any, tmp_path: Path) -> None:
    """One key column per type, all in one table: each finds the rows that it names, and no others."""
    for kind, values in KINDS.items():
        uri = str(tmp_path / f"{kind}.lance")
        known = pa.table({"k": pa.array([*values, None], TYPES[kind]), "x": [0] * (len(values) + 1)})
        tw.write_dataset(known, uri)
        merge = (
            builder(tw.dataset(uri, engine=spark), "k", SHUFFLED)
            .when_matched_update_all()
            .when_not_matched_insert_all()
        )
        result = merge.execute(pa.table({"k": pa.array([values[-1], None], TYPES[kind]), "x": [1, 2]}))
        assert [result[name] for name in COUNTS] == [1, 1, 0], kind
        found = lance.dataset(uri).to_table()
        rows = sorted(zip(found["x"].to_pylist(), map(repr, found["k"].to_pylist()), strict=True))
        assert rows == sorted(
            [
                *((0, repr(v)) for v in known["k"].to_pylist()[:-2]),
                (0, "None"),
                (1, repr(known["k"][-2].as_py())),
                (2, "None"),
            ]
        ), kind


def test_duplicates(spark: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    tw.write_dataset(pa.table({"k": range(40), "x": [0] * 40}), uri, max_rows_per_file=9)
    twice = pa.table({"k": [*range(30, 60), *range(45, 50), 31], "x": range(36)})
    files = {path for path in Path(uri).rglob("*") if path.is_file()}

    def upsert(dedupe: str | None) -> Any:
        merge = (
            builder(tw.dataset(uri, engine=spark), "k", SHUFFLED)
            .when_matched_update_all()
            .when_not_matched_insert_all()
        )
        return merge.dedupe(dedupe)

    with pytest.raises(OSError, match=r"Ambiguous merge inserts are prohibited.*on \(k = 31\).*Rows 1 and 35 "):
        upsert(None).execute(twice)
    assert {path for path in Path(uri).rglob("*") if path.is_file()} == files
    for dedupe in ("first", "last"):
        result = upsert(dedupe).execute(twice)
        assert [result[name] for name in COUNTS] == [20, 10, 0]
        table = lance.dataset(uri).to_table().to_pydict()
        rows = dict(zip(twice["k"].to_pylist(), twice["x"].to_pylist(), strict=True))
        if dedupe == "first":
            rows = dict(reversed(list(zip(twice["k"].to_pylist(), twice["x"].to_pylist(), strict=True))))
        assert dict(zip(table["k"], table["x"], strict=True)) == {k: rows.get(k, 0) for k in range(60)}
        assert len(table["k"]) == 60 and not _leftovers(uri)
        tw.dataset(uri, version=1).restore()


def test_an_index_is_not_asked_as_well(spark: Any, tmp_path: Path) -> None:
    limits = MergeLimits(match=replace(FEW_KEYS, lookup_ns=0, lookup_key_ns=0.001))
    uri = str(tmp_path / "t.lance")
    tw.write_dataset(pa.table({"k": [25], "x": [0]}), uri)
    lance.dataset(uri).create_scalar_index("k", "BTREE")
    tw.dataset(uri).insert(pa.table({"k": [11, 6], "x": [1, 2]}))
    merge = builder(tw.dataset(uri, engine=spark), "k", limits).when_matched_update_all().when_not_matched_insert_all()
    result = merge.execute(pa.table({"k": [20, 25, 11, 17], "x": [9] * 4}))
    assert [result[name] for name in COUNTS] == [2, 2, 0]
    assert sorted(lance.dataset(uri).to_table()["k"].to_pylist()) == [6, 11, 17, 20, 25]


def test_a_retry_shuffles_what_is_new_only(spark: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"k": range(40), "x": [0] * 40})
    tw.write_dataset(rows, uri, max_rows_per_file=10)
    stale = tw.dataset(uri, engine=spark)
    tw.write_dataset(pa.table({"k": [100, 101], "x": [7, 7]}), uri, mode="append")
    frame = frame_of(pa.table({"k": [5, 101, 102], "x": [1, 1, 1]}), spark)
    result = builder(stale, "k", SHUFFLED).when_matched_update_all().when_not_matched_insert_all().execute(frame)
    assert [result[name] for name in (*COUNTS, "num_attempts")] == [1, 2, 0, 2]
    table = lance.dataset(uri).to_table().to_pydict()
    expected_rows = dict.fromkeys(range(40), 0) | {5: 1, 100: 7, 101: 1, 102: 1}
    assert dict(zip(table["k"], table["x"], strict=True)) == expected_rows
    assert len(table["k"]) == len(expected_rows) and not _leftovers(uri)


def test_what_is_damaged_keeps_its_error(spark: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    tw.write_dataset(pa.table({"k": range(40), "x": [0] * 40}), uri, max_rows_per_file=10)
    dataset = tw.dataset(uri, engine=spark)
    next(_data_files(uri)).unlink()
    with pytest.raises(CorruptTable):
        builder(dataset, "k", SHUFFLED).when_matched_update_all().execute(pa.table({"k": [1], "x": [1]}))
    assert len(list(_data_files(uri))) == 3


def _data_files(uri: str) -> Iterator[Path]:
    return (Path(uri) / "data").iterdir()
