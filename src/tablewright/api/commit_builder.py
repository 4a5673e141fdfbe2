"""``CommitBuilder``: commits what ``execute_uncommitted`` of a change returned.

Tests: ``tests/unit/api/test_changes.py``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tablewright.api.dataset import LanceDataset
from tablewright.api.operation import Transaction

__all__ = ["CommitBuilder"]


class CommitBuilder:
    """Commit a transaction that an operation's ``execute_uncommitted`` returned.

    >>> import tablewright as tw
    >>> ds = tw.write_dataset([{"id": 1}], "memory://commit-builder-example")
    >>> again = tw.Transaction(ds.version, tw.LanceOperation.Restore(1))
    >>> CommitBuilder(ds).execute(again).version
    2
    """

    def __init__(self, dataset: LanceDataset | str | Path, *, max_retries: int = 20, affected_rows: Any = None) -> None:
        self._dataset, self._max_retries, self._affected_rows = dataset, max_retries, affected_rows

    def execute(self, transaction: Transaction) -> LanceDataset:
        """Commit it and return the new version."""
        return LanceDataset.commit(
            self._dataset, transaction, max_retries=self._max_retries, affected_rows=self._affected_rows
        )
