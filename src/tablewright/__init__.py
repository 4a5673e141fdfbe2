"""Tablewright: the write path of the Lance table format in Python; its bulk work runs on Spark.

>>> import tablewright as tw
>>> ds = tw.write_dataset([{"id": 1, "text": "a wright makes things"}], "memory://readme")
>>> ds.to_table(filter="id = 1").to_pydict()
{'id': [1], 'text': ['a wright makes things']}
"""

from typing import TYPE_CHECKING

from tablewright._version import __version__
from tablewright.lazy import late_names

if TYPE_CHECKING:
    from tablewright import commit, errors, fragment, optimize, schema, udf
    from tablewright.api.commit_builder import CommitBuilder
    from tablewright.api.config import cache_stats, config
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
    from tablewright.spark.table import table
    from tablewright.spark.upsert import stream_upsert
    from tablewright.statements.names import register
    from tablewright.statements.run import sql
    from tablewright.transaction.affected import AffectedRows
    from tablewright.udf import BatchUDF, batch_udf
else:
    # The submodule has the name of a function. A module that is loaded already is not put in the function's place.
    import tablewright.dataset  # noqa: F401

    del dataset
    __getattr__, __dir__ = late_names(
        globals(),
        {
            "AffectedRows": "tablewright.transaction.affected:AffectedRows",
            "BatchUDF": "tablewright.udf:BatchUDF",
            "CommitBuilder": "tablewright.api.commit_builder:CommitBuilder",
            "DataFile": "tablewright.fragment:DataFile",
            "DatasetBasePath": "tablewright.dataset:DatasetBasePath",
            "FragmentMetadata": "tablewright.fragment:FragmentMetadata",
            "Index": "tablewright.dataset:Index",
            "IndexFile": "tablewright.dataset:IndexFile",
            "LanceDataset": "tablewright.dataset:LanceDataset",
            "LanceField": "tablewright.schema:LanceField",
            "LanceFragment": "tablewright.fragment:LanceFragment",
            "LanceOperation": "tablewright.dataset:LanceOperation",
            "LanceScanner": "tablewright.dataset:LanceScanner",
            "LanceSchema": "tablewright.schema:LanceSchema",
            "Transaction": "tablewright.dataset:Transaction",
            "batch_udf": "tablewright.udf:batch_udf",
            "cache_stats": "tablewright.api.config:cache_stats",
            "commit": "tablewright.commit",
            "config": "tablewright.api.config:config",
            "dataset": "tablewright.dataset:dataset",
            "errors": "tablewright.errors",
            "fragment": "tablewright.fragment",
            "optimize": "tablewright.optimize",
            "register": "tablewright.statements.names:register",
            "schema": "tablewright.schema",
            "sql": "tablewright.statements.run:sql",
            "stream_upsert": "tablewright.spark.upsert:stream_upsert",
            "table": "tablewright.spark.table:table",
            "udf": "tablewright.udf",
            "write_dataset": "tablewright.dataset:write_dataset",
        },
    )

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
    "cache_stats",
    "commit",
    "config",
    "dataset",
    "errors",
    "fragment",
    "optimize",
    "register",
    "schema",
    "sql",
    "stream_upsert",
    "table",
    "udf",
    "write_dataset",
]
