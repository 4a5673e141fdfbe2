"""Re-exports under pylance's module name: fragments, their metadata and ``write_fragments``."""

from tablewright.api.fragment import FragmentSession, LanceFragment, write_fragments
from tablewright.api.metadata import DataFile, DeletionFile, FragmentMetadata, RowDatasetVersionMeta, RowIdMeta

__all__ = [
    "DataFile",
    "DeletionFile",
    "FragmentMetadata",
    "FragmentSession",
    "LanceFragment",
    "RowDatasetVersionMeta",
    "RowIdMeta",
    "write_fragments",
]
