"""The manifest: one immutable version of a table.

A manifest names everything a version consists of: schema, fragments, indices, settings. High-water marks (highest
fragment id, next row id) are stored because no id is ever given twice; flags are derived when it is written
(``flags.py``). What must hold for it is in ``manifest_problems.py``.

Format: ``docs/format/table.md#manifest-fields``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tablewright.format.fragment import FragmentList
from tablewright.format.index import IndexMetadata
from tablewright.format.schema import Schema

__all__ = ["BasePath", "Manifest", "WriterVersion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterVersion:
    """Who wrote a manifest."""

    library: str
    version: str
    prerelease: str = ""
    build_metadata: str = ""
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class BasePath:
    """Another place where files of the table are kept. ``path`` is as given, possibly relative."""

    id: int
    path: str
    name: str | None = None
    is_dataset_root: bool = False
    unknown: bytes = b""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """One version of a table. It has no slots, so a copy with other fields is made quickly (:mod:`tablewright.values`).

    Invariants: fragment ids are unique and not above ``max_fragment_id``, which never falls; with ``stable_row_ids``
    every fragment carries row ids; data files have the version ``data_storage_version`` unless flag 256 is set; base
    ids in use are described in ``base_paths``. ``reader_flags`` and ``writer_flags`` are as stored; writing derives
    them again.
    """

    schema: Schema
    fragments: FragmentList
    version: int
    timestamp_ns: int = 0
    max_fragment_id: int | None = None
    transaction_file: str = ""
    writer: WriterVersion | None = None
    next_row_id: int = 0
    data_storage_version: str = "2.2"
    data_file_format: str = "lance"
    config: Mapping[str, str] = field(default_factory=dict)
    table_metadata: Mapping[str, str] = field(default_factory=dict)
    base_paths: tuple[BasePath, ...] = ()
    branch: str | None = None
    tag: str = ""
    version_aux_data: int = 0
    indices: tuple[IndexMetadata, ...] = ()
    reader_flags: int = 0
    writer_flags: int = 0
    max_allocated_field_id: int | None = None
    stable_row_ids: bool = False
    clustering: tuple[bytes, ...] = ()
    max_clustering_id: int | None = None
    index_unknown: bytes = b""
    data_format_unknown: bytes = b""
    unknown: bytes = b""

    @property
    def live_rows(self) -> int:
        """How many rows a reader of this version sees."""
        return self.fragments.total_live_rows

    @property
    def max_field_id(self) -> int:
        """The highest field id that new fields must stay above; -1 in an empty table. Decodes every fragment."""
        allocated = -1 if self.max_allocated_field_id is None else self.max_allocated_field_id
        return max(self.schema.max_field_id, self.fragments.max_field_id, allocated)

    def base_path(self, base_id: int) -> BasePath:
        """The base path of this id; ``KeyError`` if there is none."""
        for base in self.base_paths:
            if base.id == base_id:
                return base
        raise KeyError(base_id)
