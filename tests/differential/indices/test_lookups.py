"""Lookups by BTREE give pylance's rows: lists, ranges and single values of every type, the first time and again.

The second of two equal calls, and calls with other literals of the same shape, go by what was kept of the first.
"""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import tablewright as tw

ROWS = 24_000
DAY = dt.datetime(2024, 1, 1)


def _table() -> pa.Table:
    numbers = range(ROWS)
    floats = [math.nan if n % 50 == 0 else -0.0 if n % 50 == 1 else 0.0 if n % 50 == 2 else n / 4 for n in numbers]
    return pa.table(
        {
            "id": pa.array([None if n % 97 == 0 else (n * 7919) % ROWS for n in numbers], pa.int64()),
            "small": pa.array([n % 256 - 128 for n in numbers], pa.int8()),
            "big": pa.array([2**63 + n for n in numbers], pa.uint64()),
            "name": pa.array([None if n % 89 == 0 else f"n{n % 8000:05}" for n in numbers]),
            "x": pa.array(floats, pa.float64()),
            "at": pa.array([DAY + dt.timedelta(minutes=n) for n in numbers], pa.timestamp("us")),
            "v": pa.array(numbers, pa.int32()),
        }
    )


@pytest.fixture(scope="module", params=["ours", "theirs"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table in three fragments with BTREEs that we or pylance built, of which some rows are deleted."""
    path = tmp_path_factory.mktemp("lookups") / "t"
    made: Any = lance.write_dataset(_table(), path, max_rows_per_file=ROWS // 3)
    if request.param == "ours":
        made = tw.dataset(path)
    for column in ("id", "small", "big", "name", "x", "at"):
        made.create_scalar_index(column, "BTREE")
    made.delete("v % 1000 = 7")
    return path


GROUPS: dict[str, list[str]] = {
    "one number": ["id = 5", "id = 23999", "id = -1", "id = 123456789012345678", "id = 7919"],
    "numbers": ["id IN (5, 6, 7)", "id IN (23999, 5, 5, -3)", "id IN (100)", "id IN (1, 97, 7919, 15838)"],
    "many numbers": [f"id IN ({', '.join(map(str, range(start, start + 40)))})" for start in (0, 900, ROWS - 5)],
    "range": ["id >= 5 AND id < 9", "id >= 0 AND id < 3", "id >= 9 AND id < 9", "id >= 30 AND id < 20"],
    "other range": ["id > 5 AND id <= 9", "id > 23990 AND id <= 99999", "id > -5 AND id <= 0"],
    "between": ["id BETWEEN 5 AND 9", "id BETWEEN 9 AND 5", "id BETWEEN -9 AND 0", "id BETWEEN 100 AND 9000"],
    "below": ["id < 4", "id < 0", "id < 40", "id < 20000"],
    "above": ["id > 23995", "id > 23999", "id > 100"],
    "narrow type": ["small = 5", "small = 127", "small = 128", "small = -128", "small = -129"],
    "narrow types": ["small IN (5, 6)", "small IN (127, 128)", "small IN (300, 301)"],
    "narrow range": ["small > 126", "small > 127", "small > 500", "small > -500", "small > -127"],
    "unsigned": ["big = 9223372036854775808", "big = 5", "big = 9223372036854775899"],
    "unsigned range": ["big >= 9223372036854775808 AND big < 9223372036854775812", "big >= 0 AND big < 5"],
    "text": ["name = 'n00005'", "name = ''", "name = 'n99999'", "name = 'N00005'"],
    "texts": ["name IN ('n00005', 'n00007')", "name IN ('', 'x')", "name IN ('n00089', 'n00088')"],
    "text range": [
        "name >= 'n00005' AND name < 'n00007'",
        "name >= 'n0799' AND name < 'o'",
        "name >= '' AND name < 'n'",
    ],
    "whole number for floats": ["x = 0", "x = 5", "x = 1000"],
    "whole numbers for floats": ["x IN (0, 5)", "x IN (7, 8)"],
    "float range": ["x >= 0 AND x < 3", "x >= 5 AND x < 6", "x >= 5990 AND x < 99999"],
    "float above": ["x > 5990", "x > 99999"],
    "time": ["at = '2024-01-01T00:05:00'", "at = '2024-01-01T00:06:00'", "at = '2020-01-01T00:00:00'"],
    "time range": [
        "at >= '2024-01-01T00:05:00' AND at < '2024-01-01T00:09:00'",
        "at >= '2024-01-17T15:50:00' AND at < '2025-01-01T00:00:00'",
    ],
}


def _rows(dataset: Any, filter: str, **options: Any) -> list[dict[str, Any]]:
    table = dataset.to_table(filter=filter, columns=["v", "id", "name"], **options)
    return sorted(table.to_pylist(), key=lambda row: int(row["v"]))


REFUSED = {"time", "time range"}
"""Groups of filters that pylance refuses, as it does numbers beyond the column's type: a scan is the judge there."""


@pytest.mark.parametrize("group", GROUPS)
def test_rows_and_counts_are_those_of_pylance(place: Path, group: str) -> None:
    ours, theirs = tw.dataset(place), lance.dataset(place)
    answered = 0
    for filter in GROUPS[group] * 2:
        expected = _rows(ours, filter, use_scalar_index=False)
        try:
            assert _rows(theirs, filter) == expected, filter
            answered += 1
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
        assert _rows(ours, filter) == expected, filter
        assert _rows(ours, filter, use_scalar_index=True) == expected, filter
        assert ours.count_rows(filter) == ours.count_rows(filter, use_scalar_index=True) == len(expected), filter
    assert bool(answered) is (group not in REFUSED)


@pytest.mark.parametrize("filter", ["id = '5'", "id IN ('5', '6')", "name = 5", "name < 5"])
def test_a_literal_of_another_type_is_refused_by_both(place: Path, filter: str) -> None:
    for dataset in (tw.dataset(place), lance.dataset(place)):
        for plain in ("id = 5", "name = 'n00005'"):
            assert dataset.count_rows(plain) > 0
        with pytest.raises(ValueError, match=r"(?i)invalid user input"):
            dataset.to_table(filter=filter)


def test_other_writers_are_seen(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "t"
    lance.write_dataset(_table(), path, max_rows_per_file=ROWS // 3)
    ours = tw.dataset(path)
    ours.create_scalar_index("id", "BTREE")
    filters = ("id = 5", "id IN (5, 6)", "id BETWEEN 4 AND 6")
    assert [len(_rows(ours, filter, use_scalar_index=True)) for filter in filters] == [1, 2, 3]
    lance.dataset(path).delete("id = 5")
    assert [len(_rows(ours, filter, use_scalar_index=True)) for filter in filters] == [1, 2, 3], "a version stays"
    ours.checkout_latest()
    assert [len(_rows(ours, filter, use_scalar_index=True)) for filter in filters] == [0, 1, 2]
    lance.dataset(path).update({"id": "5"}, where="id = 6")
    ours.checkout_latest()
    assert [len(_rows(ours, filter, use_scalar_index=True)) for filter in filters] == [1, 1, 2]
    lance.dataset(path).optimize.optimize_indices()
    ours.checkout_latest()
    assert [len(_rows(ours, filter, use_scalar_index=True)) for filter in filters] == [1, 1, 2]


@pytest.mark.parametrize("filter", ["id = 5", "id IN (5, 6)", "id BETWEEN 4 AND 6", "name IN ('n00005', 'n00006')"])
def test_deletes_and_updates_find_the_same_rows(place: Path, tmp_path: Path, filter: str) -> None:
    made = []
    for name, library in (("ours", tw), ("theirs", lance)):
        lance.write_dataset(_table(), tmp_path / name, max_rows_per_file=ROWS // 3)
        lance.dataset(tmp_path / name).create_scalar_index("id", "BTREE")
        lance.dataset(tmp_path / name).create_scalar_index("name", "BTREE")
        dataset: Any = library.dataset(tmp_path / name)
        dataset.update({"v": "-1", "name": "'x'"}, where=filter)
        dataset.delete("id IN (77, 78)")
        dataset.delete(filter)
        rows = lance.dataset(tmp_path / name).to_table().to_pylist()
        made.append(sorted(rows, key=lambda row: (row["at"], row["v"])))
    assert [{**row, "x": str(row["x"])} for row in made[0]] == [{**row, "x": str(row["x"])} for row in made[1]]
