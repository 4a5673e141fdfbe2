"""Plans of merges into tables that are values alone."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from tests.unit.operations.tables import COLUMNS, fragment, snapshot

from tablewright.operations.merge_insert.clauses import Clauses
from tablewright.operations.merge_insert.plan import MergePlan, plan_merge
from tablewright.snapshot.snapshot import Snapshot

TABLE = snapshot(fragment(0, 100), fragment(1, 100), fragment(4, 50))


def planned(
    on: Any = "id", *, table: Snapshot = TABLE, source: pa.Schema = COLUMNS, upsert: bool = True, **clauses: Any
) -> MergePlan:
    """The plan of an upsert, or of other clauses."""
    given = {"when_matched": "update", "insert": True} | clauses if upsert else clauses
    return plan_merge(table, Clauses(**given), on, source, now_ns=0)


def columns(*names: str) -> pa.Schema:
    """Some of the table's columns."""
    return pa.schema([COLUMNS.field(name) for name in names])
