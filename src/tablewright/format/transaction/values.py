"""Transactions and their kinds of operation, as frozen values.

A transaction says what one commit did to the version it read. Other writers decide conflicts by it alone, so it has to
be complete. Fragments that have no id yet carry id 0. Every kind is here, also those that we only have to recognise;
a kind that a newer release invented becomes an :class:`UnknownOperation`.

Format: ``docs/format/transactions.md#messages``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar, TypeAlias
from uuid import UUID

from tablewright.format.fragment import DataFile, Fragment, FragmentList
from tablewright.format.index import IndexFile, IndexMetadata
from tablewright.format.manifest import BasePath
from tablewright.format.row_set import RowSet
from tablewright.format.schema import Schema

__all__ = [
    "Append",
    "BloomFilter",
    "Clone",
    "CreateIndex",
    "DataOverlay",
    "DataReplacement",
    "DataReplacementGroup",
    "Delete",
    "KeyExistenceFilter",
    "MapUpdate",
    "Merge",
    "Operation",
    "Overwrite",
    "Project",
    "ReserveFragments",
    "Restore",
    "Rewrite",
    "RewriteGroup",
    "RewrittenIndex",
    "Transaction",
    "UnknownOperation",
    "Update",
    "UpdateBases",
    "UpdateConfig",
    "UpdateMemWalState",
    "UpdateMode",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """New rows, in new fragments."""

    name: ClassVar[str] = "Append"
    fragments: tuple[Fragment, ...]
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    """Rows gone: fragments with a new deletion file, and fragments that are gone as a whole."""

    name: ClassVar[str] = "Delete"
    updated_fragments: tuple[Fragment, ...] = ()
    deleted_fragment_ids: tuple[int, ...] = ()
    predicate: str = ""
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Overwrite:
    """A new schema and new rows instead of all old ones; with read version 0, the making of the table."""

    name: ClassVar[str] = "Overwrite"
    fragments: tuple[Fragment, ...]
    schema: Schema
    config_upsert_values: Mapping[str, str] = field(default_factory=dict)
    initial_bases: tuple[BasePath, ...] = ()
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateIndex:
    """Indices come and go; a drop has no new ones, an optimisation has both."""

    name: ClassVar[str] = "CreateIndex"
    new_indices: tuple[IndexMetadata, ...] = ()
    removed_indices: tuple[IndexMetadata, ...] = ()
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewriteGroup:
    """Fragments whose live rows moved, in order, into other fragments."""

    old_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenIndex:
    """An index that was written again because the addresses of its rows changed."""

    old_id: UUID
    new_id: UUID
    details_type_url: str | None = None
    details_value: bytes = b""
    new_index_version: int = 0
    new_index_files: tuple[IndexFile, ...] = ()
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """The same rows in other fragments (compaction).

    ``defers_remap``: indices stay as they are, and the new version records which fragments became which. The bytes of
    the transaction do not say so; the manifest does.
    """

    name: ClassVar[str] = "Rewrite"
    groups: tuple[RewriteGroup, ...]
    rewritten_indices: tuple[RewrittenIndex, ...] = ()
    defers_remap: bool = False
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """New columns, or columns of another type: all fragments, and the new schema.

    Where all of very many fragments change, they may be given as the :class:`FragmentList` of a manifest.
    """

    name: ClassVar[str] = "Merge"
    fragments: tuple[Fragment, ...] | FragmentList
    schema: Schema
    preserves_nullability: bool = False
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A schema with fewer columns, other names or another nullability; no data change."""

    name: ClassVar[str] = "Project"
    schema: Schema
    preserves_nullability: bool = False
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restore:
    """An old version becomes the newest."""

    name: ClassVar[str] = "Restore"
    version: int
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveFragments:
    """Fragment ids put aside for a rewrite to come."""

    name: ClassVar[str] = "ReserveFragments"
    num_fragments: int
    unknown: bytes = b""


class UpdateMode(IntEnum):
    """Whether an update wrote whole rows elsewhere, or columns beside the old ones."""

    REWRITE_ROWS = 0
    REWRITE_COLUMNS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BloomFilter:
    """A split-block bloom filter over key hashes."""

    bitmap: bytes
    num_bits: int
    number_of_items: int
    probability: float
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyExistenceFilter:
    """Which primary keys an upsert wrote: exact hashes, or a bloom filter, or neither if of a kind we do not know."""

    field_ids: tuple[int, ...]
    exact: tuple[int, ...] | None = None
    bloom: BloomFilter | None = None
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """Rows changed, and maybe some came or went: update, merge-insert.

    ``updated_fragment_offsets`` holds, per fragment, the rows whose columns changed in place.
    ``compacted_sstables`` are carried along as bytes.
    """

    name: ClassVar[str] = "Update"
    removed_fragment_ids: tuple[int, ...] = ()
    updated_fragments: tuple[Fragment, ...] = ()
    new_fragments: tuple[Fragment, ...] = ()
    fields_modified: tuple[int, ...] = ()
    fields_for_preserving_frag_bitmap: tuple[int, ...] = ()
    update_mode: UpdateMode = UpdateMode.REWRITE_ROWS
    inserted_rows: KeyExistenceFilter | None = None
    updated_fragment_offsets: Mapping[int, RowSet] = field(default_factory=dict)
    compacted_sstables: tuple[bytes, ...] = ()
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapUpdate:
    """Changes of a string map: a value sets its key, ``None`` deletes it. ``replace`` forgets all other keys first."""

    entries: Mapping[str, str | None]
    replace: bool = False
    unknown: bytes = b""

    def applied(self, old: Mapping[str, str]) -> dict[str, str]:
        """The map after this change.

        >>> MapUpdate(entries={"a": "1", "b": None}).applied({"b": "2", "c": "3"})
        {'c': '3', 'a': '1'}
        """
        kept = {} if self.replace else {key: value for key, value in old.items() if key not in self.entries}
        return kept | {key: value for key, value in self.entries.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateConfig:
    """Settings and metadata changed. Transactions in the old style decode into the same four changes."""

    name: ClassVar[str] = "UpdateConfig"
    config_updates: MapUpdate | None = None
    table_metadata_updates: MapUpdate | None = None
    schema_metadata_updates: MapUpdate | None = None
    field_metadata_updates: Mapping[int, MapUpdate] = field(default_factory=dict)
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReplacementGroup:
    """One fragment gets a new file for the fields that the file lists."""

    fragment_id: int
    new_file: DataFile
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataReplacement:
    """Whole columns of some fragments exchanged."""

    name: ClassVar[str] = "DataReplacement"
    replacements: tuple[DataReplacementGroup, ...]
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateMemWalState:
    """State of memory tables; recognised, and not written."""

    name: ClassVar[str] = "UpdateMemWalState"
    raw: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clone:
    """The table began as a copy of another; a shallow one keeps its files where they are."""

    name: ClassVar[str] = "Clone"
    is_shallow: bool
    ref_version: int
    ref_path: str
    ref_name: str | None = None
    branch_name: str | None = None
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateBases:
    """New base paths."""

    name: ClassVar[str] = "UpdateBases"
    new_bases: tuple[BasePath, ...]
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataOverlay:
    """Values that override those of the data files; recognised, and not written."""

    name: ClassVar[str] = "DataOverlay"
    raw: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownOperation:
    """A kind of a newer release: the number of its field, and its message."""

    name: ClassVar[str] = "Unknown"
    field_number: int
    raw: bytes = b""


Operation: TypeAlias = (
    Append
    | Delete
    | Overwrite
    | CreateIndex
    | Rewrite
    | Merge
    | Project
    | Restore
    | ReserveFragments
    | Update
    | UpdateConfig
    | DataReplacement
    | UpdateMemWalState
    | Clone
    | UpdateBases
    | DataOverlay
    | UnknownOperation
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """What one commit did to version ``read_version``. ``uuid`` identifies it, hyphenated."""

    read_version: int
    uuid: str
    operation: Operation
    properties: Mapping[str, str] = field(default_factory=dict)
    tag: str = ""
    unknown: bytes = b""
