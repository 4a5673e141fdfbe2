"""Processes that are killed while they change a table: every verb, at any moment.

Whoever opens the table then finds all operations that were acknowledged, and the one that was under way as a whole or
not at all: rows, columns, configuration, every branch and every tag, through both libraries. The next process goes on
from there. `make soak` kills the promised thousand, CI a few.
"""

from __future__ import annotations

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from tests.concurrency.mutations import BLOB, MAIN, Content, Operation, State, steps
from tests.concurrency.mutator import Settings
from tests.depth import deep

import tablewright as tw
from tablewright.errors import TableNotFound, VersionNotFound

KILLS = deep(8, 1000)
CALLS_MAX = 100
"""Calls that change the file system in the life of a process: some ten operations."""

SECONDS_MAX = 0.7
VERSIONS_MAX = 120
"""After this many versions a new table is begun: all of them are listed after each kill."""

_ROOT = Path(__file__).parents[2]
_PATIENCE_SECONDS = 120
Face = tuple[dict[str, tuple[int, Content]], dict[str, tuple[str, int]]]
"""What a reader sees first: version and content of each line, and the tags."""


@dataclass
class Table:
    """A table, what it should hold, and how often each verb was acknowledged or interrupted."""

    name: str
    options: Mapping[str, str]
    blobs: str | None = None
    number: int = 0
    state: State = field(default_factory=State)
    acknowledged: Counter[str] = field(default_factory=Counter)
    interrupted: Counter[tuple[str, str]] = field(default_factory=Counter)

    def begin(self, folder: Path) -> None:
        """Go on with a table that does not exist yet, or with one that pylance has just made."""
        self.number += 1
        uri = self.uri(folder)
        self.state = _blob_table(uri, self.blobs) if self.blobs else State()

    def uri(self, folder: Path) -> str:
        return str(folder / f"{self.name}-{self.number}.lance")


def kill(tables: list[Table], kills: int, folder: Path, *, seed: int) -> None:
    """Kill this many processes, one table after the other, and judge after each."""
    chance = random.Random(seed)
    with _forks() as forks:
        for number in range(kills):
            table = tables[number % len(tables)]
            if not table.number or any(len(versions) > VERSIONS_MAX for versions in table.state.lines.values()):
                table.begin(folder)
            uri = table.uri(folder)
            calls = chance.randint(1, CALLS_MAX) if chance.random() < 0.75 else None
            seconds = chance.uniform(0, SECONDS_MAX) if calls is None else _PATIENCE_SECONDS
            settings = Settings(uri, f"{uri}.log", table.state, chance.randrange(1 << 30), table.options, calls)
            lines = _live(forks, folder / "settings", settings, seconds)
            under_way = _replay(table, lines)
            if under_way is None or under_way["verb"] != "drop":  # which removes file by file
                _judge(table, uri, under_way, chance)
            if under_way is not None and under_way["verb"] in ("drop", "branch", "unbranch"):
                _repeat(table, uri, under_way, chance)
                _judge(table, uri, None, chance)


# -------------------------------------------------------------------------------------------------- the processes


@contextmanager
def _forks() -> Iterator[subprocess.Popen[str]]:
    """The process that all others are forked from."""
    settings = {
        "PYTHONPATH": f"{_ROOT / 'src'}{os.pathsep}{_ROOT}",
        "PYTHONWARNINGS": "ignore",
        "OPENBLAS_NUM_THREADS": "1",  # a process that is to be forked should have no threads
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.concurrency.mutator"],
        env={**os.environ, **settings},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def _live(forks: subprocess.Popen[str], path: Path, settings: Settings, seconds: float) -> list[dict[str, Any]]:
    """Let a process work until it is killed, by itself or after some seconds; its log."""
    assert forks.stdin is not None and forks.stdout is not None
    path.write_bytes(pickle.dumps(settings))
    print(path, file=forks.stdin, flush=True)
    killer = threading.Timer(seconds, os.kill, (int(forks.stdout.readline()), signal.SIGKILL))
    killer.start()
    assert forks.stdout.readline() == "ended\n"
    killer.cancel()
    killer.join()
    print(file=forks.stdin, flush=True)
    log = Path(settings.log)
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return [json.loads(line) for line in lines]


def _replay(table: Table, lines: list[dict[str, Any]]) -> Operation | None:
    """Apply all acknowledged operations of a log to the model; the operation that was under way."""
    under_way: Operation | None = None
    for line in lines:
        assert "error" not in line, f"{table.name}: {line['error']}\nin {under_way}"
        if "begun" in line:
            under_way = line["begun"]
            continue
        assert under_way is not None
        table.state = steps(table.state, under_way)[-1]
        table.acknowledged[under_way["verb"]] += 1
        if line["done"] is not None:
            assert line["done"] == table.state.version(under_way.get("line", MAIN)), under_way
        under_way = None
    return under_way


def _repeat(table: Table, uri: str, operation: Operation, chance: random.Random) -> None:
    """Run again what takes several steps by design: it has to get through, whatever the first run has done.

    A table that is half dropped may be unreadable, or lack tags and branches, until it is dropped again. The place
    of a branch that was not quite created or deleted is taken until the same is done again, or undone.
    """
    verb, name = operation["verb"], operation.get("name", "")
    if verb == "drop":
        tw.LanceDataset.drop(uri, ignore_not_found=True)
        table.interrupted["drop", "repeated"] += 1
        table.state = State()
    elif verb == "branch" and name not in table.state.lines and chance.random() < 0.5:
        tw.dataset(uri).create_branch(name, operation["version"])
        table.state = steps(table.state, operation)[-1]
    else:
        with suppress(VersionNotFound):
            tw.dataset(uri).branches.delete(name)
        lines = {line: versions for line, versions in table.state.lines.items() if line != name}
        table.state = replace(table.state, lines=lines)


# ----------------------------------------------------------------------------------------------------- the verdict


def _judge(table: Table, uri: str, under_way: Operation | None, chance: random.Random) -> None:
    """Find the one state that is there: the old one, or one that the operation under way makes."""
    possible = [table.state, *([] if under_way is None else steps(table.state, under_way))]
    ours, theirs = _face(tw, uri), _face(lance, uri)
    assert ours == theirs, f"{table.name}: after {under_way}\n{_difference(ours, theirs)}"
    found = [number for number, state in enumerate(possible) if _expected(state) == ours]
    if not found:
        told = "\n".join(_difference(ours, _expected(state)) for state in possible)
        raise AssertionError(f"{table.name}: neither old nor new after {under_way}\n{told}")
    table.state = possible[found[0]]
    if under_way is not None:
        table.interrupted[under_way["verb"], "new" if found[0] else "old"] += 1
    if table.state.lines:
        _judge_older(table, uri, chance)


def _judge_older(table: Table, uri: str, chance: random.Random) -> None:
    """All versions are listed; tagged ones, the first and some other read as they did."""
    lines = table.state.lines
    line = chance.choice(list(lines))
    places = {(line, chance.choice(list(lines[line]))), (MAIN, min(lines[MAIN])), *table.state.tags.values()}
    for library in (tw, lance):
        dataset = library.dataset(uri)
        assert [entry["version"] for entry in dataset.versions()] == list(lines[MAIN])
        for line, version in places:
            found = _content(dataset.checkout_version((line, version) if line else version))
            assert found == lines[line][version], f"{table.name}: version {version} of {line or 'main'}"


def _expected(state: State) -> Face:
    return {line: (state.version(line), state.latest(line)) for line in state.lines}, dict(state.tags)


def _face(library: Any, uri: str) -> Face:
    """What is there, through a library."""
    try:
        dataset = library.dataset(uri)
    except TableNotFound:
        return {}, {}
    except ValueError as error:
        if library is tw or "was not found" not in str(error):
            raise
        return {}, {}
    lines = {MAIN: dataset, **{name: dataset.checkout_version((name, None)) for name in dataset.branches.list()}}
    for line in lines.values():
        line.validate()
    tags = {name: (tag["branch"] or MAIN, tag["version"]) for name, tag in dataset.tags.list().items()}
    return {name: (line.version, _content(line)) for name, line in lines.items()}, tags


def _content(dataset: Any) -> Content:
    rows = dataset.to_table(blob_handling="all_binary").to_pylist()
    by_id = {row["id"]: row for row in rows}
    assert len(by_id) == len(rows), f"an id is there twice: {sorted(row['id'] for row in rows)}"
    columns = {name: BLOB if name == BLOB else str(dataset.schema.field(name).type) for name in dataset.schema.names}
    return Content(columns, by_id, dict(dataset.config()), dataset.has_stable_row_ids)


def _difference(found: Face, wanted: Face) -> str:
    """Where two faces differ, without what they have in common."""
    told = [f"tags {found[1]} != {wanted[1]}"] if found[1] != wanted[1] else []
    for line in found[0].keys() | wanted[0].keys():
        one, other = found[0].get(line), wanted[0].get(line)
        if one is None or other is None:
            told.append(f"{line or 'main'}: version {one and one[0]} != {other and other[0]}")
        elif one != other:
            ids = one[1].rows.keys() | other[1].rows.keys()
            pairs = {id: (one[1].rows.get(id), other[1].rows.get(id)) for id in sorted(ids)}
            rows = {id: pair for id, pair in pairs.items() if pair[0] != pair[1]}
            facts = [(version, replace(content, rows={})) for version, content in (one, other)]
            told.append(f"{line or 'main'}: {facts[0]} != {facts[1]}, rows {rows}")
    return "; ".join(told) or "no difference"


def _blob_table(uri: str, version: str) -> State:
    """A table with a blob column, which only pylance writes: null, in the data file, and beside it."""
    blobs = {id: None if id % 5 == 0 else bytes([id]) * (id % 3 * 40_000 + id) for id in range(30)}
    if version == "2.2":
        column, values = lance.blob_field(BLOB), lance.blob_array(list(blobs.values()))
    else:
        column = pa.field(BLOB, pa.large_binary(), metadata={"lance-encoding:blob": "true"})
        values = pa.array(list(blobs.values()), pa.large_binary())
    ids = pa.array(list(blobs), pa.int64())
    schema = pa.schema([("id", pa.int64()), ("v", pa.int64()), column])
    rows = pa.table([ids, ids, values], schema=schema)
    lance.write_dataset(rows, uri, max_rows_per_file=10, data_storage_version=version)
    content = {id: {"id": id, "v": id, BLOB: blob} for id, blob in blobs.items()}
    return State({MAIN: {1: Content({"id": "int64", "v": "int64", BLOB: BLOB}, content)}})


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_processes_killed_at_any_moment(tmp_path: Path) -> None:
    unsynced = {"fsync": "false"}
    tables = [Table("synced", {}), Table("unsynced", unsynced), Table("blobs", unsynced, "2.2")]
    kill(tables, KILLS, tmp_path, seed=0)
    # Three of four are killed at a call, so much is done on a slow machine too.
    assert 2 * sum(table.acknowledged.total() for table in tables) > KILLS, "too little was done to be interrupted"
    assert sum(table.interrupted.total() for table in tables) > 0
