"""The transaction of a merge (:mod:`tablewright.operations.rewrite.finish`), whatever its clauses were.

A key column does not change where rows match, so it is not among the changed fields.

Tests: ``tests/unit/operations/rewrite/test_finish.py``, ``tests/differential/test_merge_insert.py``.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from tablewright.format.transaction import Transaction
from tablewright.operations.merge_insert.plan import MergePlan
from tablewright.operations.rewrite.finish import Rewritten, finish_rewrite
from tablewright.transaction.affected import AffectedRows

__all__ = ["finish_merge"]


def finish_merge(plan: MergePlan, results: Sequence[Rewritten], uuid: uuid.UUID) -> tuple[Transaction, AffectedRows]:
    """The transaction, and the rows that it moves, changes or deletes."""
    return finish_rewrite(
        results,
        fragments=plan.fragments,
        version=plan.version,
        patched_ids=plan.changed_ids,
        moved_ids=plan.changed_ids,
        reads=plan.reads,
        uuid=uuid,
    )
