"""Eight real processes merge overlapping keys into one table: the result is that of the merges in version order.

Every version is in exactly one log. Replayed in the order of their versions, on plain Python, the merges give the rows
of the table, the numbers that each call reported, and the versions that made and changed each row: no key was doubled,
and no merge was made of what was not there. In CI each process merges 30 times, in `make soak` 100 times.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import pytest
from tests.concurrency.leftovers import unreferenced
from tests.concurrency.merger import KEYS, SCHEMA, rows
from tests.concurrency.racers import race
from tests.depth import deep

import tablewright as tw

MERGER = str(Path(__file__).with_name("merger.py"))
MERGES = deep(12, 100)
PRIMARY = {"lance-schema:unenforced-primary-key": "true"}


def _race(uri: str, libraries: Sequence[str], merges: int, folder: Path) -> list[dict[str, Any]]:
    """Let one merger for each name go; their logs by version."""
    lines = race(MERGER, uri, libraries, merges, folder, seconds_max=280)
    return sorted(lines, key=lambda line: line["version"])


@dataclass
class Replay:
    """The table as the logs tell it: by key the mark, `n`, and the versions that made and changed the row."""

    rows: dict[int, tuple[int, int | None, int, int]] = field(
        default_factory=lambda: dict.fromkeys(range(0, KEYS, 3), (0, 0, 1, 1))
    )

    def step(self, line: dict[str, Any]) -> None:
        """One merge, in full, and what it had to report."""
        kind, version, mark = line["kind"], line["version"], line["mark"]
        number = mark % 10_000
        known = [id for id in line["ids"] if id in self.rows]
        new = [id for id in line["ids"] if id not in self.rows] if kind in ("upsert", "partial", "create") else []
        changed = known if kind in ("upsert", "partial", "update") else []
        if kind == "newer":
            changed = [id for id in known if (n := self.rows[id][1]) is not None and number > n]
        gone = known if kind == "delete" else []
        if kind == "clauses":
            numbered = [id for id in known if self.rows[id][1] is not None]
            gone = [id for id in numbered if number < (self.rows[id][1] or 0)]
            changed = [id for id in numbered if id not in gone]
            new = [id for id in line["ids"] if id not in self.rows and id % 2 == 0]
        assert line["counts"] == [len(new), len(changed), len(gone)], line
        for id in changed:
            _, n, created, _ = self.rows[id]
            value = {"partial": n, "clauses": (n or 0) + 1}.get(kind, number)
            self.rows[id] = (mark, value, created, version)
        for id in new:
            self.rows[id] = (mark, None if kind in ("partial", "clauses") else number, version, version)
        for id in gone:
            del self.rows[id]


def _judge(uri: str, lines: list[dict[str, Any]], count: int, *, stable: bool) -> None:
    replay = Replay()
    assert [line["version"] for line in lines] == list(range(2, 2 + count)), "a version has no log, or two"
    for line in lines:
        replay.step(line)
    for library in (tw, lance):
        dataset = library.dataset(uri)
        dataset.validate()
        assert dataset.version == 1 + count
        system = ["_row_created_at_version", "_row_last_updated_at_version", "_rowid"]
        found = dataset.to_table(columns=["id", "by", "n", *system]).to_pydict()
        assert len(set(found["id"])) == len(found["id"]), "a key is there twice"
        assert len(set(found["_rowid"])) == len(found["_rowid"])
        facts = ["by", "n", *system[:2]] if stable else ["by", "n"]
        by_key = dict(zip(found["id"], zip(*(found[name] for name in facts), strict=True), strict=True))
        assert by_key == {id: row[: len(facts)] for id, row in replay.rows.items()}


def _told(lines: list[dict[str, Any]]) -> str:
    """How often our merges had to run, and how long the slowest took."""
    attempts = sorted(line["attempts"] for line in lines if line["attempts"] is not None)
    slowest = max(line["seconds"] for line in lines)
    often = (
        f"mean {statistics.mean(attempts):.2f}, 99 of 100 {attempts[len(attempts) * 99 // 100]}, most {attempts[-1]}"
    )
    return f"{len(attempts)} merges; attempts: {often}; slowest merge {slowest:.2f} s"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_eight_processes_merge_into_one_table(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    tw.write_dataset(rows(list(range(0, KEYS, 3)), 0), uri, max_rows_per_file=4, enable_stable_row_ids=True)
    lines = _race(uri, ["tablewright"] * 8, MERGES, tmp_path)
    print(_told(lines))
    _judge(uri, lines, 8 * MERGES, stable=True)
    paths = [str(path.relative_to(uri)) for path in Path(uri).rglob("*") if path.is_file()]
    assert not unreferenced(tw.dataset(uri), paths), "failed attempts left files behind"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_pylance_among_them(tmp_path: Path) -> None:
    """On a table that declares its primary key: only there pylance looks at keys, and only when it upserts."""
    uri = str(tmp_path / "t.lance")
    schema = SCHEMA.set(0, SCHEMA.field("id").with_metadata(PRIMARY))
    tw.write_dataset(rows(list(range(0, KEYS, 3)), 0, schema), uri, max_rows_per_file=4)
    merges = deep(8, 20)
    lines = _race(uri, ["tablewright"] * 3 + ["lance"] * 2, merges, tmp_path)
    print(_told(lines))
    _judge(uri, lines, 5 * merges, stable=False)
