"""A process that changes a table until it is killed.

Before each operation it writes a line with the operation to its log, after it returned a line with the version that it
made. So the log of a killed process says which operations were acknowledged, and which one was under way.

`Settings.calls` kills the process from inside, immediately before the call of that number that changes the file system
(as Python's audit events count them): the same moments on machines of any speed.
"""

from __future__ import annotations

import itertools
import json
import os
import pickle
import random
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.concurrency.mutations import BLOB, EXTRA, MAIN, MODULUS, Operation, State, draw, steps

import tablewright as tw

__all__ = ["Settings", "main", "serve"]

_TYPES = {"int64": pa.int64(), "int32": pa.int32(), "string": pa.string()}
_CALLS = {"os.link", "os.rename", "os.remove", "os.mkdir", "os.rmdir"}
_TO_WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_SECONDS_MAX = 300
"""A process ends by then, also if the one that should kill it is gone."""


@dataclass(frozen=True)
class Settings:
    """What a process is told: where the table is, what it holds, the seed of its operations, and when it dies."""

    uri: str
    log: str
    state: State
    seed: int
    options: Mapping[str, str]
    calls: int | None = None


def main(settings: Settings) -> None:
    """Change until killed. An error is the last line of the log."""
    state, chance = settings.state, random.Random(settings.seed)
    blobs = MAIN in state.lines and BLOB in state.latest(MAIN).columns
    log = os.open(settings.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(**line: Any) -> None:
        os.write(log, json.dumps(line).encode() + b"\n")

    if settings.calls is not None:
        _die_at(settings.calls)
    try:
        while True:
            operation = draw(chance, state, blobs=blobs)
            write(begun=operation)
            version = run(operation, settings.uri, settings.options, state)
            write(done=version)
            state = steps(state, operation)[-1]
    except BaseException as error:
        write(error=f"{type(error).__name__}: {error}")
        raise


def _die_at(call: int) -> None:
    """Kill this process immediately before a call that changes the file system."""
    count = itertools.count(1)

    def hook(event: str, arguments: Any) -> None:
        changes = event in _CALLS or (event == "open" and (arguments[2] or 0) & _TO_WRITE)
        if changes and next(count) == call:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def serve() -> None:
    """Run a process for each line of the standard input, the path of its settings; say its id, and that it ended.

    Imports take longer than many a life, so each process is a fork of this one, which itself uses nothing. A process
    that has ended keeps its id until the next one is asked for: whoever kills by id hits no other.
    """
    for line in sys.stdin:
        settings = pickle.loads(Path(line.strip()).read_bytes())
        pid = os.fork()
        if not pid:
            signal.alarm(_SECONDS_MAX)
            try:
                main(settings)
            finally:
                os._exit(1)
        print(pid, flush=True)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        print("ended", flush=True)
        sys.stdin.readline()
        os.waitpid(pid, 0)


# ------------------------------------------------------------------------------------------------------ the calls


def run(operation: Operation, uri: str, options: Mapping[str, str], state: State) -> int | None:
    """Make the call; the version that it made, or None if it makes none."""
    verb, line = operation["verb"], operation.get("line", MAIN)
    if verb == "create":
        made = tw.write_dataset(
            _arrow(operation["rows"], operation["columns"]),
            uri,
            max_rows_per_file=10,
            enable_stable_row_ids=operation["stable"],
            data_storage_version=operation["format"],
            storage_options=options,
        )
        return made.version
    if verb == "drop":
        tw.LanceDataset.drop(uri, storage_options=options)
        return None
    table = tw.dataset(uri, storage_options=options)
    if verb in ("tag", "untag", "branch", "unbranch"):
        _refer(table, operation)
        return None
    dataset = table.checkout_version((line, None)) if line else table
    types = state.latest(line).columns | dict.fromkeys(EXTRA, "int64") | state.latest(line).columns
    if verb == "insert":
        dataset.insert(_arrow(operation["rows"], types), max_rows_per_file=5)
    elif verb == "overwrite":
        dataset.insert(_arrow(operation["rows"], operation["columns"]), mode="overwrite", max_rows_per_file=10)
    elif verb == "delete":
        dataset.delete(_where(operation))
    elif verb == "update":
        sets = {name: f"(coalesce({name}, 0) * 3 + {operation['number']}) % {MODULUS}" for name in operation["sets"]}
        dataset.update(sets, where=_where(operation), write_mode=operation["mode"])
    elif verb == "merge":
        _merge_into(dataset, operation, types)
    elif verb == "add":
        _add_to(dataset, operation)
    elif verb == "cast":
        dataset.alter_columns({"path": operation["column"], "data_type": _TYPES[operation["type"]]})
    elif verb == "rename":
        dataset.alter_columns({"path": operation["column"], "name": operation["to"]})
    elif verb == "drop column":
        dataset.drop_columns([operation["column"]])
    elif verb == "config":
        dataset.update_config({operation["key"]: operation["value"]})
    elif verb == "unconfig":
        dataset.delete_config_keys([operation["key"]])
    elif verb == "stable":
        dataset.enable_stable_row_ids()
    else:
        assert verb == "restore", verb
        dataset = table.checkout_version((line, operation["version"]) if line else operation["version"])
        dataset.restore()
    return dataset.version


def _arrow(rows: list[dict[str, Any]], types: Mapping[str, str]) -> pa.Table:
    return pa.table({name: pa.array([row[name] for row in rows], _TYPES[types[name]]) for name in rows[0]})


def _where(operation: Operation) -> str:
    return f"id in ({', '.join(map(str, operation['ids']))})"


def _refer(table: tw.LanceDataset, operation: Operation) -> None:
    verb, name, line = operation["verb"], operation["name"], operation["line"]
    if verb == "tag":
        place = (line, operation["version"]) if line else operation["version"]
        (table.tags.update if name in table.tags.list() else table.tags.create)(name, place)
    elif verb == "untag":
        table.tags.delete(name)
    elif verb == "branch":
        table.create_branch(name, operation["version"])
    else:
        table.branches.delete(name)


def _merge_into(dataset: tw.LanceDataset, operation: Operation, types: Mapping[str, str]) -> None:
    kind = operation["kind"]
    builder = dataset.merge_insert("id", schema_evolution=operation["evolve"]).write_mode(operation["mode"])
    if kind in ("upsert", "update", "replace"):
        builder.when_matched_update_all()
    elif kind == "newer":
        builder.when_matched_update_all("source.v > coalesce(target.v, 0)")
    elif kind == "delete":
        builder.when_matched_delete()
    if kind == "replace":
        builder.when_not_matched_by_source_delete(f"id < {operation['below']}")
    if kind in ("upsert", "create", "replace"):
        builder.when_not_matched_insert_all()
    builder.execute(_arrow(operation["rows"], types))


def _add_to(dataset: tw.LanceDataset, operation: Operation) -> None:
    name, how = operation["column"], operation["how"]
    if how == "null":
        dataset.add_columns(pa.field(name, pa.int64()))
    elif how == "sql":
        dataset.add_columns({name: "id * 2"})
    else:

        def function(batch: pa.RecordBatch) -> pa.RecordBatch:
            return pa.record_batch({name: pa.array([id + 7 for id in batch["id"].to_pylist()], pa.int64())})

        schema = pa.schema({name: pa.int64()})
        dataset.add_columns(tw.batch_udf(output_schema=schema)(function), read_columns=["id"], batch_size=7)


if __name__ == "__main__":
    from tests.concurrency import mutator  # pickles name classes by the module that they are imported from

    mutator.serve()
