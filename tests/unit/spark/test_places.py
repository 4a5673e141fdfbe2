"""From options to versions."""

from __future__ import annotations

from pathlib import Path

import pytest

import tablewright as tw
from tablewright.errors import TableNotFound, VersionNotFound
from tablewright.spark.options import read_options
from tablewright.spark.places import Pin, open_pinned, open_version, pin_of


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Three versions on main, the second one tagged, and two more on a branch that begins at the first."""
    ds = tw.write_dataset({"id": [1]}, tmp_path / "t.lance")
    branch = ds.create_branch("side")
    branch.insert([{"id": 10}])
    ds.insert([{"id": 2}])
    ds.tags.create("two", 2)
    ds.insert([{"id": 3}])
    return str(tmp_path / "t.lance")


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({}, [1, 2, 3]),
        ({"version": "1"}, [1]),
        ({"tag": "two"}, [1, 2]),
        ({"branch": "side"}, [1, 10]),
        ({"branch": "side", "version": "1"}, [1]),
        ({"branch": "main"}, [1, 2, 3]),
        ({"asof": "2999-01-01"}, [1, 2, 3]),
        ({"branch": "side", "asof": "2999-01-01"}, [1, 10]),
    ],
)
def test_the_version_that_options_name(table: str, options: dict[str, str], rows: list[int]) -> None:
    given = read_options({"path": table, **options})
    pin = pin_of(given)
    tw.dataset(table).insert([{"id": 4}])  # a pin stays where it is
    again = open_pinned(given.place, pin)
    assert pin == Pin(again.branch, again.version)
    assert tw.dataset(again.location.uri, again.version).to_table()["id"].to_pylist() == rows


@pytest.mark.parametrize("options", [{"version": "9"}, {"tag": "none"}, {"branch": "none"}])
def test_what_is_not_there(table: str, options: dict[str, str]) -> None:
    with pytest.raises(VersionNotFound):
        open_version(read_options({"path": table, **options}))


def test_no_table(tmp_path: Path) -> None:
    with pytest.raises(TableNotFound):
        open_version(read_options({"path": str(tmp_path / "none")}))
