"""``LanceOperation`` and ``Transaction`` as pylance spells them, for people who assemble commits themselves.

They are plain dataclasses; :mod:`tablewright.api.translate` knows their frozen counterparts.

Tests: ``tests/unit/api/test_commit_batch.py``, ``tests/differential/test_commit.py``.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from tablewright.api.metadata import DataFile, FragmentMetadata
from tablewright.api.schema import LanceSchema
from tablewright.format import index as indices
from tablewright.redact import redact

__all__ = ["DatasetBasePath", "Index", "IndexFile", "LanceOperation", "Transaction"]


@dataclass
class DatasetBasePath:
    """Another place that data files of a table may live in."""

    path: str
    name: str | None = None
    is_dataset_root: bool = False
    id: int | None = None

    def __repr__(self) -> str:
        shown = f"path={redact(self.path)!r}, name={self.name!r}, is_dataset_root={self.is_dataset_root}, id={self.id}"
        return f"DatasetBasePath({shown})"


@dataclass
class IndexFile:
    """A file of an index segment, and its size."""

    path: str
    size_bytes: int


@dataclass
class Index:
    """One index segment of a table, as a CreateIndex operation names it."""

    uuid: str
    name: str
    fields: list[int]
    dataset_version: int
    fragment_ids: Iterable[int]
    index_version: int
    created_at: Any = None
    base_id: int | None = None
    files: list[IndexFile] | None = None
    index_details: tuple[str, bytes] | None = None
    covering_fields: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, index: indices.IndexMetadata) -> Index:
        """From the frozen value."""
        details = None if index.details_type_url is None else (index.details_type_url, index.details_value)
        return cls(
            uuid=str(index.uuid),
            name=index.name,
            fields=list(index.fields),
            dataset_version=index.dataset_version,
            fragment_ids=set(index.coverage or ()),
            index_version=index.index_version or 0,
            base_id=index.base_id,
            files=[IndexFile(file.path, file.size_bytes) for file in index.files],
            index_details=details,
        )

    def to_value(self) -> indices.IndexMetadata:
        """The frozen value that goes into a manifest."""
        url, value = self.index_details or (None, b"")
        return indices.IndexMetadata(
            uuid=uuids.UUID(self.uuid),
            fields=tuple(self.fields),
            name=self.name,
            dataset_version=self.dataset_version,
            fragment_bitmap=BitMap(self.fragment_ids).serialize(),
            details_type_url=url,
            details_value=value,
            index_version=self.index_version,
            base_id=self.base_id,
            files=tuple(indices.IndexFile(path=file.path, size_bytes=file.size_bytes) for file in self.files or ()),
        )


class LanceOperation:
    """The kinds of change that a transaction can hold.

    >>> LanceOperation.Restore(version=3)
    LanceOperation.Restore(version=3)
    """

    class BaseOperation:
        """The parent of all operations."""

    @dataclass
    class Append(BaseOperation):
        """Add new fragments; their ids are given at commit."""

        fragments: Iterable[FragmentMetadata]

    @dataclass
    class Overwrite(BaseOperation):
        """Replace schema and rows, or create the table."""

        new_schema: LanceSchema | pa.Schema
        fragments: Iterable[FragmentMetadata]
        initial_bases: list[DatasetBasePath] | None = None

    @dataclass
    class Delete(BaseOperation):
        """Put new deletion files on some fragments and drop others."""

        updated_fragments: Iterable[FragmentMetadata]
        deleted_fragment_ids: Iterable[int]
        predicate: str = ""

    @dataclass
    class Restore(BaseOperation):
        """Make an old version the newest again."""

        version: int

    @dataclass
    class Merge(BaseOperation):
        """Replace all fragments and the schema: columns were added or cast."""

        fragments: Iterable[FragmentMetadata]
        schema: LanceSchema | pa.Schema
        preserves_nullability: bool = False

    @dataclass
    class Project(BaseOperation):
        """Drop, rename or reorder columns."""

        schema: LanceSchema
        preserves_nullability: bool = False

    @dataclass
    class Update(BaseOperation):
        """Change rows: by moving them to new fragments, or by rewriting columns in place."""

        removed_fragment_ids: list[int] = field(default_factory=list)
        updated_fragments: list[FragmentMetadata] = field(default_factory=list)
        new_fragments: list[FragmentMetadata] = field(default_factory=list)
        fields_modified: list[int] = field(default_factory=list)
        fields_for_preserving_frag_bitmap: list[int] = field(default_factory=list)
        update_mode: str = ""
        updated_fragment_offsets: dict[int, bytes] | None = None

    @dataclass
    class RewriteGroup:
        """Old fragments and the new ones that hold the same live rows."""

        old_fragments: Iterable[FragmentMetadata]
        new_fragments: Iterable[FragmentMetadata]

    @dataclass
    class RewrittenIndex:
        """An index whose files were remapped by a rewrite."""

        old_id: str
        new_id: str
        new_details_type_url: str = ""
        new_details_value: bytes = b""
        new_index_version: int = 0

    @dataclass
    class Rewrite(BaseOperation):
        """Compact: the same rows in other fragments."""

        groups: Iterable[LanceOperation.RewriteGroup]
        rewritten_indices: Iterable[LanceOperation.RewrittenIndex] = ()

    @dataclass
    class DataReplacementGroup:
        """One new column file for one fragment."""

        fragment_id: int
        new_file: DataFile

    @dataclass
    class DataReplacement(BaseOperation):
        """Replace whole column files."""

        replacements: list[LanceOperation.DataReplacementGroup]

    @dataclass
    class CreateIndex(BaseOperation):
        """Add, replace or drop indices."""

        new_indices: list[Index]
        removed_indices: list[Index]

    @dataclass
    class UpdateMap:
        """Entries to set (or, with ``None``, to remove) in a map; ``replace`` empties it first."""

        updates: dict[str, str | None]
        replace: bool = False

    @dataclass
    class UpdateConfig(BaseOperation):
        """Change config, table, schema or field metadata."""

        config_updates: LanceOperation.UpdateMap | None = None
        table_metadata_updates: LanceOperation.UpdateMap | None = None
        schema_metadata_updates: LanceOperation.UpdateMap | None = None
        field_metadata_updates: dict[int, LanceOperation.UpdateMap] | None = None

    @dataclass
    class ReserveFragments(BaseOperation):
        """Reserve fragment ids for a coming rewrite."""

        num_fragments: int

    @dataclass
    class Other(BaseOperation):
        """An operation that has no class of its own here: read, never written."""

        name: str
        value: Any


@dataclass
class Transaction:
    """A change and the version that it was made from.

    ``affected_rows`` are the rows that a Delete or Update touches, as ``execute_uncommitted`` found them: with them it
    is rebased row by row when it is committed. ``recheck`` is what a merge asks before it is put on a newer version.
    """

    read_version: int
    operation: LanceOperation.BaseOperation
    uuid: str = field(default_factory=lambda: str(uuids.uuid4()))
    transaction_properties: dict[str, str] | None = field(default_factory=dict)
    affected_rows: Any = field(default=None, repr=False, compare=False)
    recheck: Any = field(default=None, repr=False, compare=False)
