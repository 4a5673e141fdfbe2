"""Fragments, data files and deletion files as frozen values, and what must hold for them.

A fragment is one horizontal slice of a table: files that each hold some columns of the same rows, and at most one
deletion file that says which of the rows are gone. Row-id and version sequences stay serialised here, because most
commits only carry them along; ``row_ids.py`` reads them.

Format: ``docs/format/table.md#fragments``, ``docs/format/data-files.md#data-file-entries``,
``docs/format/table.md#deletion-files``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

from tablewright.format.inside import stays_inside
from tablewright.format.limits import FRAGMENT_ID_MAX
from tablewright.values import evolve

__all__ = [
    "PHYSICAL_ROWS_MAX",
    "TOMBSTONE",
    "DataFile",
    "DeletionFile",
    "DeletionFileType",
    "Fragment",
    "problems_of_fragment",
]

TOMBSTONE = -2
"""Stands in ``DataFile.fields`` for a column that is in the file but no longer in the table."""

"""Inclusive: a row address has 32 bits for the fragment."""

PHYSICAL_ROWS_MAX = 1 << 32
"""Inclusive: a row address has 32 bits for the offset."""

_I32_MAX, _U32_MAX, _U64_MAX = (1 << 31) - 1, (1 << 32) - 1, (1 << 64) - 1
_FILES_WITH_COLUMN_INDICES_FROM = 2


class DeletionFileType(IntEnum):
    """How a deletion file stores its offsets."""

    ARROW_ARRAY = 0
    BITMAP = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One file with some columns of a fragment.

    ``path`` is relative to ``data/`` of its base. ``fields[i]`` is the id of the field in physical column
    ``column_indices[i]``, or :data:`TOMBSTONE`. ``file_size_bytes`` 0 means unknown.
    """

    path: str
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    file_major_version: int
    file_minor_version: int
    file_size_bytes: int = 0
    base_id: int | None = None
    unknown: bytes = b""

    @property
    def version(self) -> str:
        """The data-file version as the manifest spells it, like ``2.2``."""
        return f"{self.file_major_version}.{self.file_minor_version}"

    @property
    def live_fields(self) -> tuple[int, ...]:
        """The ids of the fields that this file still supplies."""
        return _live(self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionFile:
    """Where the deleted offsets of a fragment are stored, and how many they are."""

    file_type: DeletionFileType
    read_version: int
    id: int
    num_deleted_rows: int
    base_id: int | None = None
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """One horizontal slice of a table.

    Invariants: an ``id`` is never given twice in a table (0 stands for "not given yet" inside a transaction); files
    hold disjoint fields; ``deletion.num_deleted_rows <= physical_rows``; the sequences, where present, have
    ``physical_rows`` entries once the fragment is in a manifest.
    """

    id: int
    files: tuple[DataFile, ...]
    physical_rows: int
    deletion: DeletionFile | None = None
    row_ids: bytes | None = None
    last_updated_at: bytes | None = None
    created_at: bytes | None = None
    clustering_id: int | None = None
    unknown: bytes = b""

    @property
    def deleted_rows(self) -> int:
        """How many of the physical rows are deleted."""
        return self.deletion.num_deleted_rows if self.deletion else 0

    @property
    def live_rows(self) -> int:
        """How many rows a reader sees."""
        return self.physical_rows - self.deleted_rows

    @property
    def live_fields(self) -> frozenset[int]:
        """The ids of all fields that some file of this fragment supplies."""
        return frozenset().union(*(file.live_fields for file in self.files))

    @property
    def data_bytes(self) -> int:
        """The size of its data files; one of unknown size counts as 0."""
        return sum(file.file_size_bytes for file in self.files)

    def with_files(self, files: tuple[DataFile, ...]) -> Fragment:
        """The same rows in other files."""
        return evolve(self, files=files)

    def with_column_file(self, new: DataFile) -> Fragment:
        """The same rows with some columns out of a new file.

        Its fields are tombstoned where they were; a file that supplies no field any more is dropped.
        """
        replaced = frozenset(new.live_fields)
        kept = (
            evolve(file, fields=tuple(TOMBSTONE if field_id in replaced else field_id for field_id in file.fields))
            if replaced.intersection(file.fields)
            else file
            for file in self.files
        )
        return evolve(self, files=(*(file for file in kept if file.live_fields), new))

    def with_deletion(self, deletion: DeletionFile | None) -> Fragment:
        """The same rows with another deletion file, or none."""
        return evolve(self, deletion=deletion)


@lru_cache(maxsize=64)
def _live(fields: tuple[int, ...]) -> tuple[int, ...]:
    """Nearly all files of a table list the same fields."""
    return tuple(field_id for field_id in fields if field_id >= 0)


def problems_of_fragment(fragment: Fragment) -> tuple[str, ...]:
    """Every rule that this fragment breaks, in words; empty if it is sound."""
    return tuple(f"fragment {fragment.id}: {problem}" for problem in _problems(fragment))


def _problems(fragment: Fragment) -> Iterator[str]:
    if not 0 <= fragment.id <= FRAGMENT_ID_MAX:
        yield "the id does not fit 32 bits"
    if not 0 <= fragment.physical_rows <= PHYSICAL_ROWS_MAX:
        yield f"{fragment.physical_rows} physical rows do not fit 32 bits of offsets"
    if fragment.deletion:
        yield from _problems_of_deletion(fragment.deletion, fragment.physical_rows)
    seen: set[int] = set()
    for file in fragment.files:
        yield from _problems_of_file(file)
        twice = seen.intersection(file.live_fields)
        if twice:
            yield f"fields {sorted(twice)} are in {file.path!r} and in another of its files"
        seen.update(file.live_fields)


def _problems_of_file(file: DataFile) -> Iterator[str]:
    if not stays_inside(file.path):
        yield f"the data file path {file.path!r} does not stay inside the data directory"
    for problem in _problems_of_columns(file.fields, file.column_indices, file.file_major_version):
        yield f"{file.path!r} {problem}"
    numbers = (file.file_major_version, file.file_minor_version, file.base_id or 0)
    if min(numbers) < 0 or max(numbers) > _U32_MAX or not 0 <= file.file_size_bytes <= _U64_MAX:
        yield f"{file.path!r} has a version, a size or a base id out of range"


@lru_cache(maxsize=64)
def _problems_of_columns(fields: tuple[int, ...], columns: tuple[int, ...], major_version: int) -> tuple[str, ...]:
    """What is wrong with the columns of a file; nearly all files of a table list the same ones."""
    problems = []
    if major_version >= _FILES_WITH_COLUMN_INDICES_FROM and len(fields) != len(columns):
        problems.append(f"has {len(fields)} fields but {len(columns)} column indices")
    reserved = sorted({field_id for field_id in fields if field_id < 0 and field_id != TOMBSTONE})
    if reserved:
        problems.append(f"lists the reserved field ids {reserved}")
    if len(set(_live(fields))) != len(_live(fields)):
        problems.append("lists a field twice")
    if any(index < -1 for index in columns):
        problems.append("has a negative column index")
    if max((*fields, *columns), default=0) > _I32_MAX:
        problems.append("has field ids or column indices that do not fit 32 bits")
    return tuple(problems)


def _problems_of_deletion(deletion: DeletionFile, physical_rows: int) -> Iterator[str]:
    if physical_rows and deletion.num_deleted_rows > physical_rows:
        yield f"{deletion.num_deleted_rows} of {physical_rows} rows are deleted"
    if min(deletion.num_deleted_rows, deletion.read_version, deletion.id) < 0:
        yield "the deletion file has a negative number"
    if max(deletion.read_version, deletion.id) > _U64_MAX or not 0 <= (deletion.base_id or 0) <= _U32_MAX:
        yield "the deletion file has a number out of range"
