"""Datasets, which read files lazily."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pyarrow._arrays import _Indices
from pyarrow._tables import RecordBatch, RecordBatchReader, Table
from pyarrow._types import Schema
from pyarrow.compute import Expression as Expression
from pyarrow.compute import field as field
from pyarrow.compute import scalar as scalar
from pyarrow.fs import FileSystem

class FileFormat:
    def make_fragment(
        self,
        file: str,
        filesystem: FileSystem | None = None,
        partition_expression: Expression | None = None,
        *,
        file_size: int | None = None,
    ) -> FileFragment: ...

class IpcFileFormat(FileFormat):
    def __init__(self) -> None: ...

class ParquetFileFormat(FileFormat):
    def __init__(self, read_options: Any = None, default_fragment_scan_options: Any = None, **kwargs: Any) -> None: ...

class Fragment: ...

class FileFragment(Fragment):
    @property
    def path(self) -> str: ...

class Dataset:
    @property
    def schema(self) -> Schema: ...
    # What subclasses answer with only passes for a Fragment or a Scanner, and filters may be SQL.
    def get_fragments(self, filter: Expression | None = None) -> Iterable[Any]: ...
    def scanner(self, columns: Any = None, filter: Any = None, **kwargs: Any) -> Any: ...
    def to_batches(self, columns: Any = None, filter: Any = None, **kwargs: Any) -> Iterable[RecordBatch]: ...
    def to_table(self, columns: Any = None, filter: Any = None, **kwargs: Any) -> Table: ...

class UnionDataset(Dataset):
    def __init__(self, schema: Schema, children: Sequence[Dataset]) -> None: ...
    @property
    def children(self) -> list[Dataset]: ...

class FileSystemDataset(Dataset):
    def __init__(
        self,
        fragments: Sequence[Fragment],
        schema: Schema,
        format: FileFormat,
        filesystem: FileSystem | None = None,
        root_partition: Expression | None = None,
    ) -> None: ...
    @classmethod
    def from_paths(
        cls,
        paths: Sequence[str],
        schema: Schema | None = None,
        format: FileFormat | None = None,
        filesystem: FileSystem | None = None,
        partitions: Sequence[Expression] | None = None,
        root_partition: Expression | None = None,
    ) -> FileSystemDataset: ...
    def get_fragments(self, filter: Expression | None = None) -> Iterator[FileFragment]: ...

class TaggedRecordBatch(NamedTuple):
    record_batch: RecordBatch
    fragment: Fragment

class Scanner:
    @staticmethod
    def from_dataset(
        dataset: Dataset, *, columns: Any = None, filter: Expression | None = None, **kwargs: Any
    ) -> Scanner: ...
    @property
    def projected_schema(self) -> Schema: ...
    def count_rows(self) -> int: ...
    def head(self, num_rows: int) -> Table: ...
    def take(self, indices: _Indices) -> Table: ...
    def to_batches(self) -> Iterator[RecordBatch]: ...
    def to_reader(self) -> RecordBatchReader: ...
    def to_table(self) -> Table: ...

def dataset(
    source: Any, schema: Schema | None = None, format: FileFormat | str | None = None, **kwargs: Any
) -> Dataset: ...
