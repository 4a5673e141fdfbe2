"""Statements as values: what is to be done, to which table, with texts of Lance's dialect and queries of Spark's.

Tests: ``tests/unit/statements/test_parse.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from tablewright.operations.merge_insert.ordered import InsertClause, RowClause, Values

__all__ = [
    "AddColumns",
    "AlterColumn",
    "ChangesRead",
    "CreateIndex",
    "CreateTable",
    "DeleteFrom",
    "DescribeDetail",
    "DescribeHistory",
    "DropColumns",
    "DropIndex",
    "InsertInto",
    "MergeInto",
    "Optimize",
    "Query",
    "Restore",
    "Statement",
    "TableName",
    "TableRead",
    "UpdateTable",
    "Vacuum",
]


@dataclass(frozen=True, slots=True)
class TableName:
    """A table by its path, or by a name that was registered."""

    path: str | None = None
    name: str | None = None

    def __str__(self) -> str:
        return self.name if self.name is not None else f"tablewright.`{self.path}`"


@dataclass(frozen=True, slots=True)
class TableRead:
    """A table in a query: its newest version, or that of a number, a tag or a time."""

    table: TableName
    version: int | str | None = None
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class ChangesRead:
    """``table_changes(t, first, last)``: what the versions from ``first`` to ``last``, both inclusive, changed."""

    table: TableName
    first: int
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A query of Spark's, with places where our tables are read.

    ``columns`` are all names (in lower case) that it mentions; ``None``: it may read any column.
    """

    parts: tuple[str | TableRead | ChangesRead, ...]
    columns: frozenset[str] | None = None

    @property
    def reads(self) -> Iterator[TableRead | ChangesRead]:
        """The places."""
        return (part for part in self.parts if not isinstance(part, str))


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeInto:
    """``on`` pairs columns of the table and of the source. Clauses call the sides ``target`` and ``source``.

    ``mentions`` are the names (in lower case) that clauses use.
    """

    table: TableName
    source: Query
    on: tuple[tuple[str, str], ...]
    matched: tuple[RowClause, ...]
    not_matched: tuple[InsertClause, ...]
    by_source: tuple[RowClause, ...]
    mentions: frozenset[str]

    @property
    def takes_all(self) -> bool:
        """Whether a clause takes all columns of the source, ``*``."""
        clauses = (*self.matched, *self.not_matched)
        return any(getattr(clause, "values", ()) is None for clause in clauses)


@dataclass(frozen=True, slots=True)
class UpdateTable:
    """Columns get the values of expressions."""

    table: TableName
    values: Values
    where: str | None


@dataclass(frozen=True, slots=True)
class DeleteFrom:
    """Rows go; all of them without a condition."""

    table: TableName
    where: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertInto:
    """Rows of a query come, after the others or in their place. ``columns`` ``None``: all, by their order."""

    table: TableName
    query: Query
    columns: tuple[str, ...] | None = None
    by_name: bool = False
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTable:
    """A new table, of columns or of a query's rows."""

    table: TableName
    schema: pa.Schema | None = None
    query: Query | None = None
    replace: bool = False
    if_not_exists: bool = False
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class AddColumns:
    """New columns, null in all rows."""

    table: TableName
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class DropColumns:
    """Columns go."""

    table: TableName
    columns: tuple[str, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterColumn:
    """A column gets another name, type, or may be null or not."""

    table: TableName
    column: str
    name: str | None = None
    data_type: pa.DataType | None = None
    nullable: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateIndex:
    """A scalar index on a column."""

    table: TableName
    name: str
    column: str
    kind: str
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DropIndex:
    """An index goes."""

    table: TableName
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Optimize:
    """Compact small files, and take new rows into indices."""

    table: TableName


@dataclass(frozen=True, slots=True)
class Vacuum:
    """Remove old versions and their files; with ``dry_run`` only say which."""

    table: TableName
    hours: float | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class DescribeHistory:
    """The versions of a table."""

    table: TableName


@dataclass(frozen=True, slots=True)
class DescribeDetail:
    """A table in one row."""

    table: TableName


@dataclass(frozen=True, slots=True)
class Restore:
    """An old version becomes the newest again."""

    table: TableName
    version: int | str | None = None
    timestamp: str | None = None


Statement: TypeAlias = (
    Query
    | MergeInto
    | UpdateTable
    | DeleteFrom
    | InsertInto
    | CreateTable
    | AddColumns
    | DropColumns
    | AlterColumn
    | CreateIndex
    | DropIndex
    | Optimize
    | Vacuum
    | DescribeHistory
    | DescribeDetail
    | Restore
)
