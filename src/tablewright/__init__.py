"""Tablewright: the write path of the Lance table format in Python; its bulk work runs on Spark.

>>> import tablewright as tw
>>> ds = tw.write_dataset([{"id": 1, "text": "a wright makes things"}], "memory://readme")
>>> ds.to_table(filter="id = 1").to_pydict()
{'id': [1], 'text': ['a wright makes things']}
"""

from tablewright import commit, errors, fragment, optimize, schema, udf
from tablewright._version import __version__
from tablewright.api.commit_builder import CommitBuilder
from tablewright.dataset import (
    DatasetBasePath,
    Index,
    IndexFile,
    LanceDataset,
    LanceOperation,
    LanceScanner,
    Transaction,
    dataset,
    write_dataset,
)
from tablewright.fragment import DataFile, FragmentMetadata, LanceFragment
from tablewright.schema import LanceField, LanceSchema
from tablewright.transaction.affected import AffectedRows
from tablewright.udf import BatchUDF, batch_udf

__all__ = [
    "AffectedRows",
    "BatchUDF",
    "CommitBuilder",
    "DataFile",
    "DatasetBasePath",
    "FragmentMetadata",
    "Index",
    "IndexFile",
    "LanceDataset",
    "LanceField",
    "LanceFragment",
    "LanceOperation",
    "LanceScanner",
    "LanceSchema",
    "Transaction",
    "__version__",
    "batch_udf",
    "commit",
    "dataset",
    "errors",
    "fragment",
    "optimize",
    "schema",
    "udf",
    "write_dataset",
]
