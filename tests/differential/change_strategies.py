"""Random changes that a table can take, and a history of them whose every step three have to agree on.

Values come from literals and from other columns, rows are chosen by key, by value and by null. What pylance refuses or
leaves to chance is drawn for Tablewright only.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st
from tests.property.merge_change import Merge, newer
from tests.property.row_model import (
    AddColumns,
    AddNulls,
    Append,
    Change,
    Delete,
    DropColumns,
    Expression,
    MergeColumns,
    Model,
    Predicate,
    Rename,
    Update,
    Widen,
    always,
    assert_reads_as,
    created,
    ids_in,
    literal,
    new_rows,
    plus,
)

import tablewright as tw

__all__ = ["History", "changes", "columns_like", "merges"]

MODES = st.sampled_from(["auto", "rewrite_rows", "rewrite_columns"])
ROWS_MAX = 60


def columns_like(model: Model, kind: str) -> list[str]:
    """Columns other than the key whose type is, in text, of a kind: `int`, `string`, `struct`."""
    return [name for name, type in model.columns.items() if kind in str(type).split("<")[0] and name != "id"]


def _greater(column: str, number: int) -> Predicate:
    return Predicate(
        f"{column} > {number}",
        lambda row: None if row[column] is None else row[column] > number,
        frozenset({column}),
        pc.field(column) > number,
    )


def _is_null(column: str) -> Predicate:
    return Predicate(f"{column} is null", lambda row: row[column] is None, frozenset({column}))


def _either(one: Predicate, other: Predicate) -> Predicate:
    def holds(row: Any) -> bool | None:
        answers = {one.holds(row), other.holds(row)}
        return True if True in answers else None if None in answers else False

    return Predicate(f"({one.sql}) or ({other.sql})", holds, one.reads | other.reads)


@st.composite
def predicates(draw: st.DrawFn, model: Model) -> Predicate:
    """Few rows, many rows, none, all; by key, by value, by null."""
    keys = sorted(model.rows) or [0]
    few = st.sets(st.sampled_from(keys), max_size=4).map(ids_in)
    span = st.tuples(st.sampled_from(keys), st.integers(1, 12)).map(lambda p: ids_in(range(p[0], p[0] + p[1])))
    choices = [few, few, span, st.just(always())]
    choices += [st.integers(0, 9).map(lambda n, c=c: _greater(c, n)) for c in columns_like(model, "int")]
    choices += [st.just(_is_null(c)) for c in columns_like(model, "int") + columns_like(model, "string")]
    predicate = draw(st.one_of(choices))
    if draw(st.integers(0, 4)) == 0:
        return _either(predicate, draw(st.one_of(choices)))
    return predicate


def _case(column: str) -> Expression:
    return Expression(
        f"case when {column} > 5 then 0 else {column} end",
        lambda row: 0 if row[column] is not None and row[column] > 5 else row[column],
        frozenset({column}),
    )


def _coalesce(column: str) -> Expression:
    return Expression(
        f"coalesce({column}, 7)", lambda row: 7 if row[column] is None else row[column], frozenset({column})
    )


def _copy(column: str) -> Expression:
    return Expression(column, lambda row: row[column], frozenset({column}))


def _upper(column: str) -> Expression:
    return Expression(
        f"upper({column}) || '!'",
        lambda row: None if row[column] is None else row[column].upper() + "!",
        frozenset({column}),
    )


def _of_id(type: pa.DataType) -> Expression:
    if pa.types.is_string(type):
        return Expression("cast(id as string)", lambda row: str(row["id"]), frozenset({"id"}))
    return _copy("id")


def _struct_of(model: Model) -> Expression:
    texts = columns_like(model, "string")
    text = _copy(texts[0]) if texts else literal("y")
    return Expression(
        f"named_struct('x', id, 'y', {text.sql})",
        lambda row: {"x": row["id"], "y": text.value(row)},
        text.reads | {"id"},
    )


def expressions(model: Model, type: pa.DataType, library: Any) -> st.SearchStrategy[Expression]:
    """Values for a column of this type, from literals and from other columns. pylance knows no CASE."""
    if pa.types.is_struct(type):
        return st.just(_struct_of(model))
    if pa.types.is_string(type):
        columns = columns_like(model, "string")
        return st.sampled_from([literal("new"), literal(None), *map(_upper, columns), *map(_copy, columns)])
    columns = columns_like(model, "int")
    of_columns = [_coalesce, _copy, lambda column: plus(column, 1)] + [_case] * (library is tw)
    made = [expression(column) for expression in of_columns for column in columns]
    return st.sampled_from([literal(3), literal(None), plus("id", 1), *made])


@st.composite
def updates(draw: st.DrawFn, model: Model, library: Any) -> Update:
    """One to three columns; ours in any mode, and in members of structs too.

    pylance sets one column after the other in an order of its own, so its expressions read no column that it sets.
    """
    able = columns_like(model, "int") + columns_like(model, "string") + columns_like(model, "struct")
    chosen = draw(st.sets(st.sampled_from(able), min_size=1, max_size=3))
    sets = {}
    for name in sorted(chosen):
        if library is tw and name in columns_like(model, "struct") and draw(st.booleans()):
            sets[f"{name}.x"] = draw(expressions(model, pa.int64(), library))
        else:
            sets[name] = draw(expressions(model, model.columns[name], library))
    if library is lance:
        sets = {name: each for name, each in sets.items() if not each.reads & (sets.keys() - {name})}
        sets = sets or {able[0]: literal(None)}
    return Update(sets, draw(predicates(model)), draw(MODES) if library is tw else "auto")


@st.composite
def column_changes(draw: st.DrawFn, model: Model, name: str, library: Any) -> Change:
    """A column more, fewer, renamed or widened."""
    type = draw(st.sampled_from([pa.int64(), pa.int32(), pa.string()]))
    value = expressions(model, type, library)
    of_columns = value.map(lambda expression: expression if expression.reads else _of_id(type))
    ways = [
        st.builds(AddColumns, st.just(name), st.just(type), of_columns, st.just("sql")),
        st.builds(AddColumns, st.just(name), st.just(type), of_columns, st.just("udf")),
        st.builds(AddColumns, st.just(name), st.just(type), value, st.just("reader")),
        st.builds(AddNulls, st.just(name), st.just(type)),
        st.builds(MergeColumns, st.just(name), st.dictionaries(st.integers(0, 30), st.integers(0, 9), min_size=1)),
    ]
    others = [column for column in model.columns if column != "id"]
    if others:
        ways.append(st.builds(Rename, st.sampled_from(others), st.just(name)))
    if len(others) > 1:
        ways.append(st.sets(st.sampled_from(others), min_size=1, max_size=2).map(lambda n: DropColumns(tuple(n))))
    narrow = [name for name, type in model.columns.items() if type == pa.int32() and name not in model.indexed]
    if narrow:
        ways.append(st.builds(Widen, st.sampled_from(narrow)))
    return draw(st.one_of(ways))


def _appends(model: Model) -> st.SearchStrategy[Append]:
    """Up to nine rows; `short` ones bring two columns only, and are null in the others."""
    start = max(model.rows, default=-1) + 1 + 100 * model.next_row_id

    def made(count: int, per_file: int, short: bool) -> Append:
        rows = new_rows(model, start, count)
        return Append(tuple(dict(list(row.items())[:2]) for row in rows) if short else rows, model, per_file)

    return st.builds(made, st.integers(0, 9), st.integers(3, 10), st.booleans())


@st.composite
def merges(draw: st.DrawFn, model: Model, library: Any) -> Merge:
    """Whole rows or some columns; updates, all or some, inserts, deletes; keys that are there and keys that are not."""
    start = max(model.rows, default=-1) + 1 + 100 * model.next_row_id
    keys = draw(st.sets(st.sampled_from(sorted(model.rows)), max_size=6)) if model.rows else set()
    keys |= set(range(start, start + draw(st.integers(0 if keys else 1, 3))))
    others = [name for name in model.columns if name != "id"]
    columns = draw(st.sets(st.sampled_from(others), min_size=1)) if draw(st.booleans()) else set(others)
    shift = draw(st.integers(0, 9))
    rows = [dict(new_rows(model, key + shift, 1)[0], id=key) for key in draw(st.permutations(sorted(keys)))]
    rows = [{name: value for name, value in row.items() if name == "id" or name in columns} for row in rows]
    matched = draw(st.sampled_from(["update", "update", "update", "delete", "nothing"]))
    by_source = draw(predicates(model)) if draw(st.integers(0, 4)) == 0 else None
    inserts = (matched == "nothing" and by_source is None) or draw(st.booleans())
    if library is lance and matched == "delete" and by_source is not None:
        inserts = True  # without, pylance stumbles over its own plan
    condition = None
    if matched == "update" and (numbers := [name for name in columns_like(model, "int") if name in columns]):
        condition = draw(st.one_of(st.none(), st.sampled_from(numbers).map(newer)))
    mode = draw(MODES) if library is tw else "auto"
    return Merge(tuple(rows), model, matched, condition, inserts, by_source, mode)


@st.composite
def changes(draw: st.DrawFn, model: Model, library: Any, name: str) -> Change:
    """Any change that a table like this can take; `name` is free for a new column."""
    ways = [st.builds(Delete, predicates(model), st.booleans()), column_changes(model, name, library)]
    if set(model.columns) - {"id", "v"}:
        ways += [updates(model, library)] * 2
    if len(model.rows) < ROWS_MAX - 9:
        ways += [_appends(model)]
        ways += [merges(model, library)] * 2 if set(model.columns) - {"id"} else []
    return draw(st.one_of(ways))


class History:
    """One table and its model, step by step."""

    def __init__(self, folder: Path, library: Any, *, stable: bool, count: int, per_file: int) -> None:
        self.uri = str(folder / "t.lance")
        self.model = created(library, self.uri, count, per_file=per_file, stable=stable)
        self.stable, self.version = stable, 1

    def take(self, library: Any, change: Change, **options: Any) -> None:
        """One step by one library, through a handle with these options; both have to agree on what it did."""
        before = self.model
        result = change.run(library, library.dataset(self.uri, **options))
        version = library.dataset(self.uri).version
        assert version - self.version in (0, 1)
        self.version, self.model = version, change.after(before, version)
        if isinstance(change, Delete | Update | Merge):
            assert result == change.count(before)
        if isinstance(change, Merge) and self.stable:
            self.model = self._with_ids(before)
        self.check()

    def _with_ids(self, before: Model) -> Model:
        """New rows of a merge get the next ids, in an order that nobody promises."""
        found = lance.dataset(self.uri).to_table(columns=["id", "_rowid"]).to_pydict()
        new = {id: row_id for id, row_id in zip(*found.values(), strict=True) if id not in before.rows}
        assert sorted(new.values()) == list(range(before.next_row_id, self.model.next_row_id))
        return replace(
            self.model,
            rows={id: replace(row, row_id=new.get(id, row.row_id)) for id, row in self.model.rows.items()},
        )

    def index(self, column: str, kind: str) -> None:
        """pylance builds an index, so that later steps have coverage to keep or to lose."""
        dataset = lance.dataset(self.uri)
        dataset.create_scalar_index(column, kind, replace=True)
        self.version, self.model = dataset.version, replace(self.model, indexed=self.model.indexed | {column})

    def check(self) -> None:
        """Both readers find the model's rows, and pylance also through its indices."""
        here, there = tw.dataset(self.uri), lance.dataset(self.uri)
        for dataset in (here, there):
            dataset.validate()
            assert dataset.version == self.version
            assert_reads_as(dataset, self.model, stable=self.stable)
        for probe in self._probes():
            found = there.to_table(["id"], filter=probe.sql)["id"].to_pylist()
            assert sorted(found) == sorted(self.model.matching(probe)), probe.sql

    def _probes(self) -> list[Predicate]:
        """Conditions on the columns that have an index, and on one that may have none."""
        texts, numbers = columns_like(self.model, "string"), columns_like(self.model, "int")
        names = [name for name in texts + numbers if name in self.model.indexed] or (texts + numbers)[:1]
        return [_little(name) if name in numbers else _is_new(name) for name in names]


def _little(name: str) -> Predicate:
    return Predicate(f"{name} <= 3", lambda row: row[name] is not None and row[name] <= 3)


def _is_new(name: str) -> Predicate:
    return Predicate(f"{name} in ('new', 'text 1', 'text 5')", lambda row: row[name] in ("new", "text 1", "text 5"))
