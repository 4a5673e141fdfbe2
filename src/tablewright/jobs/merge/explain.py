"""A merge in words, before any data is known: what it matches, where, and what it writes.

Tests: ``tests/unit/api/test_merge_insert_calls.py``.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tablewright.jobs.table import Table
from tablewright.jobs.workloads import match_work
from tablewright.operations.merge_insert.clauses import Clauses
from tablewright.operations.merge_insert.match.strategy import choose_strategy, scan_bytes
from tablewright.operations.merge_insert.plan import plan_merge
from tablewright.operations.merge_insert.source.evolution import evolved

__all__ = ["additions", "explain_merge"]


def explain_merge(
    table: Table, on: Any, clauses: Clauses, source: pa.Schema, *, schema_evolution: bool, verbose: bool
) -> str:
    """What a merge of rows with the schema ``source`` will do. Nothing is read."""
    snapshot, added = table.snapshot, pa.schema([])
    if schema_evolution:
        snapshot, added = evolved(snapshot, on, source)
    plan = plan_merge(snapshot, clauses, on, source, table.world.clock.now_ns())
    strategy = choose_strategy(snapshot, plan, None)
    size = scan_bytes(plan, strategy.scanned)
    engine, why = table.choose(match_work(plan, strategy.scanned))
    lines = [str(plan), *additions(added), str(strategy), f"  match: engine={engine.name}: {why}"]
    lines.append(f"  write: {plan.clauses.writes}")
    if verbose:
        lines.append(
            f"  match: estimated_bytes={size}, scanned_fragments={len(strategy.scanned)}; updated rows change "
            f"[{', '.join(plan.changed_columns)}]"
        )
    return "\n".join(lines)


def additions(added: pa.Schema) -> list[str]:
    """A line about the columns that a merge adds, if it adds any."""
    return [f"  schema: adds columns [{', '.join(added.names)}] first"] if len(added) else []
