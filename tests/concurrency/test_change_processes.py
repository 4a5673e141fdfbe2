"""Eight real processes delete and update random rows of one table for a while.

Every version is in exactly one log, and the changes replayed in the order of their versions, on plain Python, give the
rows of the table, the number of rows that each call reported, and the version that changed each row last: nothing was
lost, doubled or brought back. `make soak` lets them go on for the minute that was promised, CI for a tenth of that.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.concurrency.changer import KEYS, apply
from tests.concurrency.leftovers import unreferenced
from tests.concurrency.racers import race
from tests.depth import deep

import tablewright as tw

CHANGER = str(Path(__file__).with_name("changer.py"))
SECONDS = deep(3, 60)


def _table(uri: str, *, stable: bool) -> None:
    """`wide` is there for rows to be worth more than columns."""
    rows = {
        "id": pa.array(range(KEYS), pa.int64()),
        "v": pa.array([0] * KEYS, pa.int64()),
        "w": pa.array([1] * KEYS, pa.int64()),
        "wide": [f"{i:0100}" for i in range(KEYS)],
    }
    tw.write_dataset(pa.table(rows), uri, max_rows_per_file=KEYS // 8, enable_stable_row_ids=stable)


def _race(uri: str, libraries: list[str], folder: Path, seconds: float) -> list[dict[str, Any]]:
    """Let one changer for each name go; their logs by version."""
    lines = race(CHANGER, uri, libraries, seconds, folder, seconds_max=seconds + 240)
    return sorted(lines, key=lambda line: line["version"])


@dataclass
class Replay:
    """The table as the logs tell it: `v` and `w` by key, and the version that changed each row last."""

    rows: dict[int, tuple[int, int]] = field(default_factory=lambda: dict.fromkeys(range(KEYS), (0, 1)))
    updated: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(KEYS), 1))
    counts: dict[int, int] = field(default_factory=lambda: {1: KEYS})

    def step(self, line: dict[str, Any]) -> None:
        """One change, in full: all its rows that are there, and what the call had to report."""
        there = [id for id in line["ids"] if id in self.rows]
        assert line["count"] == len(there), f"it reported {line['count']} rows, {there} were there: {line}"
        for id in there:
            if line["change"] == "delete":
                del self.rows[id], self.updated[id]
            else:
                self.rows[id] = apply(line["kind"], line["number"], *self.rows[id])
                self.updated[id] = line["version"]
        self.counts[line["version"]] = len(self.rows)


def _judge(uri: str, lines: list[dict[str, Any]], *, stable: bool) -> None:
    here, there = tw.dataset(uri), lance.dataset(uri)
    here.validate()
    there.validate()
    versions = [entry["version"] for entry in here.versions()]
    assert [line["version"] for line in lines] == versions[1:], "a version has no log, or two"
    assert here.version == there.version == len(versions)
    replay = Replay()
    for line in lines:
        replay.step(line)
    for dataset in (here, there):
        columns = ["id", "v", "w", "wide", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
        found = dataset.to_table(columns=columns).to_pydict()
        assert len(set(found["id"])) == len(found["id"]), "a row is there twice"
        rows = dict(zip(found["id"], zip(found["v"], found["w"], strict=True), strict=True))
        wrong = {id: (rows.get(id), replay.rows.get(id)) for id in rows.keys() | replay.rows.keys()}
        wrong = {id: pair for id, pair in wrong.items() if pair[0] != pair[1]}
        assert not wrong, f"rows that are not what the versions made of them (found, replayed): {wrong}"
        assert found["wide"] == [f"{id:0100}" for id in found["id"]]
        if stable:
            assert found["_rowid"] == found["id"]
            assert set(found["_row_created_at_version"]) <= {1}
            assert dict(zip(found["id"], found["_row_last_updated_at_version"], strict=True)) == replay.updated
    for version in versions[:: max(1, len(versions) // 40)]:
        assert tw.dataset(uri, version=version).count_rows() == replay.counts[version], f"version {version}"


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("stable", "others", "share"), [(True, 0, 1.0), (False, 2, 0.5)], ids=["stable, all ours", "addresses, two pylance"]
)
def test_eight_processes_change_one_table(tmp_path: Path, stable: bool, others: int, share: float) -> None:
    uri = str(tmp_path / "t.lance")
    _table(uri, stable=stable)
    libraries = ["tablewright"] * (8 - others) + ["lance"] * others
    lines = _race(uri, libraries, tmp_path, share * SECONDS)
    _judge(uri, lines, stable=stable)
    assert len({line["log"] for line in lines}) == 8, "somebody never got through"
    if not others:
        root = Path(uri)
        paths = [str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()]
        assert not unreferenced(tw.dataset(uri), paths), "failed attempts left files behind"
