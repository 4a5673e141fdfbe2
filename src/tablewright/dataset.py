"""Re-exports under pylance's module name: the dataset, its operations and ``write_dataset``.

``tablewright.dataset`` the attribute is the function that opens a table; this module is what
``from tablewright.dataset import …`` finds, as in pylance.
"""

from tablewright.api.changes_feed import Changes
from tablewright.api.dataset import LanceDataset, dataset, write_dataset
from tablewright.api.delta import DatasetDelta
from tablewright.api.merge_insert import MergeInsertBuilder
from tablewright.api.operation import DatasetBasePath, Index, IndexFile, LanceOperation, Transaction
from tablewright.api.refs import Branches, Tags
from tablewright.api.scanner import ColumnOrdering, LanceScanner
from tablewright.api.sql import SqlQuery, SqlQueryBuilder
from tablewright.operations.write import COMMIT_MESSAGE_KEY as LANCE_COMMIT_MESSAGE_KEY

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
