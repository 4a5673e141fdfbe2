"""Hypothesis strategies for the values of ``tablewright.format``: any sound value, not only those we would write.

The only place that imports Hypothesis. Every value keeps the rules that ``problems_of_...`` checks, so an encoder
takes it; unknown fields are drawn at every level that keeps them.
"""

from tablewright.testing.extra import missing

try:
    import hypothesis as _hypothesis  # noqa: F401
except ModuleNotFoundError as error:
    raise missing(__name__, "hypothesis") from error

from tablewright.testing.strategies.commits import OPERATION_NAMES, operations, transactions
from tablewright.testing.strategies.tables import (
    base_paths,
    bitmaps,
    data_files,
    deletion_files,
    fragments,
    indices,
    manifests,
    row_sets,
    schemas,
    texts,
    unknown_fields,
)

__all__ = [
    "OPERATION_NAMES",
    "base_paths",
    "bitmaps",
    "data_files",
    "deletion_files",
    "fragments",
    "indices",
    "manifests",
    "operations",
    "row_sets",
    "schemas",
    "texts",
    "transactions",
    "unknown_fields",
]
