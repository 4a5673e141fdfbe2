"""Operations of every verb as plain values: which ones are possible in a state of a table, and what they make of it.

An operation is a dict that JSON can hold. `draw` chooses one, `steps` gives the states that a reader may see of it;
`mutator.py` makes the call.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["BLOB", "EXTRA", "MAIN", "MODULUS", "Content", "Operation", "State", "draw", "steps"]

MAIN = ""
"""The name of the line of versions that is no branch."""

BLOB = "blob"
"""A column that pylance wrote, and that no operation here mentions."""

EXTRA = ("a", "b", "c", "d")
"""Columns that come, change and go; all of them integers."""

MODULUS = 1009

Operation = dict[str, Any]
Rows = Mapping[int, Mapping[str, Any]]

_BRANCHES = ("left", "right")
_TAGS = ("one", "two", "three")
_IDS = 60


@dataclass(frozen=True)
class Content:
    """One version: the types of its columns, its rows by id, its configuration, and whether row ids are stable."""

    columns: Mapping[str, str]
    rows: Rows
    config: Mapping[str, str] = field(default_factory=dict)
    stable: bool = False


@dataclass(frozen=True)
class State:
    """A table: the versions of each line by number, and for each tag its line and version. No lines: no table."""

    lines: Mapping[str, Mapping[int, Content]] = field(default_factory=dict)
    tags: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    def version(self, line: str) -> int:
        """The latest version of a line."""
        return max(self.lines[line])

    def latest(self, line: str) -> Content:
        """What the latest version of a line holds."""
        return self.lines[line][self.version(line)]

    def then(self, line: str, **changes: Any) -> State:
        """The state with one more version of a line, which differs from the latest one in these respects."""
        new = {**self.lines[line], self.version(line) + 1: replace(self.latest(line), **changes)}
        return replace(self, lines={**self.lines, line: new})


# ------------------------------------------------------------------------------------------------- what they mean


def steps(state: State, operation: Operation) -> list[State]:
    """What a reader may see of an operation, one after the other. The last one is the operation as a whole."""
    verb, line = operation["verb"], operation.get("line", MAIN)
    if verb == "drop":
        return [State()]
    if verb == "create":
        return [State({MAIN: {1: _written(operation, {}, operation["stable"])}})]
    if verb in ("tag", "untag"):
        others = {name: place for name, place in state.tags.items() if name != operation["name"]}
        place = {operation["name"]: (line, operation["version"])} if verb == "tag" else {}
        return [replace(state, tags=others | place)]
    if verb == "branch":
        first = {operation["version"]: state.lines[line][operation["version"]]}
        return [replace(state, lines={**state.lines, operation["name"]: first})]
    if verb == "unbranch":
        return [replace(state, lines={name: line for name, line in state.lines.items() if name != operation["name"]})]
    now = state.latest(line)
    if verb == "overwrite":
        new = _written(operation, now.config, now.stable)
        return [state.then(line, columns=new.columns, rows=new.rows)]
    if verb == "restore":
        return [state.then(line, **vars(state.lines[line][operation["version"]]))]
    if verb == "stable":
        return [state if now.stable else state.then(line, stable=True)]
    if verb == "config":
        return [state.then(line, config={**now.config, operation["key"]: operation["value"]})]
    if verb == "unconfig":
        return [state.then(line, config={key: text for key, text in now.config.items() if key != operation["key"]})]
    if verb == "merge":
        return _merged(state, operation)
    return [state.then(line, **_changed(now, operation))]


def _written(operation: Operation, config: Mapping[str, str], stable: bool) -> Content:
    columns = operation["columns"]
    return Content(columns, {row["id"]: _whole(columns, row) for row in operation["rows"]}, config, stable)


def _whole(columns: Mapping[str, str], row: Mapping[str, Any]) -> dict[str, Any]:
    return {**dict.fromkeys(columns), **row}


def _changed(now: Content, operation: Operation) -> dict[str, Any]:
    """What is new about a line's latest version after an operation on its rows or columns."""
    verb, rows, columns = operation["verb"], dict(now.rows), dict(now.columns)
    name = operation.get("column")
    if verb == "insert":
        rows |= {row["id"]: _whole(columns, row) for row in operation["rows"]}
    elif verb == "delete":
        rows = {id: row for id, row in rows.items() if id not in operation["ids"]}
    elif verb == "update":
        for id in rows.keys() & set(operation["ids"]):
            new = {name: ((rows[id][name] or 0) * 3 + operation["number"]) % MODULUS for name in operation["sets"]}
            rows[id] = {**rows[id], **new}
    elif verb == "add":
        columns[name] = "int64"
        rows = {id: {**row, name: _added(operation["how"], id)} for id, row in rows.items()}
    elif verb == "cast":
        columns[name] = operation["type"]
    elif verb == "rename":
        columns = {operation["to"] if old == name else old: type for old, type in columns.items()}
        rows = {
            id: {operation["to"] if old == name else old: value for old, value in row.items()}
            for id, row in rows.items()
        }
    else:
        assert verb == "drop column", verb
        del columns[name]
        rows = {id: {old: value for old, value in row.items() if old != name} for id, row in rows.items()}
    return {"rows": rows, "columns": columns}


def _added(how: str, id: int) -> int | None:
    return {"null": None, "sql": id * 2, "function": id + 7}[how]


def _merged(state: State, operation: Operation) -> list[State]:
    line, source = operation["line"], {row["id"]: row for row in operation["rows"]}
    seen = []
    new = {name: "int64" for name in operation["names"] if name not in state.latest(line).columns}
    if new:
        columns = {**state.latest(line).columns, **new}
        rows = {id: _whole(columns, row) for id, row in state.latest(line).rows.items()}
        state = state.then(line, columns=columns, rows=rows)
        seen.append(state)
    now = state.latest(line)
    rows = dict(now.rows)
    both, kind = rows.keys() & source.keys(), operation["kind"]
    if kind in ("upsert", "update", "replace"):
        rows |= {id: {**rows[id], **source[id]} for id in both}
    elif kind == "newer":
        rows |= {id: {**rows[id], **source[id]} for id in both if source[id]["v"] > (rows[id]["v"] or 0)}
    elif kind == "delete":
        rows = {id: row for id, row in rows.items() if id not in both}
    if kind == "replace":
        rows = {id: row for id, row in rows.items() if id in both or id >= operation["below"]}
    if kind in ("upsert", "create", "replace"):
        rows |= {id: _whole(now.columns, row) for id, row in source.items() if id not in now.rows}
    return [*seen, state.then(line, rows=rows)]


# --------------------------------------------------------------------------------------------------- what is next


def draw(chance: random.Random, state: State, *, blobs: bool) -> Operation:
    """An operation that is possible in a state."""
    if not state.lines:
        return {
            "verb": "create",
            **_drawn_table(chance),
            "stable": chance.random() < 0.5,
            "format": chance.choice(["2.0", "2.1", "2.2"]),
        }
    line = chance.choice(list(state.lines)) if chance.random() < 0.5 else MAIN
    choices = [*_ROW_VERBS * 3, *_COLUMN_VERBS, *_TABLE_VERBS, *_REFERENCE_VERBS * 2]
    choices += [] if blobs else ["drop", "overwrite", "overwrite"]
    while True:
        verb = chance.choice(choices)
        operation = _DRAWN[verb](chance, state, line)
        if operation is not None:
            return {"verb": verb, "line": line, **operation}


def _drawn_rows(chance: random.Random, ids: list[int], columns: Mapping[str, str]) -> list[dict[str, Any]]:
    def value(name: str, id: int) -> Any:
        return id if name == "id" else f"{id}-{chance.randrange(100)}" if name == "s" else chance.randrange(MODULUS)

    return [{name: value(name, id) for name in columns if name != BLOB} for id in ids]


def _drawn_ids(chance: random.Random, most: int = 6) -> list[int]:
    return sorted(chance.sample(range(_IDS), chance.randint(1, most)))


def _drawn_table(chance: random.Random) -> Operation:
    columns = {"id": "int64", "v": "int64", "s": "string"}
    columns |= dict.fromkeys(chance.sample(EXTRA, chance.randint(0, 2)), "int64")
    return {"columns": columns, "rows": _drawn_rows(chance, _drawn_ids(chance, 30), columns)}


def _insert(chance: random.Random, state: State, line: str) -> Operation | None:
    now = state.latest(line)
    ids = [id for id in _drawn_ids(chance, 12) if id not in now.rows]
    names = [name for name in now.columns if name == "id" or chance.random() < 0.7]
    return {"rows": _drawn_rows(chance, ids, dict.fromkeys(names, ""))} if ids else None


def _update(chance: random.Random, state: State, line: str) -> Operation:
    numbers = [name for name, type in state.latest(line).columns.items() if type.startswith("int") and name != "id"]
    return {
        "ids": _drawn_ids(chance, 20),
        "sets": chance.sample(numbers, chance.randint(1, len(numbers))),
        "number": chance.randrange(MODULUS),
        "mode": chance.choice(["auto", "rewrite_rows", "rewrite_columns"]),
    }


def _merge(chance: random.Random, state: State, line: str) -> Operation:
    now, kind = state.latest(line), chance.choice(["upsert", "create", "update", "newer", "delete", "replace"])
    names = [name for name in now.columns if name in ("id", "v") or (name != BLOB and chance.random() < 0.7)]
    free = [name for name in EXTRA if name not in now.columns]
    evolve = bool(free) and kind in ("upsert", "update") and chance.random() < 0.4
    names += chance.sample(free, 1) if evolve else []
    return {
        "kind": kind,
        "names": names,
        "rows": _drawn_rows(chance, _drawn_ids(chance, 12), dict.fromkeys(names, "")),
        "evolve": evolve,
        "below": chance.randrange(_IDS),
        "mode": chance.choice(["auto", "rewrite_rows", "rewrite_columns"]),
    }


def _add(chance: random.Random, state: State, line: str) -> Operation | None:
    free = [name for name in EXTRA if name not in state.latest(line).columns]
    how = chance.choice(["null", "sql", "function"])
    return {"column": chance.choice(free), "how": how} if free else None


def _extra(chance: random.Random, state: State, line: str) -> Operation | None:
    there = [name for name in state.latest(line).columns if name in EXTRA]
    return {"column": chance.choice(there)} if there else None


def _rename(chance: random.Random, state: State, line: str) -> Operation | None:
    there = _extra(chance, state, line)
    free = [name for name in EXTRA if name not in state.latest(line).columns]
    return {**there, "to": chance.choice(free)} if there and free else None


def _cast(chance: random.Random, state: State, line: str) -> Operation | None:
    there = _extra(chance, state, line)
    if there is None:
        return None
    return {**there, "type": "int32" if state.latest(line).columns[there["column"]] == "int64" else "int64"}


def _config(chance: random.Random, state: State, line: str) -> Operation:
    return {"key": chance.choice("kl"), "value": str(chance.randrange(100))}


def _unconfig(chance: random.Random, state: State, line: str) -> Operation | None:
    there = sorted(state.latest(line).config)
    return {"key": chance.choice(there)} if there else None


def _tag(chance: random.Random, state: State, line: str) -> Operation:
    return {"name": chance.choice(_TAGS), "version": chance.choice(list(state.lines[line]))}


def _untag(chance: random.Random, state: State, line: str) -> Operation | None:
    return {"name": chance.choice(list(state.tags))} if state.tags else None


def _branch(chance: random.Random, state: State, line: str) -> Operation | None:
    free = [name for name in _BRANCHES if name not in state.lines]
    version = chance.choice(list(state.lines[line])[-20:])
    return {"name": chance.choice(free), "version": version} if free and line == MAIN else None


def _unbranch(chance: random.Random, state: State, line: str) -> Operation | None:
    untagged = [name for name in state.lines if name and name not in {line for line, _ in state.tags.values()}]
    return {"name": chance.choice(untagged)} if untagged else None


def _restore(chance: random.Random, state: State, line: str) -> Operation | None:
    older = sorted(state.lines[line])[-8:-1]
    return {"version": chance.choice(older)} if older else None


_ROW_VERBS = ("insert", "delete", "update", "merge")
_COLUMN_VERBS = ("add", "cast", "rename", "drop column")
_TABLE_VERBS = ("config", "unconfig", "restore", "stable")
_REFERENCE_VERBS = ("tag", "untag", "branch", "unbranch")
_DRAWN: Any = {
    "insert": _insert,
    "delete": lambda chance, state, line: {"ids": _drawn_ids(chance)},
    "update": _update,
    "merge": _merge,
    "add": _add,
    "cast": _cast,
    "rename": _rename,
    "drop column": _extra,
    "config": _config,
    "unconfig": _unconfig,
    "restore": _restore,
    "stable": lambda chance, state, line: {} if line == MAIN and chance.random() < 0.3 else None,
    "tag": _tag,
    "untag": _untag,
    "branch": _branch,
    "unbranch": _unbranch,
    "drop": lambda chance, state, line: {} if chance.random() < 0.5 else None,
    "overwrite": lambda chance, state, line: _drawn_table(chance) if line == MAIN else None,
}
