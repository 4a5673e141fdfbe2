"""``tw.sql``: statements done through the Python API.

Every statement returns a DataFrame: of the query, or of one row that says what was done, and the version that it made.
Without a session that is an Arrow table, and statements that need Spark are refused.

Tests: ``tests/spark/test_sql.py``, ``tests/unit/statements/test_run.py``.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa

from tablewright.data.fit_types import check_fits
from tablewright.dataset import LanceDataset, LanceOperation, dataset, write_dataset
from tablewright.engine.detect import check_session
from tablewright.engine.frames import frame_schema
from tablewright.errors import InvalidRequest, TableNotFound
from tablewright.statements.describe import described, history
from tablewright.statements.frames import computed, in_columns, result
from tablewright.statements.merge import merged
from tablewright.statements.names import register, registered, renew
from tablewright.statements.parse import parse
from tablewright.statements.queries import with_place
from tablewright.statements.values import (
    AddColumns,
    AlterColumn,
    ChangesRead,
    CreateIndex,
    CreateTable,
    DeleteFrom,
    DescribeDetail,
    DescribeHistory,
    DropColumns,
    DropIndex,
    InsertInto,
    MergeInto,
    Optimize,
    Query,
    Restore,
    Statement,
    TableName,
    TableRead,
    UpdateTable,
    Vacuum,
)

__all__ = ["sql"]

_OPTIONS = {"stable_row_ids": "enable_stable_row_ids", "data_storage_version": "data_storage_version"}


def sql(spark: Any, statement: str) -> Any:
    """Run a statement of SQL over tables by path, ``tablewright.`/path` ``, or by names given with ``tw.register``.

    Returns a DataFrame; a change says what it did, and the version that it made. A statement without our tables goes to
    Spark as it is. Without a session (``None``) the result is an Arrow table, and queries are refused.

    >>> import tablewright as tw
    >>> _ = tw.write_dataset({"id": [1, 2, 3]}, "memory://sql-statements")
    >>> tw.sql(None, "DELETE FROM tablewright.`memory://sql-statements` WHERE id > 1").to_pylist()
    [{'num_deleted_rows': 2, 'version': 2}]
    """
    check_session(spark)
    zone = "UTC" if spark is None else str(spark.conf.get("spark.sql.session.timeZone"))
    parsed = parse(statement, registered(spark), zone)
    try:
        return _Run(spark).done(parsed)
    except InvalidRequest as error:
        marked = with_place(error, statement)
        if marked is error:
            raise
        raise marked from error


class _Run:
    """One statement in one session."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark

    def done(self, statement: Statement) -> Any:
        """The DataFrame of a statement."""
        if isinstance(statement, Query):
            return self._query(statement)
        found = self._described(statement)
        if found is not None:
            return found
        counts = self._changed(statement)
        self._renew(statement.table)
        return result(self._spark, [counts], pa.schema({name: pa.int64() for name in counts}))

    def _path(self, table: TableName) -> str:
        return table.path if table.path is not None else registered(self._spark)[str(table.name)]

    def _open(self, table: TableName, **version: Any) -> LanceDataset:
        return dataset(self._path(table), spark=self._spark, **version)

    def _renew(self, table: TableName) -> None:
        """Let views of a table that has changed show it as it is."""
        path = self._path(table)
        for name, known in registered(self._spark).items():
            if known == path:
                renew(self._spark, name)

    # -------------------------------------------------------------------------------------------------------- queries
    def _query(self, query: Query) -> Any:
        if self._spark is None:
            return computed(None, query, [])
        for name in {read.table.name for read in query.reads} - {None}:
            renew(self._spark, str(name))
        return computed(self._spark, query, [self._frame(read, query.columns) for read in query.reads])

    def _frame(self, read: TableRead | ChangesRead, mentioned: frozenset[str] | None) -> Any:
        if isinstance(read, ChangesRead):
            return self._open(read.table).changes(read.first - 1, read.last).to_spark(self._spark)
        opened = self._open(read.table, version=read.version, asof=read.timestamp)
        names = opened.schema.names
        columns = names if mentioned is None else [name for name in names if name.lower() in mentioned]
        return opened.to_spark(self._spark, columns=columns or names[:1])

    def _described(self, statement: Statement) -> Any:
        match statement:
            case DescribeHistory():
                return result(self._spark, *history(self._open(statement.table)))
            case DescribeDetail():
                return result(self._spark, *described(self._open(statement.table)))
            case Vacuum(dry_run=True):
                opened = self._open(statement.table)
                explained = opened.explain_cleanup_old_versions(_older_than(statement))
                rows = [{"path": each.path, "reason": each.reason} for each in explained.candidate_files]
                return result(self._spark, rows, pa.schema({"path": pa.string(), "reason": pa.string()}))
        return None

    # -------------------------------------------------------------------------------------------------------- changes
    def _changed(self, statement: Statement) -> dict[str, int]:
        match statement:
            case MergeInto():
                opened = self._open(statement.table)
                return merged(opened, statement, self._query(statement.source))
            case UpdateTable():
                opened = self._open(statement.table)
                done = opened.update(dict(statement.values), statement.where)
                return {"num_updated_rows": done["num_rows_updated"], "version": opened.version}
            case DeleteFrom():
                opened = self._open(statement.table)
                deleted = opened.delete("true" if statement.where is None else statement.where)
                return {"num_deleted_rows": deleted["num_deleted_rows"], "version": opened.version}
            case InsertInto():
                return self._inserted(statement)
            case CreateTable():
                return self._created(statement)
            case Restore():
                old = self._open(statement.table, version=statement.version, asof=statement.timestamp)
                old.restore()
                return {"version": old.version}
            case Optimize() | Vacuum():
                return self._kept(statement)
        return self._altered(statement)

    def _inserted(self, statement: InsertInto) -> dict[str, int]:
        opened = self._open(statement.table)
        names, what = opened.schema.names, f"INSERT INTO {statement.table}"
        columns = names if statement.columns is None else [_named(opened, name) for name in statement.columns]
        before = opened.count_rows()
        frame = in_columns(self._query(statement.query), columns, statement.by_name, what)
        mode = "overwrite" if statement.overwrite else "append"
        given = frozenset(frame.columns)
        check_fits(frame_schema(frame), pa.schema([field for field in opened.schema if field.name in given]))
        if statement.overwrite and len(given) < len(names):
            missing = [name for name in names if name not in given]
            raise InvalidRequest(f"INSERT OVERWRITE needs values for all columns: {', '.join(missing)} have none.")
        written = write_dataset(frame, opened, mode=mode, schema=opened.schema if statement.overwrite else None)
        rows = written.count_rows() if statement.overwrite else _appended_rows(written, before)
        return {"num_inserted_rows": rows, "version": written.version}

    def _created(self, statement: CreateTable) -> dict[str, int]:
        unknown = [name for name, _ in statement.options if name not in _OPTIONS]
        if unknown:
            offered = ", ".join(_OPTIONS)
            raise InvalidRequest(f"TBLPROPERTIES {', '.join(unknown)} are not known. There are: {offered}.")
        options: dict[str, Any] = {_OPTIONS[name]: value for name, value in statement.options}
        if "enable_stable_row_ids" in options:
            options["enable_stable_row_ids"] = _flag("stable_row_ids", options["enable_stable_row_ids"])
        path = str(statement.table.path)
        if statement.if_not_exists and _exists(path):
            made = dataset(path)
        else:
            data: Any = [] if statement.query is None else self._query(statement.query)
            mode = "overwrite" if statement.replace and _exists(path) else "create"
            made = write_dataset(data, path, statement.schema, mode=mode, **options)
        if statement.table.name is not None and self._spark is not None:
            register(self._spark, statement.table.name, path)
        return {"num_inserted_rows": 0 if statement.query is None else made.count_rows(), "version": made.version}

    def _altered(self, statement: Statement) -> dict[str, int]:
        assert not isinstance(statement, Query), "a query changes nothing"
        opened = self._open(statement.table)
        match statement:
            case AddColumns():
                opened.add_columns(statement.schema)
            case DropColumns():
                known = [name for name in statement.columns if not statement.if_exists or name in opened.schema.names]
                if known:
                    opened.drop_columns(known)
            case AlterColumn():
                given = {"name": statement.name, "data_type": statement.data_type, "nullable": statement.nullable}
                alteration = {name: value for name, value in given.items() if value is not None}
                opened.alter_columns({"path": statement.column, **alteration})
            case CreateIndex():
                if not (statement.if_not_exists and _has_index(opened, statement.name)):
                    opened.create_scalar_index(statement.column, statement.kind, name=statement.name, replace=False)
            case DropIndex():
                if not statement.if_exists or _has_index(opened, statement.name):
                    opened.drop_index(statement.name)
        opened.checkout_latest()
        return {"version": opened.version}

    def _kept(self, statement: Optimize | Vacuum) -> dict[str, int]:
        opened = self._open(statement.table)
        if isinstance(statement, Vacuum):
            done = opened.cleanup_old_versions(_older_than(statement))
            counts = {"bytes_removed": done.bytes_removed, "old_versions": done.old_versions}
            return counts | {"version": opened.version}
        metrics = opened.optimize.compact_files()
        opened.optimize.optimize_indices()
        names = ("fragments_removed", "fragments_added", "files_removed", "files_added")
        return {name: int(getattr(metrics, name)) for name in names} | {"version": opened.version}


def _older_than(statement: Vacuum) -> timedelta | None:
    return None if statement.hours is None else timedelta(hours=statement.hours)


def _appended_rows(after: LanceDataset, before: int) -> int:
    """How many rows an append brought, from its transaction: other writers may have committed in between.

    The rows are committed, so this must not fail: if that version was cleaned up already, all new rows are counted.
    """
    made = after.read_transaction(after.version)
    if made is None or not isinstance(made.operation, LanceOperation.Append):
        return after.count_rows() - before
    return sum(fragment.physical_rows for fragment in made.operation.fragments)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise InvalidRequest(f"TBLPROPERTIES {name} must be 'true' or 'false', got {text!r}.")
    return text.lower() == "true"


def _named(opened: LanceDataset, name: str) -> str:
    """The column of a table that a name means, in any case."""
    found = [own for own in opened.schema.names if own.lower() == name.lower()]
    if not found:
        names = ", ".join(opened.schema.names)
        raise InvalidRequest(f'Column "{name}" does not exist. The columns are: {names}.')
    return name if name in found else found[0]


def _has_index(opened: LanceDataset, name: str) -> bool:
    return any(index["name"] == name for index in opened.list_indices())


def _exists(path: str) -> bool:
    try:
        dataset(path)
    except TableNotFound:
        return False
    return True
