"""A process that merges: `python merger.py LIBRARY URI NUMBER MERGES START_FILE LOG_FILE`.

Waits for the start file, then merges a few rows at a time, most of them with keys that other processes merge too. Each
merge is one line of the log: the version it made, its rows and its kind, what the call reported, and how long it took.
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

import pyarrow as pa

KEYS = 24
"""Keys that the processes share; the table begins with every third of them."""

SCHEMA = pa.schema([pa.field("id", pa.int64(), False), ("by", pa.int64()), ("n", pa.int64())])
COUNTS = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")
PATIENCE = timedelta(seconds=250)


def rows(ids: list[int], mark: int, schema: pa.Schema = SCHEMA) -> pa.Table:
    """Rows that tell which merge wrote them last; `n` is as great as the mark is late in its own process."""
    return pa.table({"id": ids, "by": [mark] * len(ids), "n": [mark % 10_000] * len(ids)}).cast(schema)


def draw(chance: random.Random, *, ours: bool) -> dict[str, Any]:
    """A merge of few keys: upsert, find or create, update, update of what is older, delete, several clauses in order.

    pylance only upserts.
    """
    span = chance.choice([8, KEYS, KEYS])
    ids = sorted({chance.randrange(span) for _ in range(chance.choice([1, 1, 2, 4]))})
    kind = chance.choice(
        ["upsert"] * 5 + (["partial", "create", "update", "newer", "delete", "clauses"] if ours else ["partial"])
    )
    return {"ids": ids, "kind": kind, "mode": chance.choice(["auto", "rewrite_rows", "rewrite_columns"])}


def configured(dataset: Any, change: dict[str, Any], *, ours: bool) -> Any:
    """The builder of a merge."""
    merge = dataset.merge_insert("id").conflict_retries(10_000).retry_timeout(PATIENCE)
    kind = change["kind"]
    if kind == "delete":
        return merge.when_matched_delete()
    if kind == "clauses":
        merge = merge.when_matched_delete("source.n < target.n").when_matched_update(
            {"by": "source.by", "n": "target.n + 1"}, "target.n is not null"
        )
        return merge.when_not_matched_insert({"id": "source.id", "by": "source.by"}, "source.id % 2 = 0")
    if kind != "create":
        merge = merge.when_matched_update_all("source.n > target.n" if kind == "newer" else None)
    if kind not in ("update", "newer"):
        merge = merge.when_not_matched_insert_all()
    return merge.write_mode(change["mode"]) if ours else merge


def main(library_name: str, uri: str, number: int, merges: int, start: Path, log: Path) -> None:
    """Merge until all is done. Any error ends the process with a traceback."""
    library = importlib.import_module(library_name)
    chance = random.Random(number)
    dataset = library.dataset(uri)
    start.with_name(f"{start.name}.ready-{number}").touch()
    while not start.exists():
        time.sleep(0.005)
    with log.open("w") as lines:
        for turn in range(merges):
            if chance.random() < 0.6:  # else the handle is as old as its own last merge
                dataset = library.dataset(uri)
            ours = library_name == "tablewright"
            change, mark = draw(chance, ours=ours), number * 10_000 + turn
            source = rows(change["ids"], mark, dataset.schema)
            source = source.select(["id", "by"]) if change["kind"] == "partial" else source
            began = time.monotonic()
            result = configured(dataset, change, ours=ours).execute(source)
            told = {
                "version": result.get("version", dataset.version),
                "attempts": result.get("num_attempts"),
                "counts": [result[name] for name in COUNTS],
                "seconds": round(time.monotonic() - began, 4),
            }
            print(json.dumps({**change, "mark": mark, **told}), file=lines)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]), Path(sys.argv[6]))
