"""A process of the soak: `python soaker.py LIBRARY URI NUMBER SECONDS START_FILE LOG_FILE`.

By its number it is the compactor (0), the cleaner (1), the reader (2), or a writer. Writers change rows of the table's
beginning together: deletes, updates in place and by rows. Each writer appends and upserts rows of its own. One adds and
drops columns. Every change that made a version is a line of the log, and so is every compaction, and every conflict
that made an attempt of ours run again, with the kind of transaction that it met.
"""

from __future__ import annotations

import importlib
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

ROWS = 4_000
"""Rows in the beginning, with ids from 0."""

OWN = 1_000_000
"""Rows of a writer have ids from its number times this."""

KEPT_SECONDS = 60
MODULUS = 1_000_003
COMPACTOR, CLEANER, READER, FIRST_WRITER = range(4)

_PATIENCE = {"conflict_retries": 10_000, "retry_timeout": timedelta(seconds=300)}
_TARGET_ROWS = 2_000

Change = dict[str, Any]


# ------------------------------------------------------------------------------------------------------------- writers
def draw(chance: random.Random, number: int, ours: bool, step: int) -> Change:
    """A change of a writer."""
    ids = sorted({chance.randrange(ROWS) for _ in range(chance.randint(1, 40))})
    what = chance.choices(["delete", "update", "append", "upsert", "columns"], [2, 5, 2, 4, 1 if ours else 0])[0]
    if what == "delete":
        return {"change": "delete", "ids": ids[:3]}
    if what == "update":
        mode = chance.choice(["rewrite_columns", "rewrite_rows"]) if ours else "rewrite_rows"
        return {"change": "update", "ids": ids, "plus": chance.randrange(1000), "mode": mode}
    if what == "columns" and number == FIRST_WRITER:
        return {"change": "columns", "name": f"c{step}"}
    own = number * OWN
    if what == "append":
        return {"change": "append", "ids": [own + step * 100 + place for place in range(chance.randint(1, 30))]}
    return {"change": "upsert", "ids": sorted({own + chance.randrange(60) for _ in range(20)}), "plus": step}


def wide(id: int) -> str:
    """A long text that does not compress to nothing."""
    return random.Random(id).randbytes(300).hex()


def own_rows(change: Change) -> dict[str, list[Any]]:
    """The rows that an append or upsert brings."""
    ids = change["ids"]
    return {"id": ids, "v": [change.get("plus", 0)] * len(ids), "wide": [wide(id) for id in ids]}


def run(dataset: Any, change: Change, ours: bool) -> None:
    """Make the call."""
    import pyarrow as pa

    where = f"id in ({', '.join(map(str, change.get('ids', [])))})"
    match change["change"]:
        case "delete":
            dataset.delete(where, **_PATIENCE)
        case "update":
            mode = {"write_mode": change["mode"]} if ours else {}
            dataset.update({"v": f"(v * 31 + {change['plus']}) % {MODULUS}"}, where=where, **_PATIENCE, **mode)
        case "append":
            dataset.insert(pa.table(own_rows(change)))
        case "upsert":
            merge = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            merge.conflict_retries(10_000).retry_timeout(timedelta(seconds=300)).execute(pa.table(own_rows(change)))
        case "columns":
            known = [name for name in dataset.schema.names if name.startswith("c")]
            if len(known) >= 2:
                change["change"], change["name"] = "drop", known[0]
                dataset.drop_columns([known[0]])
            else:
                dataset.add_columns({change["name"]: "id + 1"})


def write(library: Any, uri: str, number: int, deadline: float, say: Callable[[Change], None]) -> None:
    """Change until the time is over."""
    ours, chance, step = library.__name__ == "tablewright", random.Random(number), 0
    dataset = library.dataset(uri)
    while time.monotonic() < deadline:
        step += 1
        if chance.random() < 0.5:  # else the handle is as old as its own last change
            dataset = library.dataset(uri)
        change, before = draw(chance, number, ours, step), dataset.version
        try:
            run(dataset, change, ours)
        except Exception as error:  # pylance gives up where others come in between; then it has changed nothing
            if ours or "onflict" not in str(error) + type(error).__name__:
                raise
            dataset = library.dataset(uri)
            continue
        if dataset.version != before:
            say({"version": dataset.version, **change})


@contextmanager
def conflicts_said(library: Any, say: Callable[[Change], None]) -> Iterator[None]:
    """Log every conflict that makes an attempt run again, with the operation of the version that it met."""
    if library.__name__ != "tablewright":
        yield
        return
    from tablewright.errors import CommitConflict
    from tablewright.jobs import attempt

    commit = attempt.commit

    def watched(world: Any, transaction: Any, **options: Any) -> Any:
        try:
            return commit(world, transaction, **options)
        except CommitConflict as conflict:
            say({"conflict": conflict.theirs, "ours": conflict.ours, "at": conflict.version, "reason": conflict.reason})
            raise

    attempt.commit = watched  # type: ignore[assignment]
    yield


# ------------------------------------------------------------------------------------------ compactor, cleaner, reader
def compact(library: Any, uri: str, deadline: float, say: Callable[[Change], None]) -> None:
    """Compact in a loop; how many groups were planned, read and committed."""
    from tablewright.jobs import compact as jobs

    read: list[int] = []
    rewrite = jobs.rewrite_group

    def counted(task: Any, world: Any) -> Any:
        read.extend(fragment.id for fragment in task.task.fragments)
        return rewrite(task, world)

    jobs.rewrite_group = counted
    while time.monotonic() < deadline:
        dataset = library.dataset(uri)
        prepared = dataset.optimize.prepare_compact_files(target_rows_per_fragment=_TARGET_ROWS)
        if "nothing to do" in prepared.explain_plan():
            time.sleep(0.05)
            continue
        read.clear()
        before, started = dataset.version, time.monotonic()
        metrics = prepared.execute()
        say(
            {
                "compaction": metrics.fragments_removed,
                "version": dataset.version if dataset.version != before else None,
                "dropped": metrics.groups_dropped,
                "hidden": metrics.rows_hidden,
                "carried": metrics.bytes_carried,
                "read_twice": len(read) - len(set(read)),
                "seconds": time.monotonic() - started,
            }
        )


def clean(library: Any, uri: str, deadline: float, say: Callable[[Change], None]) -> None:
    """Remove old versions in a loop."""
    while time.monotonic() < deadline:
        stats = library.dataset(uri).cleanup_old_versions(older_than=timedelta(seconds=KEPT_SECONDS))
        say({"cleaned": stats.old_versions})
        time.sleep(1)


def read(library: Any, uri: str, deadline: float, say: Callable[[Change], None]) -> None:
    """Read versions whole that are young enough to be kept."""
    chance = random.Random(7)
    while time.monotonic() < deadline:
        kept = [
            entry["version"]
            for entry in library.dataset(uri).versions()
            if entry["timestamp"].timestamp() > time.time() - KEPT_SECONDS / 2
        ]
        for version in chance.sample(kept, min(2, len(kept))):
            rows = library.dataset(uri, version=version).to_table().num_rows
            say({"read": version, "rows": rows})


def main(library_name: str, uri: str, number: int, seconds: float, start: Path, log: Path) -> None:
    """Do what the number says until the time is over. Any error ends the process with a traceback."""
    library = importlib.import_module(library_name)
    library.dataset(uri)
    Path(f"{start}.ready-{number}").touch()
    while not start.exists():
        time.sleep(0.005)
    deadline = time.monotonic() + seconds
    with log.open("w") as lines:

        def say(line: Change) -> None:
            print(json.dumps(line), file=lines, flush=True)

        if number in (COMPACTOR, CLEANER, READER):
            {COMPACTOR: compact, CLEANER: clean, READER: read}[number](library, uri, deadline, say)
            return
        with conflicts_said(library, say):
            write(library, uri, number, deadline, say)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), Path(sys.argv[5]), Path(sys.argv[6]))
