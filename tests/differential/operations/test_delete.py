"""Delete: what becomes of the fragments, refereed by pylance on the same table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablewright as tw
from tablewright.format.fragment import DeletionFileType


def numbers(rows: int, start: int = 0) -> pa.Table:
    ids = range(start, start + rows)
    return pa.table({"id": pa.array(ids, pa.int64()), "s": [None if i % 5 == 2 else f"row {i}" for i in ids]})


@pytest.fixture(params=["addresses", "stable"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> tw.LanceDataset:
    return tw.write_dataset(
        numbers(40), tmp_path / "t", max_rows_per_file=10, enable_stable_row_ids=request.param == "stable"
    )


def ids(dataset: Any) -> list[int]:
    return list(dataset.to_table(columns=["id"]).column("id").to_pylist())


def refereed(dataset: tw.LanceDataset) -> list[int]:
    """The ids that pylance reads, after it has looked at everything."""
    theirs = lance.dataset(dataset.uri)
    theirs.validate()
    dataset.validate()
    assert theirs.version == dataset.version
    assert theirs.to_table(with_row_id=True).equals(dataset.to_table(with_row_id=True))
    return ids(theirs)


PREDICATES: list[tuple[Any, Callable[[int], bool]]] = [
    ("id = 7", lambda i: i == 7),
    ("id % 3 = 0", lambda i: i % 3 == 0),
    ("id >= 10 and id < 20", lambda i: 10 <= i < 20),
    ("s is null", lambda i: i % 5 == 2),
    ("not (s = 'row 3')", lambda i: i % 5 != 2 and i != 3),
    ("id = null", lambda i: False),
    ("false", lambda i: False),
    ("1 = 1", lambda i: True),
    ("true", lambda i: True),
    (" TRUE ; ", lambda i: True),
    ("_rowaddr = 4294967297", lambda i: i == 11),
    ("_rowoffset > 37", lambda i: i > 37),
    ("starts_with(s, 'row 1')", lambda i: i % 5 != 2 and str(i).startswith("1")),
    (pc.field("id") > 30, lambda i: i > 30),
    (pc.scalar(True), lambda i: True),
    (pc.field("s").isin(["row 1", "row 4"]), lambda i: i in (1, 4)),
]


@pytest.mark.parametrize(("predicate", "matches"), PREDICATES, ids=[str(predicate) for predicate, _ in PREDICATES])
def test_rows_that_match_go(table: tw.LanceDataset, predicate: Any, matches: Callable[[int], bool]) -> None:
    gone = [i for i in range(40) if matches(i)]
    assert table.delete(predicate) == {"num_deleted_rows": len(gone)}
    assert table.version == 2
    assert refereed(table) == [i for i in range(40) if not matches(i)]


def test_deletions_are_united(table: tw.LanceDataset) -> None:
    counts = [table.delete(f"id % 10 in ({n}, {n + 1})")["num_deleted_rows"] for n in (0, 1, 4, 8)]
    assert counts == [8, 4, 8, 8]
    assert refereed(table) == [i for i in range(40) if i % 10 in (3, 6, 7)]
    assert all(fragment.deletion_file() for fragment in table.get_fragments())


def test_a_fragment_without_rows_leaves(table: tw.LanceDataset) -> None:
    table.delete("id = 15")
    table.delete("id >= 10 and id < 21")
    assert [fragment.fragment_id for fragment in table.get_fragments()] == [0, 2, 3]
    assert refereed(table) == [*range(10), *range(21, 40)]
    operation: Any = table.read_transaction(3).operation  # type: ignore[union-attr]
    assert operation.deleted_fragment_ids == [1]
    assert [fragment.id for fragment in operation.updated_fragments] == [2]


@pytest.mark.parametrize(
    ("counts", "kinds"),
    [((4999, 1, 1), "array array bitmap"), ((5000, 1), "bitmap bitmap"), ((3, 5000), "array bitmap")],
)
def test_type_of_the_deletion_file(tmp_path: Path, counts: tuple[int, ...], kinds: str) -> None:
    dataset = tw.write_dataset(numbers(20_000), tmp_path / "t")
    start = 0
    for count, kind in zip(counts, kinds.split(), strict=True):
        dataset.delete(f"id >= {start} and id < {start + count}")
        start += count
        deletion = dataset._snapshot.fragments[0].deletion
        assert deletion is not None
        assert deletion.file_type is (DeletionFileType.ARROW_ARRAY if kind == "array" else DeletionFileType.BITMAP)
        assert deletion.num_deleted_rows == start
    assert refereed(dataset) == list(range(start, 20_000))


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_file_versions(tmp_path: Path, version: str) -> None:
    dataset = tw.write_dataset(numbers(20), tmp_path / "t", data_storage_version=version, max_rows_per_file=7)
    assert dataset.delete("id % 2 = 0") == {"num_deleted_rows": 10}
    assert refereed(dataset) == list(range(1, 20, 2))


def test_an_empty_table(tmp_path: Path) -> None:
    dataset = tw.write_dataset(numbers(0), tmp_path / "t")
    for predicate in ("id = 1", "true"):
        assert dataset.delete(predicate) == {"num_deleted_rows": 0}
    dataset.truncate_table()
    assert dataset.version == 4
    assert refereed(dataset) == []


def test_truncate(table: tw.LanceDataset) -> None:
    table.delete("id = 3")
    table.truncate_table()
    assert refereed(table) == []
    operation: Any = table.read_transaction(3).operation  # type: ignore[union-attr]
    assert (operation.predicate, operation.deleted_fragment_ids) == ("true", [0, 1, 2, 3])
    table.insert(numbers(2, 90))
    assert refereed(table) == [90, 91]


def test_pylances_tables(tmp_path: Path) -> None:
    theirs = lance.write_dataset(numbers(100), tmp_path / "t", max_rows_per_file=30)
    theirs.delete("id % 4 = 1")
    theirs.update({"s": "'new'"}, where="id % 10 = 0")
    theirs.add_columns({"twice": "id * 2"})
    dataset = tw.dataset(tmp_path / "t")
    assert dataset.delete("twice % 8 = 0") == {"num_deleted_rows": 25}
    assert sorted(refereed(dataset)) == [i for i in range(100) if i % 4 in (2, 3)]


def test_indices_stay(tmp_path: Path) -> None:
    theirs = lance.write_dataset(numbers(100), tmp_path / "t", max_rows_per_file=50)
    theirs.create_scalar_index("id", "BTREE")
    dataset = tw.dataset(tmp_path / "t")
    dataset.delete("id % 3 = 0 or id >= 50")
    assert dataset.list_indices()[0]["fragment_ids"] == {0, 1}
    found = lance.dataset(tmp_path / "t").to_table(filter="id > 40")
    assert found.column("id").to_pylist() == [i for i in range(41, 50) if i % 3]
