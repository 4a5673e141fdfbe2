"""Merge insert as plain Python: every valid combination of clauses, on tables with all that is awkward about keys.

A :class:`Case` knows its call, in either library, and its meaning: :func:`expected` says which rows come out of it, and
how many were inserted, updated and deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pyarrow as pa

from tablewright.operations.merge_insert.limits import MatchLimits, MergeLimits

__all__ = [
    "CASES",
    "GONE",
    "KEYS",
    "SCHEMA",
    "Case",
    "Expected",
    "TableRow",
    "builder",
    "clashing",
    "expected",
    "source",
    "target",
]

Values = Mapping[str, Any]

SCHEMA = pa.schema(
    {
        "a": pa.int64(),
        "b": pa.string(),
        "x": pa.float64(),
        "s": pa.string(),
        "t": pa.struct({"p": pa.int32(), "q": pa.string()}),
    }
)
KEYS: dict[str, list[str]] = {"single": ["a"], "composite": ["a", "b"], "string": ["b"]}
CONDITION, BY_SOURCE = "source.x > target.x", "x < 5"


@dataclass(frozen=True)
class Case:
    """One way to configure a merge."""

    matched: str  # nothing, update, update_if, delete, fail
    inserts: bool
    by_source: str  # keep, delete, delete_if
    key: str
    partial: bool

    def __str__(self) -> str:
        parts = [self.matched, "insert" * self.inserts, self.by_source, self.key, "partial" * self.partial]
        return "-".join(part for part in parts if part)

    def configure(self, merge: Any) -> Any:
        """The clauses, on a builder of either library."""
        match self.matched:
            case "update":
                merge = merge.when_matched_update_all()
            case "update_if":
                merge = merge.when_matched_update_all(CONDITION)
            case "delete":
                merge = merge.when_matched_delete()
            case "fail":
                merge = merge.when_matched_fail()
        if self.inserts:
            merge = merge.when_not_matched_insert_all()
        if self.by_source != "keep":
            merge = merge.when_not_matched_by_source_delete(BY_SOURCE if self.by_source == "delete_if" else None)
        return merge


def _cases() -> Iterator[Case]:
    clauses = product(
        ["nothing", "update", "update_if", "delete", "fail"], [False, True], ["keep", "delete", "delete_if"]
    )
    for (matched, inserts, by_source), key, partial in product(clauses, KEYS, [False, True]):
        if matched != "nothing" or inserts or by_source != "keep":
            yield Case(matched, inserts, by_source, key, partial)


CASES = list(_cases())


def builder(dataset: Any, on: Any, limits: MergeLimits | None = None) -> Any:
    """A merge to be configured, in the library of the dataset; ours may get other limits."""
    merge = dataset.merge_insert(on)
    return merge if limits is None else merge._with(limits=limits)


CHEAP_INDEX = MergeLimits(match=MatchLimits(lookup_ns=0, lookup_key_ns=0.001, take_row_ns=0))
"""An index is asked, however few rows there are."""


def _row(i: int) -> dict[str, Any]:
    return {
        "a": None if i % 9 == 4 else i,
        "b": None if i % 11 == 5 else f"key {i}",
        "x": None if i % 7 == 6 else float(i % 10),
        "s": f"row {i}",
        "t": None if i % 5 == 3 else {"p": i, "q": f"q{i}"},
    }


def target() -> pa.Table:
    """A table of 24 rows: null keys, and one key twice."""
    rows = [_row(i) for i in range(23)]
    rows.append(_row(2) | {"s": "the other row 2", "x": 1.0})
    return pa.Table.from_pylist(rows, SCHEMA)


GONE = "s in ('row 1', 'row 8') or (s >= 'row 12' and s <= 'row 17')"
"""Rows that are deleted before a merge: some, and all of the third of four fragments of six rows."""


def clashing(case: Case) -> pa.Table:
    """A source for ``when_matched_fail`` of which one row meets a row of the table."""
    row = [value for value in _row(20).items() if value[0] in source(case).column_names]
    return pa.concat_tables([source(case), pa.Table.from_pylist([dict(row)], source(case).schema)])


def source(case: Case) -> pa.Table:
    """Rows that meet one, two or no rows of the table, and rows with null keys; in no order of the table."""
    matching = [] if case.matched == "fail" else [20, 2, 7, 9, 6, 15]
    rows = [_row(i) | {"x": i / 3, "s": f"new {i}", "t": {"p": -i, "q": None}} for i in (30, *matching, 31, 13, 4, 5)]
    if case.matched == "fail":
        rows = [row for row in rows if row["s"] not in ("new 13", "new 4", "new 5")]
    rows += [
        {"a": 40, "b": "key 2" if case.key == "composite" else "key 40", "x": None, "s": None, "t": None},
        {"a": None, "b": None, "x": 1.5, "s": "no key", "t": None},
        {"a": None, "b": None, "x": 2.5, "s": "no key either", "t": None},
    ]
    table = pa.Table.from_pylist(rows, SCHEMA)
    return table.select(["x", *reversed(KEYS[case.key])]) if case.partial else table


@dataclass(frozen=True)
class TableRow:
    """A row of the table: its values, and the identity that an update does not change."""

    values: Values
    identity: Any = None


@dataclass(frozen=True)
class Expected:
    """What comes out: rows that keep their identity, new rows, and counts."""

    kept: list[TableRow]
    inserted: list[Values]
    counts: dict[str, int]

    @property
    def rows(self) -> list[Values]:
        return [row.values for row in self.kept] + self.inserted


def _key_of(row: Values, key: Sequence[str]) -> tuple[Any, ...] | None:
    values = tuple(row[name] for name in key)
    return None if None in values else values


def _greater(left: Any, right: Any) -> bool:
    return left is not None and right is not None and left > right


def expected(case: Case, table: Sequence[TableRow], incoming: Sequence[Values]) -> Expected:
    """The meaning of a merge."""
    key = KEYS[case.key]
    by_key = {_key_of(row, key): row for row in incoming if _key_of(row, key) is not None}
    met: set[Any] = set()
    kept: list[TableRow] = []
    updated = deleted = 0
    for row in table:
        own = _key_of(row.values, key)
        partner = None if own is None else by_key.get(own)
        if partner is None:
            goes = case.by_source == "delete" or (case.by_source == "delete_if" and _less(row.values["x"], 5))
        else:
            met.add(own)
            goes = case.matched == "delete"
            if case.matched == "update" or (case.matched == "update_if" and _greater(partner["x"], row.values["x"])):
                row = TableRow({**row.values, **partner}, row.identity)
                updated += 1
        deleted += goes
        kept += [] if goes else [row]
    new = [row for row in incoming if _key_of(row, key) is None or _key_of(row, key) not in met]
    inserted = [{name: row.get(name) for name in SCHEMA.names} for row in new] if case.inserts else []
    counts = {"num_inserted_rows": len(inserted), "num_updated_rows": updated, "num_deleted_rows": deleted}
    return Expected(kept, inserted, counts)


def _less(left: Any, right: Any) -> bool:
    return left is not None and left < right


def sorted_rows(rows: Sequence[Values]) -> list[str]:
    """Rows as text in a fixed order, since their place in the table means nothing."""
    names: Callable[[Values], str] = lambda row: repr({name: row[name] for name in SCHEMA.names})  # noqa: E731
    return sorted(map(names, rows))
