"""benchmarks/_grid.py: the grid of engines runs in parts, and a part that was measured is left out the next time."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks._grid import Cell, Given, Run, given_only, keep, kept_cells, report


def _cell(verb: str, rows: int, default: float = 1.0, site: str = "local") -> Cell:
    return Cell(site, verb, rows, local=Run(1.0), spark=None, default=Run(default), why="")


def test_a_part_by_its_names() -> None:
    assert given_only(None) == Given()
    assert given_only("merge, local") == replace(Given(), sites=("local",), verbs=("merge",))
    assert given_only("10,none,1000", runs=1) == replace(Given(), sites=("none",), sizes=(10, 1000), runs=1)
    with pytest.raises(SystemExit, match="No site, verb or number of rows: upsert"):
        given_only("local,upsert")


def test_what_the_file_has_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = given_only("local,merge,scan,1000,10", results=tmp_path / "grid.jsonl")
    every = [("scan", 10), ("merge", 10), ("scan", 1000), ("merge", 1000)]
    assert sorted(given.cells("local")) == sorted(every)
    assert [rows for _, rows in given.cells("local")] == [10, 10, 1000, 1000], "small tables come first"
    keep(_cell("merge", 10), given.results)
    assert sorted(given.cells("local")) == sorted(set(every) - {("merge", 10)})
    assert sorted(given.cells("cluster")) == sorted(every)
    assert not report(given)
    for verb, rows in given.cells("local"):
        keep(_cell(verb, rows), given.results)
    assert not list(given.cells("local"))
    assert report(given)
    keep(_cell("scan", 10, default=1.5), given.results)
    assert not report(given), "the last one counts"
    assert "3 of 4 cells hold, 1 over, 0 missing" in capsys.readouterr().out
    assert len(kept_cells(tmp_path / "grid.jsonl")) == 4


def test_no_cell_begins_after_its_time() -> None:
    given = given_only("local,scan", until=time.time() + 3600)
    assert len(list(given.cells("local"))) == 5
    assert not list(replace(given, until=time.time() - 1).cells("local"))


def test_a_process_of_its_own_gets_the_same() -> None:
    given = given_only("local,cluster,merge,10", results=Path("grid.jsonl"), until=5.5)
    assert given.arguments("cluster") == [
        *("--site", "cluster", "--runs", "3", "--verbs", "merge", "--rows", "10"),
        *("--results", "grid.jsonl", "--until", "5.5"),
    ]
