"""Merges with ordered clauses as plain Python: what each clause does to a row, and Hypothesis strategies for them.

An expression or condition is SQL text and a function of the source's row and the table's; either may be ``None``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

__all__ = [
    "SOURCE",
    "TABLE",
    "Clause",
    "ClauseMerge",
    "Outcome",
    "Sql",
    "merges",
    "source_rows",
    "table_rows",
]

Row = Mapping[str, Any]

TABLE = pa.schema({"id": pa.int64(), "v": pa.int64(), "w": pa.int32(), "s": pa.string()})
SOURCE = pa.schema({"id": pa.int64(), "v": pa.int64(), "w": pa.int16(), "s": pa.string(), "op": pa.string()})


@dataclass(frozen=True)
class Sql:
    """A text of SQL, and its meaning."""

    text: str
    of: Callable[[Row | None, Row | None], Any] = field(compare=False, repr=False)


def _both(operation: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    return None if left is None or right is None else operation(left, right)


def _greater(left: Any, right: Any) -> Any:
    return _both(lambda a, b: a > b, left, right)


def _plus(left: Any, right: Any) -> Any:
    return _both(lambda a, b: a + b, left, right)


VALUES_OF_MATCH: dict[str, list[Sql]] = {
    "v": [
        Sql("source.v", lambda s, t: s["v"]),
        Sql("source.v + target.v", lambda s, t: _plus(s["v"], t["v"])),
        Sql("target.v * 2", lambda s, t: None if t["v"] is None else t["v"] * 2),
        Sql("coalesce(source.v, target.w)", lambda s, t: t["w"] if s["v"] is None else s["v"]),
        Sql("null", lambda s, t: None),
    ],
    "w": [
        Sql("source.w", lambda s, t: s["w"]),
        Sql("target.w + 1", lambda s, t: _plus(t["w"], 1)),
        Sql("source.v", lambda s, t: s["v"]),
        Sql("7", lambda s, t: 7),
    ],
    "s": [
        Sql("source.s", lambda s, t: s["s"]),
        Sql("source.op || target.s", lambda s, t: _plus(s["op"], t["s"])),
        Sql(
            "case when source.v > target.v then 'up' else 'down' end",
            lambda s, t: "up" if _greater(s["v"], t["v"]) else "down",
        ),
        Sql("'it''s'", lambda s, t: "it's"),
    ],
}
CONDITIONS_OF_MATCH = [
    Sql("source.v > target.v", lambda s, t: _greater(s["v"], t["v"])),
    Sql("source.op = 'd'", lambda s, t: _both(lambda a, b: a == b, s["op"], "d")),
    Sql("source.op <> 'd'", lambda s, t: _both(lambda a, b: a != b, s["op"], "d")),
    Sql("target.w is null", lambda s, t: t["w"] is None),
    Sql("target.s = source.s or source.v = 1", lambda s, t: t["s"] == s["s"] is not None or s["v"] == 1),
]
VALUES_OF_TARGET: dict[str, list[Sql]] = {
    "v": [Sql("target.v + 1", lambda s, t: _plus(t["v"], 1)), Sql("target.w", lambda s, t: t["w"])],
    "w": [Sql("-target.w", lambda s, t: None if t["w"] is None else -t["w"]), Sql("null", lambda s, t: None)],
    "s": [Sql("'gone'", lambda s, t: "gone")],
}
CONDITIONS_OF_TARGET = [
    Sql("target.v > 3", lambda s, t: _greater(t["v"], 3)),
    Sql("target.s is null", lambda s, t: t["s"] is None),
    Sql("target.w < 0", lambda s, t: _greater(0, t["w"])),
]
VALUES_OF_SOURCE: dict[str, list[Sql]] = {
    "id": [Sql("source.id", lambda s, t: s["id"])],
    "v": [Sql("source.v", lambda s, t: s["v"]), Sql("source.v + source.w", lambda s, t: _plus(s["v"], s["w"]))],
    "w": [Sql("source.w", lambda s, t: s["w"]), Sql("11", lambda s, t: 11)],
    "s": [Sql("source.op", lambda s, t: s["op"])],
}
CONDITIONS_OF_SOURCE = [
    Sql("source.v > 0", lambda s, t: _greater(s["v"], 0)),
    Sql("source.op = 'i'", lambda s, t: _both(lambda a, b: a == b, s["op"], "i")),
    Sql("source.s is not null", lambda s, t: s["s"] is not None),
]


@dataclass(frozen=True)
class Clause:
    """``kind`` is update, delete or insert; ``values`` ``None`` stands for all columns as the source has them."""

    kind: str
    values: Mapping[str, Sql] | None = None
    condition: Sql | None = None

    @property
    def texts(self) -> dict[str, str]:
        return {name: each.text for name, each in (self.values or {}).items()}

    @property
    def condition_text(self) -> str | None:
        return None if self.condition is None else self.condition.text

    def reads_target(self, column: str) -> bool:
        """Whether its texts name this column of the table."""
        return any(
            re.search(rf"target\.{column}\b", text) for text in (*self.texts.values(), self.condition_text or "")
        )

    def takes(self, source: Row | None, target: Row | None) -> bool:
        return self.condition is None or self.condition.of(source, target) is True

    def new(self, source: Row | None, target: Row | None, columns: Sequence[str]) -> dict[str, Any]:
        if self.values is None:
            assert source is not None
            return {name: source[name] for name in columns if name in source}
        return {name: each.of(source, target) for name, each in self.values.items()}


@dataclass(frozen=True)
class Outcome:
    """The rows of the table afterwards, those that stayed by their place before; and how many did what.

    A row that no clause took is the same object as before.
    """

    kept: dict[int, Row]
    inserted: list[Row]
    counts: dict[str, int]


@dataclass(frozen=True)
class ClauseMerge:
    """A merge on ``id``."""

    matched: tuple[Clause, ...]
    inserts: tuple[Clause, ...]
    by_source: tuple[Clause, ...]

    def configure(self, merge: Any) -> Any:
        """The clauses, on our builder."""
        for clause in self.matched:
            if clause.kind == "delete":
                merge = merge.when_matched_delete(clause.condition_text)
            elif clause.values is None:
                merge = merge.when_matched_update_all(clause.condition_text)
            else:
                merge = merge.when_matched_update(clause.texts, clause.condition_text)
        for clause in self.inserts:
            if clause.values is None:
                merge = merge.when_not_matched_insert_all(clause.condition_text)
            else:
                merge = merge.when_not_matched_insert(clause.texts, clause.condition_text)
        for clause in self.by_source:
            if clause.kind == "delete":
                merge = merge.when_not_matched_by_source_delete(clause.condition_text)
            else:
                merge = merge.when_not_matched_by_source_update(clause.texts, clause.condition_text)
        return merge

    @property
    def all(self) -> tuple[Clause, ...]:
        """Every clause."""
        return (*self.matched, *self.inserts, *self.by_source)

    @property
    def reads_op(self) -> bool:
        """Whether the source's column that the table does not have is used."""
        clauses = (*self.matched, *self.inserts)
        texts = [text for clause in clauses for text in [*clause.texts.values(), clause.condition_text or ""]]
        return any("source.op" in text for text in texts)

    def source(self, rows: Sequence[Row]) -> pa.Table:
        """The rows; a column that the table does not have, and that nobody reads, is left out."""
        table = pa.Table.from_pylist(list(rows), SOURCE)
        return table if self.reads_op else table.drop_columns(["op"])

    def after(
        self,
        table: Sequence[Row],
        source: Sequence[Row],
        columns: Sequence[str] = TABLE.names,
        key: Callable[[Row], Any] = lambda row: row["id"],
    ) -> Outcome:
        """The meaning, for a table with these columns; a row whose key is ``None`` matches nothing."""
        by_key = {key(row): row for row in source if key(row) is not None}
        kept: dict[int, Row] = {}
        met: set[Any] = set()
        updated = deleted = 0
        for place, row in enumerate(table):
            partner = by_key.get(key(row))
            met |= set() if partner is None else {key(row)}
            clauses = self.by_source if partner is None else self.matched
            clause = next((each for each in clauses if each.takes(partner, row)), None)
            if clause is not None and clause.kind == "delete":
                deleted += 1
                continue
            updated += clause is not None
            kept[place] = row if clause is None else {**row, **clause.new(partner, row, columns)}
        inserted = []
        for row in source:
            if key(row) not in met:
                clause = next((each for each in self.inserts if each.takes(row, None)), None)
                inserted += [] if clause is None else [dict.fromkeys(columns) | clause.new(row, None, columns)]
        counts = {"num_inserted_rows": len(inserted), "num_updated_rows": updated, "num_deleted_rows": deleted}
        return Outcome(kept, inserted, counts)


# ---------------------------------------------------------------------------------------------------------- strategies
def _clause_lists(
    kinds: Sequence[str], values: Mapping[str, Sequence[Sql]], conditions: Sequence[Sql], all_columns: bool
) -> st.SearchStrategy[tuple[Clause, ...]]:
    chosen = st.fixed_dictionaries({}, optional={name: st.sampled_from(sqls) for name, sqls in values.items()})
    given = chosen.filter(bool) if not all_columns else st.none() | chosen.filter(bool)
    clause = st.one_of(*(st.builds(Clause, st.just(kind), given if kind != "delete" else st.none()) for kind in kinds))

    def with_conditions(clauses: list[Clause]) -> st.SearchStrategy[tuple[Clause, ...]]:
        asked = [st.sampled_from(conditions) for _ in clauses[:-1]] + [
            st.none() | st.sampled_from(conditions) for _ in clauses[-1:]
        ]
        return st.tuples(*asked).map(
            lambda some: tuple(
                Clause(each.kind, each.values, condition) for each, condition in zip(clauses, some, strict=True)
            )
        )

    return st.lists(clause, max_size=3).flatmap(with_conditions)


def merges() -> st.SearchStrategy[ClauseMerge]:
    """Merges with at least one clause."""
    return st.builds(
        ClauseMerge,
        _clause_lists(["update", "update", "delete"], VALUES_OF_MATCH, CONDITIONS_OF_MATCH, all_columns=True),
        _clause_lists(["insert"], VALUES_OF_SOURCE, CONDITIONS_OF_SOURCE, all_columns=True),
        _clause_lists(["update", "delete"], VALUES_OF_TARGET, CONDITIONS_OF_TARGET, all_columns=False),
    ).filter(lambda merge: bool(merge.matched or merge.inserts or merge.by_source))


_numbers = st.none() | st.integers(-3, 9)
_texts = st.sampled_from([None, "a", "b"])


def table_rows() -> st.SearchStrategy[list[Row]]:
    """Rows of the table; a key may come twice, or be null."""
    row = st.fixed_dictionaries({"id": st.none() | st.integers(0, 11), "v": _numbers, "w": _numbers, "s": _texts})
    return st.lists(row, min_size=1, max_size=12)


def source_rows() -> st.SearchStrategy[list[Row]]:
    """Rows of the source; a key comes once, null ones may come again."""
    ops = st.sampled_from([None, "d", "i", "u"])
    row = st.fixed_dictionaries(
        {"id": st.none() | st.integers(0, 14), "v": _numbers, "w": _numbers, "s": _texts, "op": ops}
    )

    def keys_once(rows: list[Row]) -> list[Row]:
        seen: set[Any] = set()
        return [row for row in rows if row["id"] is None or (row["id"] not in seen and not seen.add(row["id"]))]  # type: ignore[func-returns-value]

    return st.lists(row, max_size=10).map(keys_once)
