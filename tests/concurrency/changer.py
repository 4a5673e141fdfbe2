"""A process that changes rows: `python changer.py LIBRARY URI NUMBER SECONDS START_FILE LOG_FILE`.

Waits for the start file, then deletes and updates random keys until the time is over. Each change that made a version
is one line of the log: the version, the change, and the number of rows that the call reported.

Updates depend on what a row was (`v` on itself, `w` on `v`), so the order of any two that meet in a row shows.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

KEYS = 800
"""Rows of the table in the beginning, with ids from 0."""

MODULUS = 1_000_003
PATIENCE = {"conflict_retries": 10_000, "retry_timeout": timedelta(seconds=200)}


def expressions(kind: str, number: int) -> dict[str, str]:
    """What an update of a kind sets, as SQL."""
    return {
        "v": {"v": f"(v * 31 + {number}) % {MODULUS}"},
        "w": {"w": f"(w * 7 + v + {number}) % {MODULUS}"},
        "both": {"v": f"(v * 31 + {number}) % {MODULUS}", "w": f"(w * 7 + v + {number}) % {MODULUS}"},
    }[kind]


def apply(kind: str, number: int, v: int, w: int) -> tuple[int, int]:
    """What an update of a kind makes of a row; both right sides see the old values."""
    new_v, new_w = (v * 31 + number) % MODULUS, (w * 7 + v + number) % MODULUS
    return {"v": (new_v, w), "w": (v, new_w), "both": (new_v, new_w)}[kind]


def draw(chance: random.Random, library_name: str) -> dict[str, Any]:
    """A change: few keys, most of them out of a corner of the table where all writers meet."""
    span = chance.choice([40, KEYS, KEYS])
    ids = sorted({chance.randrange(span) for _ in range(chance.randint(1, 6))})
    if chance.random() < 0.2:
        return {"change": "delete", "ids": ids[:2]}
    ours = library_name == "tablewright"
    # pylance sets one column after the other, in an order of its own
    kind = chance.choice(["v", "w", "both"] if ours else ["v", "w"])
    mode = chance.choice(["auto", "rewrite_columns", "rewrite_columns", "rewrite_rows"]) if ours else "rewrite_rows"
    return {"change": "update", "ids": ids, "kind": kind, "number": chance.randrange(1000), "mode": mode}


def run(library_name: str, dataset: Any, change: dict[str, Any]) -> int:
    """Make the call; the number of rows that it reports."""
    where = f"id in ({', '.join(map(str, change['ids']))})"
    if change["change"] == "delete":
        return int(dataset.delete(where, **PATIENCE)["num_deleted_rows"])
    mode = {"write_mode": change["mode"]} if library_name == "tablewright" else {}
    updates = expressions(change["kind"], change["number"])
    return int(dataset.update(updates, where=where, **PATIENCE, **mode)["num_rows_updated"])


def main(library_name: str, uri: str, number: int, seconds: float, start: Path, log: Path) -> None:
    """Change until the time is over. Any error ends the process with a traceback."""
    library = importlib.import_module(library_name)
    chance = random.Random(number)
    dataset = library.dataset(uri)
    Path(f"{start}.ready-{number}").touch()
    while not start.exists():
        time.sleep(0.005)
    deadline = time.monotonic() + seconds
    with log.open("w") as lines:
        while time.monotonic() < deadline:
            if chance.random() < 0.3:  # else the handle is as old as its own last change
                dataset = library.dataset(uri)
            change, before = draw(chance, library_name), dataset.version
            count = run(library_name, dataset, change)
            if dataset.version != before:
                print(json.dumps({"version": dataset.version, "count": count, **change}), file=lines, flush=True)
            else:
                assert count == 0, f"{count} rows changed, and no version made"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), Path(sys.argv[5]), Path(sys.argv[6]))
