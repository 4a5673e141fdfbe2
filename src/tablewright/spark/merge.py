"""A merge in delta-spark's words: clauses are collected, and ``execute`` runs them as one merge insert.

Tests: tests/unit/spark/test_table.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tablewright.api.dataset import LanceDataset
from tablewright.engine.detect import is_spark_frame
from tablewright.errors import InvalidRequest
from tablewright.spark.merge_condition import SOURCE, TARGET, parse_condition, renamed

__all__ = ["SparkMergeBuilder", "sql_text", "sql_values"]


class SparkMergeBuilder:
    """A merge to be configured and executed. Conditions and values are SQL text over both sides, by their names.

    Clauses of a kind are tried in the order in which they are given; the first whose condition is true takes the row.
    """

    def __init__(self, dataset: LanceDataset, source: Any, condition: str, target: str = TARGET) -> None:
        keys = parse_condition(condition, target)
        self._source = _with_keys(source, keys.columns)
        self._names = {target: TARGET, keys.source: SOURCE}
        self._merge = dataset.merge_insert([own for own, _ in keys.columns])

    def whenMatchedUpdate(
        self, condition: str | None = None, set: Mapping[str, str] | None = None
    ) -> SparkMergeBuilder:
        """Rows that match get the values of ``set``, by column."""
        self._merge.when_matched_update(self._values(set, "set"), self._condition(condition))
        return self

    def whenMatchedUpdateAll(self, condition: str | None = None) -> SparkMergeBuilder:
        """Rows that match get the source's values."""
        self._merge.when_matched_update_all(self._condition(condition))
        return self

    def whenMatchedDelete(self, condition: str | None = None) -> SparkMergeBuilder:
        """Rows that match are deleted."""
        self._merge.when_matched_delete(self._condition(condition))
        return self

    def whenNotMatchedInsert(
        self, condition: str | None = None, values: Mapping[str, str] | None = None
    ) -> SparkMergeBuilder:
        """Source rows that match nothing become rows with these values; other columns are null."""
        self._merge.when_not_matched_insert(self._values(values, "values"), self._condition(condition))
        return self

    def whenNotMatchedInsertAll(self, condition: str | None = None) -> SparkMergeBuilder:
        """Source rows that match nothing become rows."""
        self._merge.when_not_matched_insert_all(self._condition(condition))
        return self

    def whenNotMatchedBySourceUpdate(
        self, condition: str | None = None, set: Mapping[str, str] | None = None
    ) -> SparkMergeBuilder:
        """Rows of the table that no source row matches get the values of ``set``."""
        self._merge.when_not_matched_by_source_update(self._values(set, "set"), self._condition(condition))
        return self

    def whenNotMatchedBySourceDelete(self, condition: str | None = None) -> SparkMergeBuilder:
        """Rows of the table that no source row matches are deleted."""
        self._merge.when_not_matched_by_source_delete(self._condition(condition))
        return self

    def execute(self) -> dict[str, int]:
        """Run the merge, as one version; returns what it did, in numbers."""
        return self._merge.execute(self._source)

    def _condition(self, text: str | None) -> str | None:
        return None if text is None else renamed(sql_text(text, "condition"), self._names)

    def _values(self, values: Mapping[str, str] | None, what: str) -> dict[str, str]:
        named = sql_values(values, what)
        return {self._column(name): renamed(text, self._names) for name, text in named.items()}

    def _column(self, name: str) -> str:
        """A column of the table, with or without the table's name before it."""
        side, dot, column = name.partition(".")
        return column if dot and self._names.get(side) == TARGET else name


def _with_keys(source: Any, columns: tuple[tuple[str, str], ...]) -> Any:
    """The source with its key columns under the table's names."""
    other = {theirs: own for own, theirs in columns if own != theirs}
    if not other:
        return source
    if not is_spark_frame(source):
        raise InvalidRequest(f"The key columns {sorted(other)} have other names in the table: rename them first.")
    return source.withColumnsRenamed(other)


def sql_text(value: Any, what: str) -> str:
    """SQL text; a Column of Spark is refused, since expressions run in the tasks that change the table."""
    if isinstance(value, str):
        return value
    raise InvalidRequest(f"{what} must be SQL text, got {value!r} of type {type(value).__name__}.")


def sql_values(values: Mapping[str, str] | None, what: str) -> dict[str, str]:
    """SQL text by column."""
    if not isinstance(values, Mapping) or not values:
        raise InvalidRequest(f"{what} must be a dict of columns and SQL text, got {values!r}.")
    return {name: sql_text(value, f"{what}[{name!r}]") for name, value in values.items()}
