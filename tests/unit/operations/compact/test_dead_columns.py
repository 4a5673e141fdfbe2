"""The share of dead columns, against tables whose files are known."""

from __future__ import annotations

import numpy as np

import tablewright as tw
from tablewright.api.pinned import table_of
from tablewright.operations.compact.dead_columns import dead_column_share

ROWS = 20_000


def share(dataset: tw.LanceDataset) -> float:
    snapshot = table_of(dataset).snapshot
    return dead_column_share(snapshot.schema)(snapshot.fragments[0])


def table(name: str) -> tw.LanceDataset:
    random = np.random.default_rng(1)
    columns = {"a": random.random(ROWS), "b": random.random(ROWS), "text": [f"{n:020}" for n in range(ROWS)]}
    return tw.write_dataset(columns, f"memory://{name}")


def test_nothing_is_dead_in_a_new_table() -> None:
    assert share(table("dead-new")) == 0


def test_a_dropped_column_is_dead() -> None:
    dataset = table("dead-dropped")
    dataset.drop_columns(["text", "b"])
    assert 0.4 < share(dataset) < 0.9


def test_columns_rewritten_in_place_are_as_wide_as_what_replaced_them() -> None:
    dataset = table("dead-in-place")
    dataset.update({"text": "text || 'x'"}, write_mode="rewrite_columns")
    assert 0.2 < share(dataset) < 0.6


def test_a_narrow_column_that_was_dropped_beside_wide_ones_is_little() -> None:
    vectors = np.random.default_rng(2).random((ROWS, 32)).tolist()
    dataset = tw.write_dataset({"a": range(ROWS), "wide": vectors}, "memory://dead-narrow")
    dataset.drop_columns(["a"])
    assert share(dataset) < 0.3
