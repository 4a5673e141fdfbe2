"""A ``MERGE INTO`` done by ``merge_insert``: the source's key columns get the table's names, ``*`` means its columns.

Tests: ``tests/spark/test_sql.py``.
"""

from __future__ import annotations

from typing import Any

from tablewright.dataset import LanceDataset
from tablewright.errors import InvalidRequest
from tablewright.operations.merge_insert.ordered import DeleteClause
from tablewright.statements.values import MergeInto

__all__ = ["merged"]

_COUNTS = ("num_updated_rows", "num_deleted_rows", "num_inserted_rows", "version")


def merged(opened: LanceDataset, statement: MergeInto, source: Any) -> dict[str, int]:
    """Merge a DataFrame, and say what was done."""
    frame = _with_keys(source, statement)
    table = {name.lower() for name in opened.schema.names}
    given = {name.lower() for name in frame.columns}
    if statement.takes_all and table - given:
        missing = [name for name in opened.schema.names if name.lower() not in given]
        raise InvalidRequest(
            f"* takes all columns of the table from the source, which has no {', '.join(missing)}: name the columns, "
            "UPDATE SET a = s.a, … and INSERT (a, …) VALUES (s.a, …)."
        )
    used = table | statement.mentions
    frame = frame.select(*(f"`{name}`" for name in frame.columns if name.lower() in used))
    done = _configured(opened, statement).execute(_in_spelling(frame, opened))
    return {name: int(done[name]) for name in _COUNTS}


def _with_keys(source: Any, statement: MergeInto) -> Any:
    """The source with its key columns under the names that the table has for them."""
    given = {name.lower() for name in source.columns}
    for target, own in statement.on:
        if own.lower() not in given:
            raise InvalidRequest(f"The source has no column {own}. Its columns are: {', '.join(source.columns)}.")
        if target.lower() == own.lower():
            continue
        if target.lower() in given:
            raise InvalidRequest(
                f"ON compares {target} of the table with {own} of the source, which has a column {target} of its own: "
                f"rename that one, USING (SELECT {own} AS {target}, … FROM …)."
            )
        source = source.withColumn(target, source[f"`{own}`"])
    return source


def _in_spelling(frame: Any, opened: LanceDataset) -> Any:
    """Columns in the table's spelling, where only upper and lower case differ."""
    known = {name.lower(): name for name in opened.schema.names}
    return frame.toDF(*(known.get(name.lower(), name) for name in frame.columns))


def _configured(opened: LanceDataset, statement: MergeInto) -> Any:
    names = {name.lower(): name for name in opened.schema.names}
    merge = opened.merge_insert([names.get(target.lower(), target) for target, _ in statement.on])
    for clause in statement.matched:
        if isinstance(clause, DeleteClause):
            merge = merge.when_matched_delete(clause.condition)
        elif clause.values is None:
            merge = merge.when_matched_update_all(clause.condition)
        else:
            merge = merge.when_matched_update(dict(clause.values), clause.condition)
    for insert in statement.not_matched:
        if insert.values is None:
            merge = merge.when_not_matched_insert_all(insert.condition)
        else:
            merge = merge.when_not_matched_insert(dict(insert.values), insert.condition)
    for clause in statement.by_source:
        if isinstance(clause, DeleteClause):
            merge = merge.when_not_matched_by_source_delete(clause.condition)
        else:
            merge = merge.when_not_matched_by_source_update(dict(clause.values or ()), clause.condition)
    return merge
