"""``dataset.merge_insert(on)``: a builder with pylance's names for a job of :mod:`tablewright.jobs.merge`.

Tests: ``tests/unit/api/test_merge_insert.py``, ``tests/unit/api/test_merge_insert_calls.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa

from tablewright.api.auto_cleanup import commits
from tablewright.api.merge_source import incoming
from tablewright.api.operation import Transaction
from tablewright.api.pinned import Pinned, run_on, table_of
from tablewright.api.prepared import retry_options
from tablewright.api.translate import from_transaction
from tablewright.api.when_clauses import WhenClauses
from tablewright.api.write import properties_of
from tablewright.checks import check_flag, check_text, whole_number
from tablewright.engine.choose import wants_spark
from tablewright.errors import WrongType
from tablewright.jobs.attempt import Done, make
from tablewright.jobs.merge.explain import additions, explain_merge
from tablewright.jobs.merge.job import Merged, MergeJob
from tablewright.jobs.report import Report
from tablewright.operations.merge_insert.clauses import Clauses, InvalidMerge, check_condition, check_dedupe, check_mode
from tablewright.operations.merge_insert.keys.key_columns import find_key
from tablewright.operations.merge_insert.match.condition import compile_table_condition
from tablewright.operations.merge_insert.ordered import DeleteClause, InsertClause, UpdateClause, check_values
from tablewright.operations.write import asked_file_version
from tablewright.transaction.isolation import check_isolation

__all__ = ["MergeInsertBuilder"]


class MergeInsertBuilder:
    """A merge to be configured and run. Rows of the source and of the table match where their keys are equal.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset({"id": [1, 2, 3], "text": ["a", "b", "c"]}, "memory://merge-insert-builder")
    >>> upsert = MergeInsertBuilder(ds, "id").when_matched_update_all().when_not_matched_insert_all()
    >>> result = upsert.execute({"id": [2, 4], "text": ["B", "D"]})
    >>> result["num_updated_rows"], result["num_inserted_rows"]
    (1, 1)
    >>> ds.to_table(order_by=["id"]).to_pydict()
    {'id': [1, 2, 3, 4], 'text': ['a', 'B', 'c', 'D']}
    """

    def __init__(
        self, dataset: Pinned, on: Any = None, *, dedupe: str | None = None, schema_evolution: bool = False
    ) -> None:
        self._on = list(on) if isinstance(on, Iterable) and not isinstance(on, str) else on
        find_key(table_of(dataset).snapshot.schema, self._on)  # what is wrong with it is said at once
        self._dataset = dataset
        self._clauses: dict[str, Any] = {}
        self._when = WhenClauses()
        self._conflict_retries, self._retry_timeout = 10, timedelta(seconds=30)
        self._schema_evolution, self._isolation = False, "snapshot"
        self._properties: dict[str, str] = {}
        self.dedupe(dedupe).schema_evolution(schema_evolution)

    # ------------------------------------------------------------------------------------------------------- clauses
    def when_matched_update_all(self, condition: str | None = None) -> MergeInsertBuilder:
        """Rows that match get the source's values; with a condition over ``source.`` and ``target.``, some of them.

        A row that matches and does not satisfy the condition is left to the next clause, or stays as it is.
        """
        text = check_condition(condition, "the condition of when_matched_update_all")
        self._when.matched_as_pylance("update", UpdateClause(condition=text))
        return self

    def when_matched_update(self, values: Mapping[str, str], condition: str | None = None) -> MergeInsertBuilder:
        """Rows that match get the values of SQL expressions, over ``source.`` and ``target.`` as they were.

        Clauses on matched rows are tried in order: the first whose condition is true takes the row.

        >>> import tablewright as tw
        >>> ds = tw.write_dataset({"id": [1, 2, 3], "n": [10, 20, 30]}, "memory://when-matched-update")
        >>> merge = ds.merge_insert("id").when_matched_delete("source.n is null")
        >>> merge = merge.when_matched_update({"n": "source.n + target.n"})
        >>> result = merge.execute({"id": [1, 2], "n": [5, None]})
        >>> ds.to_table(order_by=["id"]).to_pydict()
        {'id': [1, 3], 'n': [15, 30]}
        """
        given = check_values(values, "when_matched_update")
        text = check_condition(condition, "the condition of when_matched_update")
        self._when.matched(UpdateClause(given, text))
        return self

    def when_matched_delete(self, condition: str | None = None) -> MergeInsertBuilder:
        """Rows that match are deleted, or those that satisfy the condition; the source needs its key columns only."""
        text = check_condition(condition, "the condition of when_matched_delete")
        if text is None:
            self._when.matched_as_pylance("delete", DeleteClause())
        else:
            self._when.matched(DeleteClause(text))
        return self

    def when_matched_fail(self) -> MergeInsertBuilder:
        """A row that matches is an error, and nothing changes."""
        self._when.matched_as_pylance("fail", None)
        return self

    def when_not_matched_insert_all(self, condition: str | None = None) -> MergeInsertBuilder:
        """Source rows that match nothing become new rows; with a condition over ``source.``, some of them."""
        text = check_condition(condition, "the condition of when_not_matched_insert_all")
        self._when.insert(InsertClause(condition=text))
        return self

    def when_not_matched_insert(self, values: Mapping[str, str], condition: str | None = None) -> MergeInsertBuilder:
        """Source rows that match nothing become new rows with the values of SQL expressions over ``source.``.

        Columns that get no value are null. The first clause whose condition is true takes the row.
        """
        given = check_values(values, "when_not_matched_insert")
        self._when.insert(InsertClause(given, check_condition(condition, "the condition of when_not_matched_insert")))
        return self

    def when_not_matched_by_source_update(
        self, values: Mapping[str, str], condition: str | None = None
    ) -> MergeInsertBuilder:
        """Rows of the table that no source row matches get the values of SQL expressions over ``target.``."""
        given = check_values(values, "when_not_matched_by_source_update")
        text = check_condition(condition, "the condition of when_not_matched_by_source_update")
        self._when.by_source(UpdateClause(given, text))
        return self

    def when_not_matched_by_source_delete(self, expr: str | None = None) -> MergeInsertBuilder:
        """Rows of the table that no source row matches are deleted; with a filter, some of them."""
        text = check_condition(expr, "the condition of when_not_matched_by_source_delete")
        if text is not None:
            compile_table_condition(text, table_of(self._dataset).snapshot.schema)
        self._when.delete_by_source(DeleteClause(text))
        return self

    # ------------------------------------------------------------------------------------------------------ settings
    def conflict_retries(self, max_retries: int) -> MergeInsertBuilder:
        """How often it runs again when another writer came first."""
        self._conflict_retries = whole_number(max_retries, "conflict_retries")
        return self

    def retry_timeout(self, timeout: timedelta) -> MergeInsertBuilder:
        """For how long it runs again when other writers come first."""
        retry_options(0, timeout)
        self._retry_timeout = timeout
        return self

    def isolation(self, level: str) -> MergeInsertBuilder:
        """``"snapshot"`` or ``"serializable"``: then it runs again on every newer version of the rows.

        By default it runs again only if rows with its keys came, changed or went.
        """
        self._isolation = check_isolation(level)
        return self

    def use_index(self, use_index: bool) -> MergeInsertBuilder:
        """Whether a BTREE on the key may be used; it may, unless that is forbidden."""
        check_flag(use_index, "use_index")
        return self._with(use_index=use_index is None or bool(use_index))

    def write_mode(self, mode: str) -> MergeInsertBuilder:
        """Whether updated rows move (``"rewrite_rows"``), columns change in place (``"rewrite_columns"``), or either.

        ``"auto"`` decides for each fragment by the bytes that have to be written.
        """
        return self._with(write_mode=check_mode(mode))

    def data_storage_version(self, version: str) -> MergeInsertBuilder:
        """The version of the new data files; the table's own by default."""
        check_text(version, "data_storage_version")
        asked_file_version(version)  # an unknown one raises
        return self._with(data_storage_version=version)

    def dedupe(self, keep: str | None) -> MergeInsertBuilder:
        """Which of several source rows with one key counts, ``"first"`` or ``"last"``; ``None``: it is an error."""
        return self._with(dedupe=check_dedupe(keep))

    def schema_evolution(self, enabled: bool = True) -> MergeInsertBuilder:
        """Whether columns of the source that the table does not have are added to it first."""
        check_flag(enabled, "schema_evolution")
        self._schema_evolution = bool(enabled)
        return self

    def transaction_properties(self, properties: Mapping[str, str]) -> MergeInsertBuilder:
        """Texts by name that the transaction carries."""
        self._properties = properties_of(None, properties)
        return self

    def _with(self, **changes: Any) -> MergeInsertBuilder:
        self._clauses |= changes
        return self

    # --------------------------------------------------------------------------------------------------------- running
    @commits
    def execute(
        self, data_obj: Any, *, schema: pa.Schema | None = None, skip_auto_cleanup: bool = False
    ) -> dict[str, int]:
        """Merge the data, and move the dataset to the new version; returns what it did, in numbers.

        ``schema`` is what data are cast to, or what an iterator can't tell.
        """
        report = Report()
        return run_on(self._dataset, self._job(data_obj, schema, report), report)

    def execute_uncommitted(
        self, data_obj: Any, *, schema: pa.Schema | None = None
    ) -> tuple[Transaction, dict[str, int]]:
        """Merge the data, and leave the commit to ``CommitBuilder(dataset).execute(transaction)``."""
        job, merged = self._made(data_obj, schema, Report())
        if len(merged.added):
            merged.files.remove()
            raise InvalidMerge(
                f"The columns {', '.join(merged.added.names)} have to be added by a commit of their own: call "
                "add_columns first, or execute."
            )
        transaction = from_transaction(merged.transaction)
        transaction.affected_rows, transaction.recheck = merged.affected, merged.recheck
        return transaction, job.result(merged, None)

    def explain_plan(self, schema: pa.Schema | None = None, verbose: bool = False) -> str:
        """What a merge of data with this schema (the table's own by default) will do, and where. Nothing is read."""
        table = table_of(self._dataset)
        given = table.snapshot.schema.to_arrow() if schema is None else _arrow_schema(schema)
        clauses, evolves = self._made_clauses(), self._schema_evolution
        return explain_merge(table, self._on, clauses, given, schema_evolution=evolves, verbose=verbose)

    def analyze_plan(self, data_obj: Any, *, schema: pa.Schema | None = None) -> str:
        """Merge the data without committing it, and say what was done. No file stays behind."""
        report = Report()
        job, merged = self._made(data_obj, schema, report)
        merged.files.remove()
        return "\n".join([str(merged.plan), *additions(merged.added), *report.lines(job.result(merged, None))])

    def _made(self, data: Any, schema: pa.Schema | None, report: Report) -> tuple[MergeJob, Merged]:
        """What a merge of the data writes, without a commit."""
        job = self._job(data, schema, report)
        merged = make(job, table_of(self._dataset), report)
        assert not isinstance(merged, Done), "a merge always has something to commit"
        return job, merged

    def _made_clauses(self) -> Clauses:
        clauses = Clauses(**self._when.given(), **self._clauses)
        if clauses.ordered is not None and self._schema_evolution:
            raise InvalidMerge(
                "Invalid user input: schema_evolution works with when_matched_update_all and "
                "when_not_matched_insert_all alone: add the columns with add_columns first."
            )
        return clauses

    def _job(self, data: Any, schema: pa.Schema | None, report: Report) -> MergeJob:
        table = table_of(self._dataset)
        return MergeJob(
            table,
            self._on,
            self._made_clauses(),
            incoming(data, schema, table.snapshot.schema.to_arrow(), collects=not wants_spark(table.engine)),
            report,
            retries=retry_options(self._conflict_retries, self._retry_timeout),
            schema_evolution=self._schema_evolution,
            isolation=self._isolation,
            properties=self._properties,
        )


def _arrow_schema(given: Any) -> pa.Schema:
    schema = given.to_pyarrow() if hasattr(given, "to_pyarrow") else given
    if not isinstance(schema, pa.Schema):
        raise WrongType(f"schema must be a pyarrow.Schema, got {given!r} of type {type(given).__name__}.")
    return schema
