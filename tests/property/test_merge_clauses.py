"""Merges with clauses as SQL has them, beside a model: any clauses, any rows, any way to find and write them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.depth import deep
from tests.property.clause_model import TABLE, ClauseMerge, Outcome, merges, source_rows, table_rows

import tablewright as tw
from tablewright.operations.merge_insert.limits import MatchLimits, MergeLimits

LIMITS = {
    "broadcast": MergeLimits(),
    "passes": MergeLimits(match=MatchLimits(keys_per_pass=3)),
    "index": MergeLimits(match=MatchLimits(lookup_ns=0, lookup_key_ns=0.001, take_row_ns=0)),
}
COUNTS = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")


def sorted_rows(rows: Sequence[Any]) -> list[str]:
    return sorted(repr({name: row[name] for name in TABLE.names}) for row in rows)


def check_outcome(ds: tw.LanceDataset, expected: Outcome, ids: list[int] | None) -> None:
    """The rows, and which row is which, where ids are stable."""
    table = ds.to_table(with_row_id=True).to_pylist()
    assert sorted_rows(table) == sorted_rows([*expected.kept.values(), *expected.inserted])
    if ids is not None:
        by_id = {row["_rowid"]: row for row in table}
        for place, row in expected.kept.items():
            assert {name: by_id[ids[place]][name] for name in TABLE.names} == dict(row)
    ds.validate()


@settings(max_examples=deep(80, 2000))
@given(
    merge=merges(),
    rows=table_rows(),
    source=source_rows(),
    stable=st.booleans(),
    mode=st.sampled_from(["auto", "rewrite_rows", "rewrite_columns"]),
    way=st.sampled_from(sorted(LIMITS)),
    gone=st.booleans(),
)
def test_clauses_mean_what_the_model_says(
    merge: ClauseMerge, rows: list[Any], source: list[Any], stable: bool, mode: str, way: str, gone: bool
) -> None:
    ds = tw.write_dataset(
        pa.Table.from_pylist(rows, TABLE),
        f"memory://clauses-{uuid.uuid4()}",
        max_rows_per_file=5,
        enable_stable_row_ids=stable,
    )
    if gone:
        ds.delete("v = 2")
        rows = [row for row in rows if row["v"] != 2]
    if way == "index":
        ds.create_scalar_index("id", "BTREE")
    ids = ds.to_table(with_row_id=True)["_rowid"].to_pylist() if stable else None
    expected = merge.after(rows, source)
    builder = merge.configure(ds.merge_insert("id")._with(limits=LIMITS[way]).write_mode(mode))
    result = builder.execute(merge.source(source))
    assert {name: result[name] for name in COUNTS} == expected.counts
    check_outcome(ds, expected, ids)


@pytest.mark.parametrize("level", ["snapshot", "serializable"])
@settings(max_examples=deep(25, 500))
@given(merge=merges(), rows=table_rows(), source=source_rows(), stable=st.booleans(), other=source_rows())
def test_another_writer_comes_first(
    level: str, merge: ClauseMerge, rows: list[Any], source: list[Any], stable: bool, other: list[Any]
) -> None:
    """Both merges happen, the other one first: what the model says of one after the other."""
    first = ClauseMerge(*(() for _ in range(3)))
    uri = f"memory://clauses-{uuid.uuid4()}"
    rows = list({row["id"]: row for row in rows if row["id"] is not None}.values())
    if not rows:
        return
    ds = tw.write_dataset(pa.Table.from_pylist(rows, TABLE), uri, max_rows_per_file=5, enable_stable_row_ids=stable)
    stale = tw.dataset(uri)
    upsert = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    theirs = [row for row in other if row["id"] is not None]
    upsert.execute(first.source(theirs).select(TABLE.names))
    by_id = {row["id"]: row for row in rows} | {row["id"]: row for row in theirs}
    expected = merge.after(list(by_id.values()), source)
    if merge.by_source and not (merge.matched or merge.inserts):
        return  # rows that came meanwhile are not looked at: snapshot isolation
    configured = merge.configure(stale.merge_insert("id").isolation(level))
    result = configured.execute(merge.source(source))
    found = stale.to_table().to_pylist()
    if not merge.by_source or level == "serializable":
        assert sorted_rows(found) == sorted_rows([*expected.kept.values(), *expected.inserted])
        assert {name: result[name] for name in COUNTS} == expected.counts
    stale.validate()
