"""Names of tables in a Spark session: kept in its settings, and as temporary views that plain Spark SQL can read.

``tw.sql`` reads the newest version of a registered table every time. The view is what plain ``spark.sql`` reads: the
version that was the newest when the name was registered, or when ``tw.sql`` last named the table.

Tests: ``tests/spark/test_sql.py``.
"""

from __future__ import annotations

import json
from typing import Any

from tablewright.checks import check_text
from tablewright.dataset import dataset
from tablewright.engine.detect import check_session
from tablewright.errors import InvalidRequest

__all__ = ["register", "registered", "renew"]

_SETTING = "tablewright.tables"


def registered(spark: Any) -> dict[str, str]:
    """The paths of the tables that were registered, by their names in lower case."""
    found: dict[str, str] = {} if spark is None else json.loads(spark.conf.get(_SETTING, "{}"))
    return found


def register(spark: Any, name: str, path: Any) -> None:
    """Give a table a name in a Spark session, for ``tw.sql``; plain Spark SQL reads it as a temporary view.

    The view is renewed by every ``tw.sql`` that names the table.
    """
    check_session(spark)
    if spark is None:
        raise InvalidRequest("A name belongs to a Spark session: give one.")
    known = check_text(name, "the name").lower()
    if not known.isidentifier():
        raise InvalidRequest(f"{name!r} can't be the name of a table: use letters, digits and underscores.")
    opened = dataset(path)
    opened.to_spark(spark).createOrReplaceTempView(known)
    spark.conf.set(_SETTING, json.dumps({**registered(spark), known: str(path)}))


def renew(spark: Any, name: str) -> None:
    """Let the view of a registered table show its newest version."""
    dataset(registered(spark)[name]).to_spark(spark).createOrReplaceTempView(name)
