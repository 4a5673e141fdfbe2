"""Re-exports under pylance's module name: the dataset, its operations and ``write_dataset``.

``tablewright.dataset`` the attribute is the function that opens a table; this module is what
``from tablewright.dataset import …`` finds, as in pylance. It is imported with the package, so that a later import does
not put the module into the function's place; its names are imported when they are asked for.

Tests: ``tests/unit/test_imports.py``.
"""

from typing import TYPE_CHECKING

from tablewright.lazy import late_names

if TYPE_CHECKING:
    from tablewright.api.changes_feed import Changes
    from tablewright.api.dataset import LanceDataset, dataset, write_dataset
    from tablewright.api.delta import DatasetDelta
    from tablewright.api.merge_insert import MergeInsertBuilder
    from tablewright.api.operation import DatasetBasePath, Index, IndexFile, LanceOperation, Transaction
    from tablewright.api.refs import Branches, Tags
    from tablewright.api.scanner import ColumnOrdering, LanceScanner
    from tablewright.api.sql import SqlQuery, SqlQueryBuilder
    from tablewright.operations.write import COMMIT_MESSAGE_KEY as LANCE_COMMIT_MESSAGE_KEY
else:
    __getattr__, __dir__ = late_names(
        globals(),
        {
            "LANCE_COMMIT_MESSAGE_KEY": "tablewright.operations.write:COMMIT_MESSAGE_KEY",
            "Branches": "tablewright.api.refs:Branches",
            "Changes": "tablewright.api.changes_feed:Changes",
            "ColumnOrdering": "tablewright.api.scanner:ColumnOrdering",
            "DatasetBasePath": "tablewright.api.operation:DatasetBasePath",
            "DatasetDelta": "tablewright.api.delta:DatasetDelta",
            "Index": "tablewright.api.operation:Index",
            "IndexFile": "tablewright.api.operation:IndexFile",
            "LanceDataset": "tablewright.api.dataset:LanceDataset",
            "LanceOperation": "tablewright.api.operation:LanceOperation",
            "LanceScanner": "tablewright.api.scanner:LanceScanner",
            "MergeInsertBuilder": "tablewright.api.merge_insert:MergeInsertBuilder",
            "SqlQuery": "tablewright.api.sql:SqlQuery",
            "SqlQueryBuilder": "tablewright.api.sql:SqlQueryBuilder",
            "Tags": "tablewright.api.refs:Tags",
            "Transaction": "tablewright.api.operation:Transaction",
            "dataset": "tablewright.api.dataset:dataset",
            "write_dataset": "tablewright.api.dataset:write_dataset",
        },
    )

__all__ = [
    "LANCE_COMMIT_MESSAGE_KEY",
    "Branches",
    "Changes",
    "ColumnOrdering",
    "DatasetBasePath",
    "DatasetDelta",
    "Index",
    "IndexFile",
    "LanceDataset",
    "LanceOperation",
    "LanceScanner",
    "MergeInsertBuilder",
    "SqlQuery",
    "SqlQueryBuilder",
    "Tags",
    "Transaction",
    "dataset",
    "write_dataset",
]
