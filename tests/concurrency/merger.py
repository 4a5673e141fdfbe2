"""A process that upserts: `python merger.py URI NUMBER UPSERTS START_FILE LOG_FILE`.

Waits for the start file, then merges a few rows at a time, most of them with keys that other processes merge too. Each
merge is one line of the log: the version it made, its keys, its number, and what the call reported.
"""

from __future__ import annotations

import json
import random
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

KEYS = 300
"""Keys that the processes share; the table begins with every third of them."""

PATIENCE_SECONDS = 250
COUNTS = ("num_inserted_rows", "num_updated_rows", "num_deleted_rows")


def rows(ids: list[int], mark: int) -> pa.Table:
    """Rows that tell which merge wrote them last."""
    return pa.table({"id": pa.array(ids, pa.int64()), "by": pa.array([mark] * len(ids), pa.int64())})


def main(uri: str, number: int, upserts: int, start: Path, log: Path) -> None:
    """Merge until all is done."""
    import tablewright as tw

    chance = random.Random(number)
    dataset = tw.dataset(uri)
    start.with_name(f"{start.name}.ready-{number}").touch()
    while not start.exists():
        time.sleep(0.005)
    lines: list[dict[str, Any]] = []
    for turn in range(upserts):
        ids = sorted({chance.randrange(KEYS) for _ in range(chance.randint(1, 5))})
        mark = number * 10_000 + turn
        kind = chance.choice(["upsert", "upsert", "create", "update"])
        merge = dataset.merge_insert("id").conflict_retries(10_000).retry_timeout(timedelta(seconds=PATIENCE_SECONDS))
        if kind != "create":
            merge = merge.when_matched_update_all()
        if kind != "update":
            merge = merge.when_not_matched_insert_all()
        mode = chance.choice(["auto", "rewrite_rows", "rewrite_columns"])
        result = merge.write_mode(mode).execute(rows(ids, mark))
        counts = {name: result[name] for name in COUNTS}
        lines.append({"version": result["version"], "ids": ids, "mark": mark, "kind": kind, **counts})
    log.write_text("\n".join(map(json.dumps, lines)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]), Path(sys.argv[5]))
