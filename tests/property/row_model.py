"""A table as plain Python: rows by key, and changes that know both their call and their meaning.

A change has two faces. `run(library, dataset)` makes the call a user would make, in either library; `after(model,
version)` says what comes out, in plain Python. Every row has an `id` that never changes; all else may.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

import tablewright as tw

__all__ = [
    "COLUMNS",
    "SYSTEM",
    "AddColumns",
    "AddNulls",
    "Append",
    "Change",
    "Delete",
    "DropColumns",
    "Expression",
    "MergeColumns",
    "Model",
    "Predicate",
    "Rename",
    "Row",
    "Update",
    "Widen",
    "always",
    "assert_reads_as",
    "created",
    "ids_in",
    "literal",
    "new_rows",
    "plus",
    "table_of",
]

Values = Mapping[str, Any]
"""One row: a value, or None, for every column."""

SYSTEM = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@dataclass(frozen=True, slots=True)
class Row:
    """A live row: its values, its stable id, and the versions that made it and changed it last."""

    values: Values
    row_id: int
    created: int
    updated: int


@dataclass(frozen=True)
class Model:
    """One version of a table: its columns in order, its rows by key, the next row id, the columns with an index."""

    columns: Mapping[str, pa.DataType]
    rows: Mapping[int, Row] = field(default_factory=dict)
    next_row_id: int = 0
    indexed: frozenset[str] = frozenset()

    def values(self) -> dict[int, Values]:
        """What a reader sees, by key."""
        return {id: row.values for id, row in self.rows.items()}

    def matching(self, where: Predicate) -> list[int]:
        """Keys of the rows for which the predicate is true (not null)."""
        return [id for id, row in self.rows.items() if where.holds(row.values) is True]


# ---------------------------------------------------------------------------------------- predicates, expressions


@dataclass(frozen=True)
class Predicate:
    """A condition: as SQL, as what it means (None is SQL's unknown), and as a pyarrow Expression where there is one."""

    sql: str
    holds: Callable[[Values], bool | None] = field(compare=False)
    reads: frozenset[str] = frozenset({"id"})
    arrow: pc.Expression | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Expression:
    """A new value: as SQL, as what it means, and the columns that it looks at."""

    sql: str
    value: Callable[[Values], Any] = field(compare=False)
    reads: frozenset[str] = frozenset()


def ids_in(ids: Any) -> Predicate:
    """The rows with these keys."""
    wanted = frozenset(ids)
    listed = ", ".join(map(str, sorted(wanted)))
    sql = f"id in ({listed})" if wanted else "false"
    arrow = pc.field("id").isin(sorted(wanted)) if wanted else None
    return Predicate(sql, lambda row: row["id"] in wanted, arrow=arrow)


def always() -> Predicate:
    """Every row."""
    return Predicate("true", lambda row: True, frozenset())


def literal(value: int | str | None) -> Expression:
    """The same value for every row."""
    sql = "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)
    return Expression(sql, lambda row: value)


def plus(column: str, number: int) -> Expression:
    """A column of the row itself, and a bit more."""
    return Expression(
        f"{column} + {number}",
        lambda row: None if row[column] is None else row[column] + number,
        frozenset({column}),
    )


# -------------------------------------------------------------------------------------------------------- changes


class Change(Protocol):
    """One step of a history."""

    def run(self, library: Any, dataset: Any) -> Any:
        """Make the call through `dataset`, a handle of `library`."""

    def after(self, model: Model, version: int) -> Model:
        """The table afterwards, if the change made `version`."""


def table_of(model: Model, rows: list[Values]) -> pa.Table:
    """Rows as Arrow data with the columns of the model that the first row has."""
    names = [name for name in model.columns if not rows or name in rows[0]]
    return pa.table({name: pa.array([row[name] for row in rows], model.columns[name]) for name in names})


@dataclass(frozen=True)
class Append:
    """New rows, which may lack columns."""

    rows: tuple[Values, ...]
    model: Model = field(repr=False)
    per_file: int = 4

    def run(self, library: Any, dataset: Any) -> Any:
        dataset.insert(table_of(self.model, list(self.rows)), max_rows_per_file=self.per_file)

    def after(self, model: Model, version: int) -> Model:
        empty = dict.fromkeys(model.columns)
        added = {
            row["id"]: Row(empty | dict(row), model.next_row_id + position, version, version)
            for position, row in enumerate(self.rows)
        }
        return replace(model, rows={**model.rows, **added}, next_row_id=model.next_row_id + len(added))


@dataclass(frozen=True)
class Delete:
    """Rows go."""

    where: Predicate
    by_arrow: bool = False

    def run(self, library: Any, dataset: Any) -> Any:
        arrow = self.where.arrow if self.by_arrow else None
        return dataset.delete(self.where.sql if arrow is None else arrow)["num_deleted_rows"]

    def after(self, model: Model, version: int) -> Model:
        gone = set(model.matching(self.where))
        return replace(model, rows={id: row for id, row in model.rows.items() if id not in gone})

    def count(self, model: Model) -> int:
        """What the call has to return."""
        return len(model.matching(self.where))


@dataclass(frozen=True)
class Update:
    """Rows get new values. A path like `st.x` sets a member of a struct, which pylance refuses."""

    sets: Mapping[str, Expression]
    where: Predicate
    mode: str = "auto"

    def run(self, library: Any, dataset: Any) -> Any:
        ours = {"write_mode": self.mode} if library is tw else {}
        updates = {path: expression.sql for path, expression in self.sets.items()}
        return dataset.update(updates, where=self.where.sql, **ours)["num_rows_updated"]

    def after(self, model: Model, version: int) -> Model:
        rows = dict(model.rows)
        for id in model.matching(self.where):
            rows[id] = replace(rows[id], values=self._changed(rows[id].values), updated=version)
        return replace(model, rows=rows)

    def _changed(self, old: Values) -> Values:
        new = dict(old)
        for path, expression in self.sets.items():
            column, _, member = path.partition(".")
            value = expression.value(old)
            new[column] = {**(new[column] or NO_STRUCT), member: value} if member else value
        return new

    def count(self, model: Model) -> int:
        """What the call has to return."""
        return len(model.matching(self.where))

    @property
    def writes(self) -> frozenset[str]:
        """The columns that get new values."""
        return frozenset(path.partition(".")[0] for path in self.sets)

    @property
    def reads(self) -> frozenset[str]:
        """The columns that decide what is written and where."""
        return self.where.reads.union(*(expression.reads for expression in self.sets.values()))


@dataclass(frozen=True)
class AddColumns:
    """A computed column: by SQL, by a function over batches of the columns that it reads, or by a stream of values."""

    name: str
    type: pa.DataType
    expression: Expression
    way: str = "sql"

    def run(self, library: Any, dataset: Any) -> Any:
        schema = pa.schema([(self.name, self.type)])
        if self.way == "sql":
            kind, never = {"int64": ("bigint", -9), "int32": ("int", -9), "string": ("string", "'~'")}[str(self.type)]
            nullable = f"nullif({self.expression.sql}, {never})"  # `coalesce` makes a column that takes no null
            dataset.add_columns({self.name: f"cast({nullable} as {kind})"})
        elif self.way == "udf":
            reads = sorted(self.expression.reads | {"id"})
            function = library.batch_udf(output_schema=schema)(self._batch)
            dataset.add_columns(function, read_columns=reads)
        else:
            table = dataset.to_table()
            dataset.add_columns(pa.table([self._values(table)], schema=schema).to_reader())

    def _values(self, batch: Any) -> pa.Array:
        return pa.array([self.expression.value(row) for row in batch.to_pylist()], self.type)

    def _batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([self._values(batch)], schema=pa.schema([(self.name, self.type)]))

    def after(self, model: Model, version: int) -> Model:
        rows = {
            id: replace(row, values={**row.values, self.name: self.expression.value(row.values)}, updated=version)
            for id, row in model.rows.items()
        }
        return replace(model, columns={**model.columns, self.name: self.type}, rows=rows)


@dataclass(frozen=True)
class AddNulls:
    """A column without values: nothing but the schema changes."""

    name: str
    type: pa.DataType

    def run(self, library: Any, dataset: Any) -> Any:
        dataset.add_columns(pa.schema([(self.name, self.type)]))

    def after(self, model: Model, version: int) -> Model:
        rows = {id: replace(row, values={**row.values, self.name: None}) for id, row in model.rows.items()}
        return replace(model, columns={**model.columns, self.name: self.type}, rows=rows)


@dataclass(frozen=True)
class MergeColumns:
    """A column joined from outside by `id`; rows without a partner get null."""

    name: str
    found: Mapping[int, int]

    def run(self, library: Any, dataset: Any) -> Any:
        ids, values = pa.array(self.found.keys(), pa.int64()), pa.array(self.found.values(), pa.int64())
        dataset.merge(pa.table({"id": ids, self.name: values}), "id")

    def after(self, model: Model, version: int) -> Model:
        rows = {
            id: replace(row, values={**row.values, self.name: self.found.get(id)}, updated=version)
            for id, row in model.rows.items()
        }
        return replace(model, columns={**model.columns, self.name: pa.int64()}, rows=rows)


@dataclass(frozen=True)
class DropColumns:
    """Columns go; their files may stay."""

    names: tuple[str, ...]

    def run(self, library: Any, dataset: Any) -> Any:
        dataset.drop_columns(list(self.names))

    def after(self, model: Model, version: int) -> Model:
        rows = {
            id: replace(row, values={name: value for name, value in row.values.items() if name not in self.names})
            for id, row in model.rows.items()
        }
        kept = {name: type for name, type in model.columns.items() if name not in self.names}
        return replace(model, columns=kept, rows=rows, indexed=model.indexed.difference(self.names))


@dataclass(frozen=True)
class Rename:
    """A column gets another name, in its place."""

    old: str
    new: str

    def run(self, library: Any, dataset: Any) -> Any:
        dataset.alter_columns({"path": self.old, "name": self.new})

    def after(self, model: Model, version: int) -> Model:
        def renamed(values: Mapping[str, Any]) -> dict[str, Any]:
            return {self.new if name == self.old else name: value for name, value in values.items()}

        rows = {id: replace(row, values=renamed(row.values)) for id, row in model.rows.items()}
        indexed = frozenset(renamed(dict.fromkeys(model.indexed)))
        return replace(model, columns=renamed(model.columns), rows=rows, indexed=indexed)


@dataclass(frozen=True)
class Widen:
    """A column of 32-bit numbers becomes one of 64 bits: all its values are written anew. It may have no index."""

    name: str

    def run(self, library: Any, dataset: Any) -> Any:
        dataset.alter_columns({"path": self.name, "data_type": pa.int64()})

    def after(self, model: Model, version: int) -> Model:
        rows = {id: replace(row, updated=version) for id, row in model.rows.items()}
        return replace(model, columns={**model.columns, self.name: pa.int64()}, rows=rows)


# ------------------------------------------------------------------------------------------------ a table and its rows

NO_STRUCT = {"x": None, "y": None}
"""What a null struct becomes when one of its members gets a value."""

COLUMNS: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "a": pa.int32(),
    "b": pa.string(),
    "st": pa.struct([("x", pa.int64()), ("y", pa.string())]),
    "v": pa.list_(pa.float32(), 8),
}


def new_rows(model: Model, start: int, count: int) -> tuple[Values, ...]:
    """Rows `start` and on, with some nulls, and a value for each column that the model has."""

    def value(name: str, type: pa.DataType, i: int) -> Any:
        if name == "id":
            return i
        if (i + len(name)) % 5 == 0 and not pa.types.is_struct(type):
            return None
        if pa.types.is_integer(type):
            return i % 10
        if pa.types.is_struct(type):
            return {"x": i % 7, "y": None if i % 3 == 0 else f"y{i}"}
        return f"text {i}" if pa.types.is_string(type) else [float(i)] * 8

    return tuple(
        {name: value(name, type, i) for name, type in model.columns.items()} for i in range(start, start + count)
    )


def created(library: Any, uri: str, count: int, *, per_file: int, stable: bool) -> Model:
    """Make a table of `count` rows, and its model."""
    empty = Model(COLUMNS)
    rows = new_rows(empty, 0, count)
    library.write_dataset(table_of(empty, list(rows)), uri, max_rows_per_file=per_file, enable_stable_row_ids=stable)
    return Append(rows, empty).after(empty, 1)


def assert_reads_as(dataset: Any, model: Model, *, stable: bool) -> None:
    """A reader finds the columns in order and the rows of the model, each once; with their ids and versions too."""
    assert {field.name: field.type for field in dataset.schema} == dict(model.columns)
    assert list(dataset.schema.names) == list(model.columns)
    found = dataset.to_table(columns=[*model.columns, *SYSTEM]).to_pylist()
    system = [[row.pop(name) for name in SYSTEM] for row in found]
    rows = {row["id"]: row for row in found}
    assert len(rows) == len(found), "a row is there twice"
    wanted = model.values()
    if rows != wanted:
        wrong = {id: (rows.get(id), wanted.get(id)) for id in rows.keys() | wanted.keys()}
        shown = {id: pair for id, pair in wrong.items() if pair[0] != pair[1]}
        raise AssertionError(f"{type(dataset).__module__} reads other rows than the model has (found, wanted): {shown}")
    if stable:
        lineage = {row["id"]: facts for row, facts in zip(found, system, strict=True)}
        assert lineage == {id: [row.row_id, row.created, row.updated] for id, row in model.rows.items()}
