"""Small tables and merges for races: a merge knows its call, in either library, and its meaning in plain Python.

Rows are plain dicts; a table is a list of them. Keys may be one column or two, text, and null: a null meets nothing.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
from tests.concurrency.stage import within
from tests.property.clause_model import Clause, ClauseMerge, Sql

import tablewright as tw
from tablewright.storage import open_store
from tablewright.testing import seeded_world

__all__ = ["CLAUSES", "KEYS", "Merge", "Shape", "Tables", "drawn_merge", "sorted_rows"]

Values = Mapping[str, Any]
Counts = tuple[int, int, int]

KEYS = {
    "single": ["id"],
    "text": ["part"],
    "composite": ["id", "part"],
    "nullable": ["id"],
    "nullable composite": ["part", "id"],
}
NEWER = "source.x > target.x"
_TYPES = {"id": pa.int64(), "part": pa.string(), "x": pa.float64(), "by": pa.string(), "n": pa.int32()}
_PRIMARY = {"lance-schema:unenforced-primary-key": "true"}


@dataclass(frozen=True)
class Shape:
    """What a table to race on is like."""

    key: str
    declared: bool
    indexed: bool
    stable: bool

    @property
    def on(self) -> list[str]:
        return KEYS[self.key]

    @property
    def nullable(self) -> bool:
        return self.key.startswith("nullable")

    @property
    def schema(self) -> pa.Schema:
        """A declared key takes no nulls."""
        fields = [pa.field(name, type) for name, type in _TYPES.items()]
        marked = [field.with_metadata(_PRIMARY).with_nullable(False) for field in fields]
        return pa.schema(marked[i] if self.declared and fields[i].name in self.on else fields[i] for i in range(5))

    def table(self, rows: Sequence[Values]) -> pa.Table:
        """Rows as Arrow data, with the columns that the first of them has."""
        names = [name for name in _TYPES if name in rows[0]]
        return pa.Table.from_pylist([dict(row) for row in rows], pa.schema([self.schema.field(name) for name in names]))

    def row(self, i: int, by: str, x: float = 0.0) -> dict[str, Any]:
        """Row `i`; those past 1000 have a null in their key, where it takes one."""
        key: dict[str, Any] = {"id": i, "part": f"part {i}"}
        if i > 1000 and self.nullable:
            key["id" if self.key == "nullable" or i % 2 else "part"] = None
        return {**key, "x": x, "by": by, "n": i % 7}


OLD = [*range(11), 1001, 1002]
"""Rows of every table in the beginning; 9, 10 and the last two came after the index, and 5 was deleted."""

GONE = 5


class Tables:
    """One table of each shape, made when it is first asked for; races run on copies that share the files."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._made = folder, dict[Shape, tuple[Path, list[dict[str, Any]]]]()

    def copy(self, shape: Shape, target: Path) -> list[dict[str, Any]]:
        """A copy at `target`; its rows, with what identifies them."""
        if shape not in self._made:
            base = self._folder / f"base-{len(self._made)}.lance"
            with within(seeded_world(open_store(str(base)), 10**6 + len(self._made))):
                self._made[shape] = self._make(shape, base)
        path, rows = self._made[shape]
        shutil.copytree(path, target, copy_function=os.link)
        return rows

    def _make(self, shape: Shape, path: Path) -> tuple[Path, list[dict[str, Any]]]:
        rows = [shape.row(i, "old", float(i)) for i in OLD]
        tw.write_dataset(shape.table(rows[:9]), path, max_rows_per_file=3, enable_stable_row_ids=shape.stable)
        if shape.indexed:
            lance.dataset(str(path)).create_scalar_index(shape.on[0], "BTREE")
        tw.dataset(path).insert(shape.table(rows[9:]))
        tw.dataset(path).delete(f"id = {GONE}")
        found = tw.dataset(path).to_table(columns=[*_TYPES, "_rowid"]).to_pylist()
        assert len(found) == len(OLD) - 1
        return path, found


_SUM = {
    "x": Sql("source.x + target.x", lambda s, t: s["x"] + t["x"]),
    "by": Sql("source.by", lambda s, t: s["by"]),
}
_MATCHED = (
    Clause("delete", None, Sql("source.x < 4", lambda s, t: s["x"] < 4)),
    Clause("update", _SUM, Sql("target.x < 8", lambda s, t: t["x"] < 8)),
    Clause("update"),
)
_INSERTS = (Clause("insert", None, Sql("source.x < 16", lambda s, t: s["x"] < 16)),)
_BY_SOURCE = (
    Clause("update", {"by": Sql("'lacked'", lambda s, t: "lacked")}, Sql("target.x < 7", lambda s, t: t["x"] < 7)),
    Clause("delete", None, Sql("target.x > 9", lambda s, t: t["x"] > 9)),
)
CLAUSES = {
    "clauses": ClauseMerge(_MATCHED, _INSERTS, ()),
    "sweep": ClauseMerge(_MATCHED, _INSERTS, _BY_SOURCE),
}
"""Merges with ordered clauses, by their kind: about rows that match and source rows, and about all rows."""


@dataclass(frozen=True)
class Merge:
    """One merge: an upsert, find-or-create, an upsert of what is newer; or with ordered clauses (`CLAUSES`)."""

    shape: Shape
    rows: tuple[Values, ...]
    kind: str = "upsert"
    mode: str = "auto"
    retries: int = 10

    def run(self, dataset: Any) -> Counts:
        """Make the call; what it reports."""
        merge = dataset.merge_insert(self.shape.on).conflict_retries(self.retries)
        if self.kind in CLAUSES:
            merge = CLAUSES[self.kind].configure(merge).isolation("serializable" if self.sweeps else "snapshot")
        else:
            if self.kind != "create":
                merge = merge.when_matched_update_all(NEWER if self.kind == "newer" else None)
            merge = merge.when_not_matched_insert_all()
        if isinstance(dataset, tw.LanceDataset):
            merge = merge.write_mode(self.mode)
        result = merge.execute(self.shape.table(self.rows))
        return result["num_inserted_rows"], result["num_updated_rows"], result["num_deleted_rows"]

    def after(self, table: Sequence[Values]) -> tuple[list[Values], Counts]:
        """The rows afterwards, and what has to be reported. Rows that stay keep what else they have, as their id."""
        if self.kind in CLAUSES:
            outcome = CLAUSES[self.kind].after(table, self.rows, tuple(_TYPES), self._key)
            counts = outcome.counts
            return [*outcome.kept.values(), *outcome.inserted], (
                counts["num_inserted_rows"],
                counts["num_updated_rows"],
                counts["num_deleted_rows"],
            )
        waiting = {self._key(row): row for row in self.rows if self._key(row) is not None}
        met, rows, updated = set(), list[Values](), 0
        for row in table:
            new = waiting.get(self._key(row))
            if new is not None:
                met.add(self._key(row))
                if self.kind == "upsert" or (self.kind == "newer" and new["x"] > row["x"]):
                    row, updated = {**row, **new}, updated + 1
            rows.append(row)
        new_rows = [dict.fromkeys(_TYPES) | dict(row) for row in self.rows if self._key(row) not in met]
        return [*rows, *new_rows], (len(new_rows), updated, 0)

    @property
    def sweeps(self) -> bool:
        """Whether it changes rows that the source lacks. Then only serializable isolation promises a serial order."""
        return self.kind in CLAUSES and bool(CLAUSES[self.kind].by_source)

    def _key(self, row: Values) -> tuple[Any, ...] | None:
        key = tuple(row[name] for name in self.shape.on)
        return None if None in key else key


def drawn_merge(chance: random.Random, shape: Shape, by: str, ids: set[int], *, by_pylance: bool = False) -> Merge:
    """A merge of these rows, and perhaps one with a null in its key; partial ones have the key and two columns more.

    Through an index pylance leaves out rows with null keys, and refuses conditions if the key is declared.
    """
    unlike = by_pylance and shape.indexed
    if shape.nullable:
        ids = ids | ({chance.choice([1003, 1004])} if not unlike else set())
    rows = [shape.row(i, by, float(chance.randrange(20))) for i in chance.sample(sorted(ids), len(ids))]
    partial = chance.random() < 0.5
    kinds = ["upsert", "upsert", "upsert", "create", "newer"]
    kind = chance.choice(kinds if by_pylance else [*kinds, *CLAUSES])
    if unlike and shape.declared and kind == "newer":
        kind = "upsert"
    if partial:
        rows = [{name: row[name] for name in [*shape.on, "x", "by"]} for row in rows]
    return Merge(shape, tuple(rows), kind, chance.choice(["auto", "rewrite_rows", "rewrite_columns"]))


def sorted_rows(rows: Sequence[Values]) -> list[str]:
    """Rows as text in a fixed order, since their place means nothing."""
    return sorted(repr([row[name] for name in _TYPES]) for row in rows)
