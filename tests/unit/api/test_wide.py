"""Very wide and very deep tables: what they take grows with their columns, not with the square of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tablewright as tw
from tablewright.errors import InvalidRequest
from tablewright.format.schema import Schema
from tablewright.operations.merge_insert.source.fit import FittedSchema
from tablewright.operations.update_values import Assignments

WIDTH = 600
ROWS = pa.table({"id": np.arange(20), **{f"c{i}": np.arange(20) + i for i in range(WIDTH)}})


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often lists of all names were made: once per column means the square of them in all."""
    counts: Counter[str] = Counter()

    def count(owner: type, name: str) -> None:
        made = getattr(owner, name).fget

        def counted(self: Any) -> Any:
            counts[f"{owner.__name__}.{name}"] += 1
            return made(self)

        monkeypatch.setattr(owner, name, property(counted))

    count(Schema, "names")
    count(FittedSchema, "columns")
    count(Assignments, "columns")
    return counts


def merge(ds: tw.LanceDataset) -> Any:
    return ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(ROWS.slice(0, 3))


VERBS: dict[str, Callable[[tw.LanceDataset], Any]] = {
    "scan": lambda ds: ds.to_table(),
    "filter": lambda ds: ds.to_table(columns=["c1"], filter="c2 > 5 and c300 < 317"),
    "insert": lambda ds: ds.insert(ROWS),
    "update": lambda ds: ds.update({"c1": "c1 + 1"}, where="c2 > 5"),
    "delete": lambda ds: ds.delete("id = 3"),
    "merge": merge,
    "add": lambda ds: ds.add_columns({"n": "c1 * 2"}),
    "rename": lambda ds: ds.alter_columns({"path": "c5", "name": "five"}),
    "drop": lambda ds: ds.drop_columns([f"c{i}" for i in range(10, WIDTH // 2)]),
    "join": lambda ds: ds.merge(pa.table({"id": [1, 2], "joined": [5, 6]}), "id"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_names_are_listed_a_few_times(tmp_path: Path, asked: Counter[str], verb: str) -> None:
    ds = tw.write_dataset(ROWS, tmp_path / "t.lance")
    asked.clear()
    VERBS[verb](ds)
    assert max(asked.values(), default=0) < WIDTH // 6, asked


def test_a_wide_table_through_every_verb(tmp_path: Path) -> None:
    ds = tw.write_dataset(ROWS, tmp_path / "t.lance")
    for verb in VERBS.values():
        verb(ds)
    found = tw.dataset(tmp_path / "t.lance").to_table(filter="id < 3").sort_by("id")
    assert found["id"].to_pylist() == [0, 0, 1, 1, 2, 2]
    assert found["c599"].to_pylist() == [id + 599 for id in found["id"].to_pylist()]
    assert "five" in found.column_names and "c20" not in found.column_names


def test_two_thousand_members(tmp_path: Path) -> None:
    members = pa.StructArray.from_arrays([pa.array([i, i]) for i in range(2000)], names=[f"m{i}" for i in range(2000)])
    rows = pa.table({"id": [1, 2], "s": members})
    ds = tw.write_dataset(rows, tmp_path / "t.lance")
    assert ds.to_table().equals(rows)
    assert ds.to_table(columns=["s.m1999"]).column(0).to_pylist() == [1999, 1999]


def test_sixty_levels_work_and_more_are_refused(tmp_path: Path) -> None:
    def nested(depth: int) -> pa.Table:
        values: pa.Array = pa.array([1, 2, 3])
        for level in range(depth):
            values = pa.StructArray.from_arrays([values], names=[f"level{level}"])
        return pa.table({"id": [1, 2, 3], "n": values})

    ds = tw.write_dataset(nested(60), tmp_path / "t.lance")
    assert ds.update({"id": "id + 1"}, where="id = 3")["num_rows_updated"] == 1
    assert ds.to_table(columns=["n"]).equals(nested(60).select(["n"]))
    for depth in (200, 1200):
        with pytest.raises(InvalidRequest, match="level"):
            tw.write_dataset(nested(depth), tmp_path / f"{depth}.lance")


@pytest.mark.parametrize("name", ["x" * 10_000, "ünïcode 列 🎉", "a\nb", "a'b", "select", "\u202e"])
def test_odd_names(tmp_path: Path, name: str) -> None:
    rows = pa.table({"id": [1, 2, 3], name: [4, 5, 6]})
    ds = tw.write_dataset(rows, tmp_path / "t.lance")
    assert ds.to_table().equals(rows)
    assert ds.count_rows(f"`{name}` > 4") == 2


def test_a_name_with_a_nul_is_refused(tmp_path: Path) -> None:
    """Arrow's C interface would cut it off, and the table's column would have another name."""
    with pytest.raises(InvalidRequest, match="NUL"):
        tw.write_dataset(pa.table({"a\0b": [1]}), tmp_path / "t.lance")
    ds = tw.write_dataset(pa.table({"a": [1]}), tmp_path / "u.lance")
    with pytest.raises(InvalidRequest, match="NUL"):
        ds.add_columns(pa.schema({"b\0": pa.int64()}))
