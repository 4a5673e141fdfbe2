"""Results of statements as DataFrames, and DataFrames of queries over our tables. Without a session, Arrow tables.

Tests: ``tests/spark/test_sql.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from tablewright.errors import InvalidRequest
from tablewright.statements.values import Query

__all__ = ["computed", "in_columns", "result"]

_DDL = {pa.int64(): "bigint", pa.string(): "string", pa.bool_(): "boolean", pa.timestamp("us", "UTC"): "timestamp"}


def result(spark: Any, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> Any:
    """Rows that say what a statement did, or found."""
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    table = pa.Table.from_arrays(columns, schema=schema)
    if spark is None:
        return table
    ddl = ", ".join(f"`{field.name}` {_ddl(field.type)}" for field in schema)
    return spark.createDataFrame([tuple(row.values()) for row in table.to_pylist()], ddl)


def _ddl(kind: pa.DataType) -> str:
    return f"array<{_ddl(kind.value_type)}>" if at.is_list(kind) else _DDL[kind]


def computed(spark: Any, query: Query, frames: Sequence[Any]) -> Any:
    """The DataFrame of a query; ``frames`` take the places of its tables, in their order."""
    if spark is None:
        raise InvalidRequest("A query is computed by Spark: give a session, tw.sql(spark, …).")
    if not frames:
        return spark.sql("".join(str(part) for part in query.parts))
    waiting = iter(range(len(frames)))
    text = "".join(
        part.replace("{", "{{").replace("}", "}}") if isinstance(part, str) else f"{{table{next(waiting)}}}"
        for part in query.parts
    )
    return spark.sql(text, **{f"table{number}": frame for number, frame in enumerate(frames)})


def in_columns(frame: Any, names: Sequence[str], by_name: bool, what: str) -> Any:
    """A DataFrame with its columns under other names, by their order, or in another order, by their names."""
    given = list(frame.columns)
    if not by_name:
        if len(given) != len(names):
            listed = ", ".join(names)
            raise InvalidRequest(f"{what} takes {len(names)} columns ({listed}), and the query has {len(given)}.")
        return frame.toDF(*names)
    known = {name.lower(): name for name in names}
    unknown = [name for name in given if name.lower() not in known]
    if unknown:
        raise InvalidRequest(f"{what} has no column {', '.join(unknown)}. Its columns are: {', '.join(names)}.")
    return frame.toDF(*(known[name.lower()] for name in given))
